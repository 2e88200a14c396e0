//! A store that is reached by several ways, or removed or replaced while it is in use.

use crate::support::{Ended, Engine, Running, StoreLocation, TENURE, bytes, is_alive, until};

/// Runs the binary under test with a store of another name in this place.
fn run_with(place: &StoreLocation, store: &str, arguments: &[&str]) -> Ended {
    let mut command = place.command(TENURE);
    command.args(["--store", &format!("sqlite:{store}")]).args(arguments);
    Running::start(command).end()
}

/// Removes the database with all that belongs to it, as cleaning a working tree does.
fn remove_store(place: &StoreLocation) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path(&format!("tenure.db{suffix}")));
    }
    for folder in ["tenure.db.side", "store"] {
        let _ = std::fs::remove_dir_all(place.path(folder));
    }
}

#[test]
fn a_store_reached_by_a_link_is_the_same_store() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["x"]);
    std::os::unix::fs::symlink("tenure.db", place.path("link.db")).expect("a link");
    std::os::unix::fs::symlink(".", place.path("here")).expect("a link");
    for store in ["link.db", "here/tenure.db", "here/link.db"] {
        let ended = run_with(&place, store, &["run", "-n", "x", "--", "true"]);
        assert_eq!(ended.code, 6, "{store}: {ended:?}");
    }
    // Those who queue for turns and wake-ups do it in one place.
    assert!(!place.path("link.db.side").exists());
    let ended = run_with(&place, "link.db", &["release", "--grant", &grant]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
}

#[test]
fn a_holder_or_waiter_whose_store_was_removed_learns_of_it() {
    for engine in [Engine::Sqlite, Engine::Files] {
        holder_and_waiter_learn_of_it(StoreLocation::with(engine));
    }
}

fn holder_and_waiter_learn_of_it(place: StoreLocation) {
    let script = "echo $$ >$D/command; while :; do sleep 0.02; done";
    // The next renewal is far off: it must notice by looking.
    let holder = place.start(&["run", "--ttl", "1h", "x", "--", "sh", "-c", script]);
    let command = place.number("command");
    let waiter = place.start(&["run", "-w", "50", "x", "--", "touch", "ran"]);
    until("the waiter in the queue", || {
        (place.why("x")["waiters"].as_array()?.len() == 1).then_some(())
    });
    remove_store(&place);
    // Everybody who comes from now on uses another store and knows nothing of the old one.
    place.json(&["init"]);
    let (token, _) = place.acquire(&["x"]);
    let ended = holder.end();
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.stderr.contains("The lease on x was lost"), "{ended:?}");
    assert!(!is_alive(command));
    let ended = waiter.end();
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("is gone"), "{ended:?}");
    assert!(!place.path("ran").exists());
    assert!(place.accepts("x", token));
}

#[test]
fn a_command_that_ends_after_its_store_was_removed_did_not_hold_to_the_end() {
    let place = StoreLocation::new();
    let script = "touch $D/begun; rm -rf $D/tenure.db*; exit 0";
    let ended = place.run(&["run", "--ttl", "1h", "x", "--", "sh", "-c", script]);
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(place.path("begun").exists());
}

#[test]
fn a_log_without_its_database_is_not_taken_for_that_of_a_new_one() {
    let place = StoreLocation::new();
    place.acquire(&["x"]);
    std::fs::rename(place.database(), place.path("aside.db")).expect("a moved database");
    let before = bytes(&place.path("tenure.db-wal"));
    for words in [&["acquire", "y"][..], &["run", "-n", "y", "--", "touch", "ran"], &["locks"]] {
        let ended = place.run(words);
        assert_eq!(ended.code, 3, "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("-wal"), "{ended:?}");
    }
    assert!(!place.database().exists() && !place.path("ran").exists());
    assert!(before == bytes(&place.path("tenure.db-wal")), "the log was changed");
    // Put back, all is as it was.
    std::fs::rename(place.path("aside.db"), place.database()).expect("the database put back");
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 6);
}
