//! Stores that are named: which are made, which are refused, and the one for a whole machine.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// A path with a slip of the pen in it is no store.
#[test]
fn a_named_store_in_a_folder_that_is_not_there_is_made_by_init_alone() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure --store sqlite:new/folder/locks.db run deploy -- true",
        "tenure --store file:files acquire deploy --json",
        "ls",
        "tenure --store sqlite:new/folder/locks.db init",
        "tenure --store file:files init",
        "tenure --store sqlite:new/folder/locks.db run deploy -- echo ran",
        "tenure --store file:files run deploy -- echo ran",
        "TENURE_STORE=sqlite:new/folder/lokcs.db tenure run deploy -- true",
    ]));
}

#[test]
fn a_named_store_in_a_folder_without_another_is_made_and_said() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure -v --store sqlite:locks.db run deploy -- echo ran",
        "tenure --store sqlite:locks.db run deploy -- echo again",
        "tenure --store sqlite:lokcs.db run deploy -- echo never",
        "tenure --store sqlite:second.db init -q",
        "tenure --store sqlite:second.db run deploy -- echo ran",
    ]));
}

#[test]
fn init_is_quiet_if_asked() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure init -q",
        "tenure init -q",
        "tenure init -q --json"
    ]));
}

#[test]
fn a_store_for_all_users_of_a_machine() {
    let sandbox = Sandbox::bare();
    let machine = "TENURE_MACHINE_DIR=\"$PWD/machine\"";
    let seen = sandbox.see_all(&[
        &format!("{machine} tenure --store machine: run deploy -- true"),
        &format!("{machine} tenure --store machine: status"),
        &format!("{machine} tenure --store machine: init --group no-such-group"),
        "tenure --store sqlite:x.db init --group 0",
        &format!("umask 077; {machine} tenure --store machine: init --group $(id -g)"),
        &format!(
            "cd / && TENURE_MACHINE_DIR={} TENURE_STORE=machine: tenure run deploy -- echo ran",
            sandbox.path("machine").display()
        ),
        "tenure --store machine:x status",
    ]);
    assert_snapshot!(seen);
    let mode = |name: &str| {
        let path = sandbox.path(&format!("machine{name}"));
        std::fs::metadata(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")).mode() & 0o7777
    };
    assert_eq!(mode(""), 0o2770);
    for name in ["/tenure.db", "/tenure.db-wal", "/tenure.db.side/bell", "/tenure.db.side/seat"] {
        assert_eq!(mode(name), 0o660, "{name}");
    }
    assert_eq!(mode("/tenure.db.side") & 0o777, 0o770);
}

/// Two members of the group, neither of whom made the store, exclude and wake each other; a stranger
/// is told why not.
#[test]
fn members_of_the_group_share_it_and_others_do_not() {
    assert!(rustix::process::geteuid().is_root(), "this test acts as several users, so needs root");
    let sandbox = Sandbox::bare();
    // The way there must be open to all.
    for name in ["..", "."] {
        let path = sandbox.path(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox.quietly(
        "mkdir -m 777 shared && cp $(command -v tenure) shared/tenure && chmod 755 shared/tenure",
    );
    let folder = sandbox.path("machine");
    let store = format!("TENURE_MACHINE_DIR={} TENURE_STORE=machine:", folder.display());
    let member = |user: u32, line: &str| {
        format!(
            "umask 022; {store} HOME=/nonexistent setpriv --reuid={user} --regid={user} \
             --groups=4321 shared/tenure {line}"
        )
    };
    sandbox.quietly(&format!("{store} tenure init --group 4321"));
    sandbox.quietly(&member(1001, "acquire deploy --as alice --ttl 10m"));
    let seen = sandbox.see(&member(1002, "run -n deploy -- true"));
    assert!(seen.contains("exit: 6") && seen.contains("alice"), "{seen}");
    // One waits, the other frees it: the pipe between them is for the group.
    let waiting = member(1002, "run --as bob -w 60 deploy -- echo entered");
    let release = member(1001, "release deploy --as alice");
    let waits = member(1001, "why deploy --json");
    sandbox.quietly(&format!(
        "({waiting}) >shared/out 2>&1 & \
         for try in $(seq 600); do \
             if ({waits}) | grep -q '\"bob\"'; then break; fi; sleep 0.05; \
         done; \
         find machine -type p -printf '%m\\n' >shared/pipes; ({release}) && wait"
    ));
    assert_eq!(sandbox.quietly("cat shared/pipes"), "620");
    assert!(sandbox.quietly("cat shared/out").ends_with("entered"));

    let stranger = format!(
        "{store} HOME=/nonexistent setpriv --reuid=1003 --regid=1003 --clear-groups shared/tenure run deploy -- true"
    );
    let seen = sandbox.see(&stranger);
    assert!(seen.contains("exit: 3") && seen.contains("members of its group"), "{seen}");
}
