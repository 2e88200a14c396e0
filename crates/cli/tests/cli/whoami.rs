//! `tenure whoami`, `tenure where`: which store, why, and who.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use std::os::unix::fs::{PermissionsExt, chown};

#[test]
fn each_reason_is_told() {
    let sandbox = Sandbox::bare();
    sandbox.quietly("mkdir plain folder repository");
    sandbox.quietly("tenure -C folder init && git init --quiet repository");
    sandbox.quietly("mkdir folder/below repository/below");
    sandbox.quietly("tenure config set --user agent alice");
    let own = sandbox.see_all(&[
        "tenure -C plain whoami",
        "tenure -C folder/below where",
        "tenure -C repository/below whoami",
        "tenure --store sqlite:x.db --as bob whoami",
        "TENURE_STORE=file:x TENURE_AGENT=carol tenure whoami",
        "tenure -C repository whoami --json",
        "tenure -C repository -v run deploy -- true",
        "tenure -C plain -v status",
    ]);
    assert_snapshot!(own);
}

#[test]
fn worktrees_and_settings_of_the_project() {
    let sandbox = Sandbox::repository();
    sandbox.quietly(
        "git -c user.name=t -c user.email=t@example.org commit --quiet --allow-empty -m first \
         && git worktree add --quiet ../linked",
    );
    sandbox.quietly("tenure config set locking.grace 3s");
    sandbox.quietly("cd / && tenure run other -- true");
    let plain = sandbox.see("tenure -C ../linked whoami");
    sandbox.write(".tenure/config.yaml", "store: http://127.0.0.1:1\nagent: project\n");
    let untrusted = sandbox.see_all(&["tenure whoami", "tenure whoami --json"]);
    sandbox.quietly("tenure trust");
    let trusted = sandbox.see("tenure whoami");
    assert_snapshot!(format!("{plain}\n{untrusted}\n{trusted}"));
}

/// A link that leads nowhere must not lead to another store.
#[test]
fn a_dangling_link_is_no_reason_to_use_another_store() {
    let sandbox = Sandbox::bare();
    sandbox.quietly("mkdir below repository && git init --quiet repository");
    sandbox.quietly("ln -s nowhere .tenure && ln -s nowhere repository/.tenure");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -- true",
        "tenure -C below run deploy -- true",
        "tenure -C repository run deploy -- true",
        "tenure whoami",
        "ls -a ../home",
        "tenure --store sqlite:x.db run deploy -- echo ran",
    ]));
}

/// What belongs to another user is refused for root, unless it was chosen or root came from there by
/// sudo; others are warned.
#[test]
fn a_store_of_another_user() {
    assert!(rustix::process::geteuid().is_root(), "this test gives a folder away, so needs root");
    let sandbox = Sandbox::repository();
    sandbox.quietly("tenure init");
    for name in [".tenure", ".tenure/tenure.db", ".tenure/tenure.db.side"] {
        chown(sandbox.path(name), Some(1234), None).unwrap();
    }
    let root = sandbox.see_all(&[
        "tenure status",
        "tenure run deploy -- echo never",
        "SUDO_UID=1234 tenure status",
        "SUDO_UID=1235 tenure status",
        "tenure --store sqlite:.tenure/tenure.db status",
        "TENURE_TRUST=1 tenure status",
        "tenure trust -q",
        "tenure status",
        "tenure trust --revoke",
    ]);
    // Another user, who may read it, cannot be refused but should know.
    sandbox.quietly("chmod -R a+rX .tenure");
    for name in ["..", ".", ".tenure"] {
        let path = sandbox.path(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox.quietly("cp $(command -v tenure) ../tenure && chmod 755 ../tenure");
    let other = sandbox
        .see("HOME=/nonexistent setpriv --reuid=1235 --regid=1235 --clear-groups ../tenure status");
    assert_snapshot!(format!("{root}\n{other}"));
    // In a folder in which anybody may put one, others are refused too.
    let path = sandbox.path(".");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let seen = sandbox
        .see("HOME=/nonexistent setpriv --reuid=1235 --regid=1235 --clear-groups ../tenure status");
    assert!(seen.contains("exit: 3") && seen.contains("belongs to another user"), "{seen}");
}
