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
    sandbox.quietly("chmod 600 text.db");
    assert_snapshot!(sandbox.see_all(&[
        "tenure --store sqlite:text.db doctor",
        "tenure --store sqlite:text.db doctor --json",
        "tenure --store nonsense doctor",
    ]));
}

/// Two stores on one machine, a folder that everybody can write into, and settings that do not count.
#[test]
fn what_may_not_be_meant() {
    let sandbox = Sandbox::repository();
    let _filters = on_any_file_system();
    sandbox.quietly("cd / && tenure acquire deploy");
    sandbox.quietly("tenure init && chmod o+w .tenure");
    let other = sandbox.see("tenure doctor");
    let sticky = sandbox.see("chmod +t .tenure && tenure doctor | grep permissions");
    sandbox.quietly("chmod -t,o-w,g+w .tenure");
    let group = sandbox.see("tenure doctor | sed 's/group [0-9]*/group [GROUP]/'");
    sandbox.write(".tenure/config.yaml", "store: http://127.0.0.1:1\n");
    let untrusted = sandbox.see("tenure doctor");
    assert_snapshot!(format!("{other}\n{sticky}\n{group}\n{untrusted}"));
}
