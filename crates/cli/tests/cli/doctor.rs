//! `tenure doctor`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

/// What kind of file system the tests run on is no matter.
fn on_any_file_system() -> impl Drop {
    let mut settings = insta::Settings::clone_current();
    settings
        .add_filter(r"(file system +)(?:\S+, local|not known.*|not checked.*)", "$1[FILE SYSTEM]");
    settings.add_filter(
        r#""message": "(?:\S+, local|not known[^"]*|not checked[^"]*)""#,
        r#""message": "[FILE SYSTEM]""#,
    );
    settings.bind_to_scope()
}

#[test]
fn healthy() {
    let sandbox = Sandbox::new();
    let _filters = on_any_file_system();
    sandbox.acquire("deploy");
    sandbox.lapsed("db", "");
    assert_snapshot!(sandbox.see_all(&["tenure doctor", "tenure doctor --json"]));
}

#[test]
fn with_a_broken_store() {
    let sandbox = Sandbox::bare();
    let _filters = on_any_file_system();
    sandbox.write("text.db", "This is no database, whatever its name says.\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure --store sqlite:text.db doctor",
        "tenure --store sqlite:text.db doctor --json",
        "tenure --store nonsense doctor",
    ]));
}
