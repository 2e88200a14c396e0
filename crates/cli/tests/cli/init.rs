//! `tenure init`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn in_a_repository() {
    let sandbox = Sandbox::repository();
    sandbox.quietly("mkdir -p src/deep");
    assert_snapshot!(sandbox.see_all(&[
        "tenure -C src/deep init",
        "tenure init",
        "tenure init --json",
        "git status --short",
        "tenure -C src/deep status",
    ]));
}

#[test]
fn in_a_plain_folder() {
    let sandbox = Sandbox::bare();
    sandbox.quietly("mkdir -p below");
    assert_snapshot!(sandbox.see_all(&[
        "tenure init --json",
        "tenure init",
        "tenure -C below status",
        "tenure -C below init",
    ]));
}

#[test]
fn with_a_store_of_ones_own() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure --store sqlite:locks.db init",
        "tenure --store sqlite:locks.db init",
        "TENURE_STORE=sqlite:locks.db tenure status",
    ]));
}

#[test]
fn in_an_empty_folder_it_creates_the_store() {
    let sandbox = Sandbox::bare();
    sandbox.quietly("mkdir empty other locks");
    for store in ["file:empty", "file:locks?dialect=swarm"] {
        let init = format!("tenure --store {store} init");
        assert!(sandbox.see(&init).contains("Created the store file:"), "{store}");
        assert!(sandbox.see(&init).contains("already exists"), "{store}");
    }
    assert_eq!(sandbox.data("tenure --store file:other init --json")["created"], true);
    assert_eq!(sandbox.data("tenure --store file:other init --json")["created"], false);
}

#[test]
fn without_it_outside_a_repository_the_user_has_one() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&["tenure run deploy -- true", "tenure status"]));
}
