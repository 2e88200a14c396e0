//! A store that belongs to a group: made with a umask of 002, every member can use all of it.

use crate::support::{Ended, Engine, Running, StoreLocation, skip, until};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const GROUP: u32 = 65_100;
const ALICE: u32 = 65_001;
const BOB: u32 = 65_002;

/// A folder that belongs to the group, as `chgrp` and `chmod g+ws` make it; nothing where no other
/// user can be become.
fn group_place(engine: Engine) -> Option<StoreLocation> {
    if !rustix::process::geteuid().is_root() || !crate::support::is_installed("setpriv") {
        skip("only root can become somebody else");
        return None;
    }
    let place = StoreLocation::with(engine);
    // The binary's own folder may be closed to others.
    std::fs::copy(crate::support::TENURE, place.path("tenure")).expect("a copy");
    chown(place.path("."), None, Some(GROUP)).expect("a folder of the group");
    set_mode(&place.path("."), 0o2775);
    set_mode(&place.path("home"), 0o777);
    // A member makes the store, with its folder.
    let _ = std::fs::remove_dir(place.path("store"));
    Some(place)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

/// The binary under test, run by a member of the group.
fn member(place: &StoreLocation, user: u32, umask: &str, words: &[&str]) -> Command {
    let mut command = place.command("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={GROUP}")]);
    command.args(["--clear-groups", "sh", "-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
    command.arg(place.path("tenure")).args(["--store", &place.url()]).args(words);
    command
}

fn run(place: &StoreLocation, user: u32, words: &[&str]) -> Ended {
    let ended = Running::start(member(place, user, "002", words)).end();
    assert!([0, 6].contains(&ended.code), "{user} {words:?}: {ended:?}");
    ended
}

#[test]
fn every_member_can_use_a_store_that_another_one_made() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let Some(place) = group_place(engine) else { return };
        run(&place, ALICE, &["init"]);
        let grant = run(&place, ALICE, &["-q", "acquire", "x", "--ttl", "1h"]).stdout;
        assert_eq!(run(&place, BOB, &["run", "-n", "x", "--", "true"]).code, 6);
        assert_eq!(run(&place, BOB, &["run", "-n", "y", "--", "true"]).code, 0);
        assert_eq!(run(&place, BOB, &["tasks", "add", "--id", "one", "A task"]).code, 0);
        assert_eq!(run(&place, ALICE, &["tasks", "claim", "-n", "--as", "alice"]).code, 0);
        let waiter =
            Running::start(member(&place, BOB, "002", &["run", "-w", "50", "x", "--", "true"]));
        until("the waiter in the queue", || {
            let why = run(&place, ALICE, &["--json", "why", "x"]).json();
            (why["data"]["waiters"].as_array()?.len() == 1).then_some(())
        });
        let mailboxes: Vec<_> =
            std::fs::read_dir(place.side().join("wake")).expect("a folder").collect();
        assert!(!mailboxes.is_empty());
        for mailbox in mailboxes {
            let path = mailbox.expect("a mailbox").path();
            assert_eq!(mode(&path), 0o620, "{engine:?}: others cannot wake it");
        }
        assert_eq!(run(&place, ALICE, &["release", "--grant", grant.trim()]).code, 0);
        let ended = waiter.end();
        assert_eq!(ended.code, 0, "{engine:?}: {ended:?}");
        assert_eq!(run(&place, ALICE, &["doctor"]).code, 0);
    }
}

#[test]
fn a_store_made_with_a_closed_umask_is_closed() {
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let Some(place) = group_place(Engine::Sqlite) else { return };
        let made = Running::start(member(&place, ALICE, umask, &["acquire", "x"])).end();
        assert_eq!(made.code, 0, "{made:?}");
        for suffix in ["", "-wal", ".side/seat", ".side/bell"] {
            let path = place.path(&format!("tenure.db{suffix}"));
            assert_eq!(mode(&path), expected, "umask {umask}: {path:?}");
        }
    }
}
