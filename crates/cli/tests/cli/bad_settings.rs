//! Settings that cannot be read: the file, the line, and what to write instead.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn files() {
    let sandbox = Sandbox::new();
    sandbox.quietly("mkdir folder");
    sandbox.write("binary.yaml", b"agent: \xff\n");
    sandbox.write("huge.yaml", "#".repeat(2 << 20));
    sandbox.write("nested.yaml", "[".repeat(10_000));
    sandbox.write("deep.yaml", (0..10_000).map(|_| "a: {").collect::<String>());
    assert_snapshot!(sandbox.see_all(&[
        "tenure --config nowhere.yaml status",
        "tenure --config folder status",
        "tenure --config binary.yaml status",
        "tenure --config huge.yaml status",
        "tenure --config nested.yaml status",
        "tenure --config deep.yaml status --json",
    ]));
}

#[test]
fn content() {
    let sandbox = Sandbox::new();
    let files = [
        ("twice.yaml", "agent: alice\nagent: bob\n"),
        ("unknown.yaml", "locking:\n  waitTimout: 5m\n"),
        ("unit.yaml", "locking:\n  taskTimeout: 60\n"),
        ("parsecs.yaml", "locking:\n  taskTimeout: 5 parsecs\n"),
        ("list.yaml", "locking:\n  taskTimeout: [60m]\n"),
        ("broken.yaml", "locking: {taskTimeout: 60m\n"),
        ("dotted.yaml", "locking.taskTimeout: 60m\n"),
    ];
    for (name, content) in files {
        sandbox.write(name, content);
    }
    let lines = files.map(|(name, _)| format!("tenure --config {name} status"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_snapshot!(sandbox.see_all(&lines));
}

#[test]
fn variables() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "TENURE_GRACE=soon tenure status",
        "TENURE_WAIT_TIMEOUT=-1s tenure status --json",
        "TENURE_GRACE= tenure config get locking.grace",
    ]));
}

/// A project's settings that cannot be read stop every command, and are left as they are.
#[test]
fn of_the_project() {
    let sandbox = Sandbox::new();
    sandbox.write(".tenure/config.yaml", "agent: [\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -- echo never",
        "tenure config set agent alice",
        "cat .tenure/config.yaml",
    ]));
}
