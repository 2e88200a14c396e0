//! `tenure renew`, `tenure release` and `tenure verify`: what needs a proof.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn renew() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("db cache --as alice --ttl 10m");
    assert_snapshot!(sandbox.see_all(&[
        &format!("tenure renew --grant {grant}"),
        &format!("tenure renew --grant {grant} db --ttl 20m"),
        "tenure renew --as alice db --json",
    ]));
}

#[test]
fn renew_what_is_not_held() {
    let sandbox = Sandbox::new();
    let grant = sandbox.lapsed("deploy", "--as alice");
    assert_snapshot!(sandbox.see_all(&[
        &format!("tenure renew --grant {grant}"),
        "tenure renew --as bob deploy",
        "tenure renew --as bob",
        "tenure renew",
    ]));
}

#[test]
fn release_by_grant() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("db cache disk");
    assert_snapshot!(sandbox.see_all(&[
        &format!("tenure release --grant {grant} db"),
        &format!("tenure release --grant {grant} disk --json"),
        &format!("tenure release --grant {grant}"),
        "tenure locks",
    ]));
}

#[test]
fn release_by_label() {
    let sandbox = Sandbox::new();
    sandbox.acquire("db --as alice");
    sandbox.acquire("cache --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure release --as alice db",
        "TENURE_AGENT=alice tenure release -q cache",
        "tenure locks",
    ]));
}

#[test]
fn release_of_what_others_hold_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure release --as bob deploy",
        "tenure release --as bob deploy --json",
        "tenure verify deploy --token 1",
    ]));
}

#[test]
fn release_of_what_nobody_holds() {
    let sandbox = Sandbox::new();
    assert_snapshot!(
        sandbox.see_all(&[
            "tenure release --as alice deploy",
            "tenure release --as alice deploy --json",
        ])
    );
}

#[test]
fn release_of_what_was_lost() {
    let sandbox = Sandbox::new();
    let lapsed = sandbox.lapsed("db", "");
    let broken = sandbox.acquire("cache");
    sandbox.quietly("tenure break cache --force --reason test");
    assert_snapshot!(sandbox.see_all(&[
        &format!("tenure release --grant {lapsed}"),
        &format!("tenure release --grant {broken}"),
        &format!("tenure release --grant {broken} cache --json"),
    ]));
}

#[test]
fn release_without_a_proof() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy");
    assert_snapshot!(sandbox.see_all(&[
        "tenure release",
        "tenure release deploy",
        "tenure release --as alice",
        "tenure release --json deploy",
    ]));
}

#[test]
fn a_command_under_run_needs_no_proof() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run db cache -- tenure renew db --ttl 1m",
        "tenure run db cache -- tenure status db --json",
    ]));
}

#[test]
fn verify() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy");
    sandbox.lapsed("db", "");
    assert_snapshot!(sandbox.see_all(&[
        "tenure verify deploy --token 1",
        "tenure verify deploy --token 1 --json",
        "tenure verify deploy --token 7",
        "tenure verify deploy --token 7 --json",
        "tenure verify db --token 2",
        "tenure verify free --token 1",
        "tenure run cache -- sh -c 'tenure verify cache --token $TENURE_TOKEN'",
    ]));
}

#[test]
fn all_of_a_label() {
    let sandbox = Sandbox::new();
    sandbox.acquire("db --as alice");
    sandbox.acquire("cache --as alice");
    sandbox.acquire("deploy --as bob");
    sandbox.quietly("tenure tasks add 'Fix bug' --id t1 --section Backend --file 'src/**'");
    sandbox.quietly("tenure tasks claim --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure release --as alice",
        "tenure release --as alice --all db",
        "tenure release --as alice --all",
        "tenure release --as alice --all",
        "tenure locks",
        "tenure tasks list",
    ]));
    let task = sandbox.data("tenure tasks show t1 --json");
    assert_eq!(task["task"]["attempts"], 0, "it was handed back, not taken from a dead worker");
}

#[test]
fn a_task_that_was_claimed_is_handed_back() {
    let sandbox = Sandbox::new();
    sandbox.quietly("tenure tasks add 'Fix bug' --id t1 --file 'src/**'");
    sandbox.quietly("tenure tasks claim --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure release 'task:Fix bug' --as alice",
        "tenure locks",
        "tenure tasks list",
    ]));
}
