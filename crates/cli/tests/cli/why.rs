//! `tenure why`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn free() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&["tenure why deploy", "tenure why deploy --json"]));
}

#[test]
fn held_with_waiters_in_their_order() {
    let sandbox = Sandbox::new();
    let holder = sandbox.holder("deploy --as alice --operation 'release 1.2'");
    let first = sandbox.waiter("tenure run deploy --as bob --operation 'release 1.3' -- true");
    let second = sandbox.waiter("tenure acquire deploy --as carol");
    assert_snapshot!(sandbox.see_all(&[
        "tenure why deploy",
        "tenure why deploy --json",
        "tenure status deploy",
        "tenure locks list --json | grep -o '\"waiting\":[0-9]*'",
    ]));
    holder.end();
    let (first, second) = (first.ends_by_itself(), second.ends_by_itself());
    assert_snapshot!("waiters_are_served_in_their_order", format!("{first}\n{second}"));
}

#[test]
fn held_by_a_lease_lapsed_and_dead() {
    let sandbox = Sandbox::new();
    sandbox.acquire("db --as alice");
    sandbox.lapsed("cache", "--as alice");
    sandbox.dead("disk", "--as alice");
    assert_snapshot!(sandbox.see_all(&["tenure why db", "tenure why cache", "tenure why disk",]));
}

#[test]
fn paths_that_overlap() {
    let sandbox = Sandbox::new();
    sandbox.acquire("'path:src/api/**' --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure why path:src/api/users.rs",
        "tenure why 'path:src/**/*.rs'",
        "tenure why 'path:docs/**'",
    ]));
}
