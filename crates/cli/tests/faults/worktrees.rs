//! Which store is used where none is named.

use crate::support::{Ended, Place, Running, TENURE};
use std::path::Path;

/// Runs the binary under test in this folder, with no store named.
fn run_in(place: &Place, folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = place.command(TENURE);
    command.current_dir(folder).args(arguments);
    Running::start(command).end()
}

fn git(place: &Place, folder: &Path, arguments: &[&str]) -> String {
    let mut command = place.command("git");
    command.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    command.args(arguments);
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
    ended.stdout
}

#[test]
fn a_lock_taken_in_one_worktree_is_held_in_all_of_them() {
    let place = Place::new();
    let main = place.path("main");
    std::fs::create_dir_all(main.join("deep/inside")).expect("folders");
    git(&place, &main, &["init", "-q"]);
    git(&place, &main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    for name in ["one", "two"] {
        git(&place, &main, &["worktree", "add", "-q", &format!("../{name}")]);
    }
    let (one, two) = (place.path("one"), place.path("two"));
    std::fs::create_dir(one.join("deep")).expect("a folder");
    let folders = [main.clone(), main.join("deep/inside"), one.clone(), one.join("deep"), two];

    for taker in &folders {
        let ended = run_in(&place, taker, &["acquire", "x", "--as", "taker"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        for other in &folders {
            let ended = run_in(&place, other, &["run", "-n", "x", "--", "true"]);
            assert_eq!(ended.code, 6, "{taker:?} then {other:?}: {ended:?}");
        }
        // Any of them can give it back.
        let ended = run_in(&place, &one, &["release", "x", "--as", "taker"]);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    assert!(main.join(".tenure/tenure.db").exists());
    for folder in [&main, &one] {
        assert_eq!(git(&place, folder, &["status", "--porcelain"]), "", "{folder:?}");
    }
}

#[test]
fn outside_a_repository_the_nearest_store_upward_is_used() {
    let place = Place::new();
    let (outer, inner) = (place.path("outer"), place.path("outer/inner"));
    std::fs::create_dir_all(inner.join("deep")).expect("folders");
    for folder in [&outer, &inner] {
        let ended = run_in(&place, folder, &["init"]);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    assert_eq!(run_in(&place, &inner.join("deep"), &["acquire", "x"]).code, 0);
    assert_eq!(run_in(&place, &inner, &["run", "-n", "x", "--", "true"]).code, 6);
    assert_eq!(run_in(&place, &outer, &["run", "-n", "x", "--", "true"]).code, 0);
}

#[test]
fn where_there_is_no_store_the_users_own_is_used() {
    let place = Place::new();
    let (here, there) = (place.path("here"), place.path("there"));
    for folder in [&here, &there] {
        std::fs::create_dir(folder).expect("a folder");
    }
    // Looking makes nothing.
    assert_eq!(run_in(&place, &here, &["locks"]).code, 0);
    assert!(!place.path("home/.local").exists());
    assert_eq!(run_in(&place, &here, &["acquire", "x"]).code, 0);
    assert_eq!(run_in(&place, &there, &["run", "-n", "x", "--", "true"]).code, 6);
    assert!(place.path("home/.local/state/tenure/tenure.db").exists());
    assert!(!here.join(".tenure").exists());
}
