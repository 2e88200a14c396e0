//! `tenure break`: for operators, and no denial teaches how.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn without_permission() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    let denials = sandbox.see_all(&[
        "tenure break deploy",
        "tenure break deploy --reason impatience",
        "tenure break deploy --json",
    ]);
    assert!(!denials.contains("--force"), "a denial teaches how:\n{denials}");
    assert_snapshot!(denials);
}

#[test]
fn no_denial_names_the_flag() {
    let sandbox = Sandbox::new();
    sandbox.acquire("task:7 --as alice");
    for line in [
        "tenure run -n task:7 -- true",
        "tenure run -w 0.3 task:7 --json -- true",
        "tenure acquire -n task:7",
        "tenure wait -n task:7",
        "tenure release --as bob task:7",
        "tenure locks release 7",
        "tenure locks release 7 --json",
        "tenure why task:7",
        "tenure status task:7",
    ] {
        let seen = sandbox.see(line);
        assert!(!seen.contains("force"), "{seen}");
        assert!(!seen.contains("tenure break"), "{seen}");
    }
}

#[test]
fn without_a_reason() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure break deploy --force",
        "tenure break deploy --force --reason ' '",
        "tenure verify deploy --token 1",
    ]));
}

#[test]
fn with_permission_and_reason() {
    let sandbox = Sandbox::new();
    for name in ["db", "cache", "disk"] {
        sandbox.acquire(&format!("{name} --as alice"));
    }
    assert_snapshot!(sandbox.see_all(&[
        "tenure break db --force --reason 'its machine was scrapped' --as operator",
        "tenure break cache --force --reason test --as operator --json",
        "tenure break disk --force --reason test --token 1",
        "tenure break disk --force --reason test --token 3",
        "tenure events --last 3",
    ]));
}

#[test]
fn nothing_to_break() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure break deploy --force --reason test",
        "tenure break deploy --force --reason test --json",
    ]));
}
