//! A store belongs to its owner, or to the group of its folder: then every member can use all of it,
//! whatever the umasks are.

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
    let ended = Running::start(member(place, user, "077", words)).end();
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
            Running::start(member(&place, BOB, "022", &["run", "-w", "50", "x", "--", "true"]));
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

/// All files and folders of a store, with their modes.
fn modes(place: &StoreLocation) -> Vec<(std::path::PathBuf, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![place.path(".")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_others = ["home", "tenure"].iter().any(|name| path.ends_with(name));
            if is_others || path.ends_with("wake") && path.is_file() {
                continue;
            }
            found.push((path.clone(), mode(&path)));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

#[test]
fn a_store_is_closed_to_all_but_its_owner_or_the_group_that_owns_its_folder() {
    for engine in [Engine::Sqlite, Engine::Files] {
        for (umask, folder) in [("022", 0o755), ("000", 0o755), ("022", 0o2775), ("077", 0o2775)] {
            let Some(place) = group_place(engine) else { return };
            chown(place.path("."), Some(ALICE), None).expect("a folder of the user");
            set_mode(&place.path("."), folder);
            let run = |words: &[&str]| {
                let ended = Running::start(member(&place, ALICE, umask, words)).end();
                assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
            };
            run(&["init"]);
            run(&["acquire", "x"]);
            run(&["tasks", "add", "T", "--id", "t"]);
            run(&["work", "--until-empty", "--", "echo", "done"]);
            let for_group = folder == 0o2775;
            for (path, mode) in modes(&place) {
                let expected = match (path.is_dir(), for_group) {
                    (true, false) => 0o700,
                    (true, true) => 0o770,
                    (false, false) => 0o600,
                    (false, true) => 0o660,
                };
                assert_eq!(mode, expected, "umask {umask}: {path:?}");
            }
            run(&["doctor"]);
        }
    }
}

#[test]
fn doctor_tells_of_a_store_that_every_user_can_read() {
    for (engine, open) in [(Engine::Sqlite, "tenure.db"), (Engine::Files, "store/journal")] {
        let place = StoreLocation::with(engine);
        place.acquire(&["x"]);
        assert_eq!(place.run(&["doctor"]).code, 0);
        for folder in [".", "store", open] {
            if place.path(folder).exists() {
                set_mode(&place.path(folder), 0o755);
            }
        }
        let ended = place.run(&["doctor"]);
        assert_eq!(ended.code, 7, "{ended:?}");
        assert!(ended.stdout.contains("every user of this machine can read"), "{ended:?}");
    }
}
