//! Which store is used where none is named.

use crate::support::{Ended, Running, StoreLocation, TENURE};
use std::path::Path;

/// Runs the binary under test in this folder, with no store named.
fn run_in(place: &StoreLocation, folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = place.command(TENURE);
    command.current_dir(folder).args(arguments);
    Running::start(command).end()
}

fn git(place: &StoreLocation, folder: &Path, arguments: &[&str]) -> String {
    let mut command = place.command("git");
    command.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    command.args(arguments);
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
    ended.stdout
}

#[test]
fn a_lock_taken_in_one_worktree_is_held_in_all_of_them() {
    let place = StoreLocation::new();
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
    let place = StoreLocation::new();
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
    let place = StoreLocation::new();
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

/// A repository and a linked worktree, both with a file `src/state`.
fn two_worktrees(place: &StoreLocation) -> (std::path::PathBuf, std::path::PathBuf) {
    let (main, side) = (place.path("main"), place.path("side"));
    std::fs::create_dir_all(main.join("src")).expect("folders");
    git(place, &main, &["init", "-q"]);
    std::fs::write(main.join("src/state"), "0\n").expect("a file");
    git(place, &main, &["add", "src"]);
    git(place, &main, &["commit", "-q", "-m", "first"]);
    git(place, &main, &["worktree", "add", "-q", "../side"]);
    (main, side)
}

#[test]
fn a_path_is_one_resource_in_all_worktrees_or_with_a_flag_one_in_each() {
    let place = StoreLocation::new();
    let (main, side) = two_worktrees(&place);
    let shared: &[&str] = &[];
    let apart: &[&str] = &["--per-worktree"];
    // Held in the main worktree, wanted in the side one, and the other way round.
    for (held, wanted, free) in [
        (shared, shared, false),
        (shared, apart, false),
        (apart, shared, false),
        (apart, apart, true),
    ] {
        for (here, there) in [(&main, &side), (&side, &main)] {
            let taken = run_in(&place, here, &[&["acquire", "-q", "path:src/**"], held].concat());
            assert_eq!(taken.code, 0, "{taken:?}");
            let run = [&["run", "-n", "path:src/state"], wanted, &["--", "true"]].concat();
            let update = [&["update", "-n", "src/state"], wanted, &["--", "cat"]].concat();
            for wanted in [&run, &update] {
                let expected = if free { 0 } else { 6 };
                let ended = run_in(&place, there, wanted);
                assert_eq!(ended.code, expected, "{held:?} then {wanted:?}: {ended:?}");
                // In the same worktree there is no difference.
                let ended = run_in(&place, here, wanted);
                assert_eq!(ended.code, 6, "{held:?} then {wanted:?}: {ended:?}");
            }
            let grant = taken.stdout.trim_end();
            assert_eq!(run_in(&place, there, &["release", "--grant", grant]).code, 0);
        }
    }
}

#[test]
fn a_path_of_one_worktree_can_be_named_from_anywhere() {
    let place = StoreLocation::new();
    let (main, side) = two_worktrees(&place);
    let taken = run_in(&place, &side, &["acquire", "--as", "a", "--per-worktree", "path:src/**"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(taken.stdout.contains("path://side/src/**"), "{taken:?}");
    let ended = run_in(&place, &main, &["run", "-n", "path://side/src/state", "--", "true"]);
    assert_eq!(ended.code, 6, "{ended:?}");
    let ended = run_in(&place, &main, &["release", "--as", "a", "path://side/src/**"]);
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn a_link_out_of_the_repository_is_refused_and_one_within_is_followed() {
    let place = StoreLocation::new();
    let (main, _) = two_worktrees(&place);
    std::os::unix::fs::symlink("/etc", main.join("out")).expect("a link");
    std::os::unix::fs::symlink("src", main.join("in")).expect("a link");
    for resource in ["path:out/passwd", "path:out/**", "path:/etc/passwd"] {
        let ended = run_in(&place, &main, &["run", "-n", resource, "--", "true"]);
        assert_eq!(ended.code, 2, "{ended:?}");
    }
    assert_eq!(run_in(&place, &main, &["acquire", "path:in/**"]).code, 0);
    assert_eq!(run_in(&place, &main, &["run", "-n", "path:src/state", "--", "true"]).code, 6);
    let inside = format!("path:{}/src/state", main.display());
    assert_eq!(run_in(&place, &main, &["run", "-n", &inside, "--", "true"]).code, 6);
}
