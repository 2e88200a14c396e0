//! `tenure acquire`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use rustix::process::Signal;

#[test]
fn new_prints_grant_token_and_expiry() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure acquire deploy --ttl 10m --operation 'release 1.2'",
        "tenure acquire section:Backend",
        "tenure acquire task:42",
        "tenure acquire 'path:src/api/**'",
        "tenure acquire db cache",
    ]));
}

#[test]
fn quiet_prints_the_grant_only() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see("tenure acquire -q deploy"));
}

#[test]
fn json() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see("tenure acquire --json --as alice db cache --operation migrate"));
}

#[test]
fn the_same_grant_renews() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("deploy --as alice --ttl 1m");
    assert_snapshot!(sandbox.see_all(&[
        &format!("tenure acquire deploy --as alice --grant {grant} --ttl 5m"),
        &format!("tenure acquire deploy --as alice --grant {grant} --ttl 5m --json"),
    ]));
}

#[test]
fn the_same_label_owns_its_lease() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure acquire -n deploy --as alice --ttl 5m",
        "tenure acquire -n deploy --as bob",
        "tenure run -w 5 deploy --as alice -- echo never",
    ]));
}

#[test]
fn what_lapsed_is_claimed() {
    let sandbox = Sandbox::new();
    sandbox.lapsed("db", "--as alice");
    sandbox.lapsed("cache", "--as alice");
    assert_snapshot!(
        sandbox.see_all(&["tenure acquire db --as bob", "tenure acquire cache --as bob --json",])
    );
}

#[test]
fn a_dead_holder_is_replaced() {
    let sandbox = Sandbox::new();
    sandbox.dead("db", "--as alice");
    sandbox.dead("cache", "--as alice");
    assert_snapshot!(
        sandbox.see_all(&["tenure acquire db --as bob", "tenure acquire cache --as bob --json",])
    );
}

#[test]
fn a_process_that_is_not_there_cannot_be_tied_to() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure acquire deploy --pid 4194305",
        "tenure acquire deploy --pid 4194305 --json",
        "tenure acquire deploy --pid 0",
        "tenure status deploy",
    ]));
}

#[test]
fn held_in_the_foreground_until_interrupted() {
    let sandbox = Sandbox::new();
    let holder = sandbox.background("tenure acquire --hold memory --operation write:tasks.json");
    holder.printed("Lock acquired");
    holder.signal(Signal::INT);
    let first = holder.ends_by_itself();
    let holder = sandbox.background("tenure acquire --hold memory disk --as alice --json");
    holder.printed("acquired_new");
    holder.signal(Signal::TERM);
    let second = holder.ends_by_itself();
    let status = sandbox.see("tenure status memory");
    assert_snapshot!(format!("{first}\n{second}\n{status}"));
}

#[test]
fn held_in_the_foreground_until_broken() {
    let sandbox = Sandbox::new();
    let holder = sandbox.background("tenure acquire --hold memory --ttl 2s");
    holder.printed("Lock acquired");
    sandbox.quietly("tenure break memory --force --reason test");
    assert_snapshot!(holder.ends_by_itself());
}
