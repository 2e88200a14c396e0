//! One lock for a whole folder: its holder crashes, hangs, is corrupted, or simply takes long.

use crate::folder::{Dialect, Folder};
use crate::support::{Running, Signal, until};
use crate::takeover::one_winner;
use std::time::Duration;

/// Another program that holds the lock until it is killed.
pub fn sitting(folder: &Folder, owner: &str) -> Running {
    let directory = folder.path("");
    let directory = directory.to_str().expect("a plain path");
    let name = folder.dialect.name();
    let sitter = Running::start(folder.foreign("sit.py", &[directory, name, owner]));
    folder.place.wait_for(&format!("sits.{owner}"));
    sitter
}

#[test]
fn a_holder_that_crashed_is_replaced_at_once() {
    let folder = Folder::new(Dialect::Memory);
    let sitter = sitting(&folder, "crasher");
    assert_eq!(folder.run(&["acquire", "-n"]).code, 6);
    let pid = sitter.id();
    let waiter = folder.start(&["--json", "acquire", "--wait", "50"]);
    sitter.kill();
    let ended = waiter.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.json()["data"]["reason"], "claimed_dead");
    let events = folder.run(&["events"]).stdout;
    assert!(events.contains("crasher"), "whose lock it was is told: {events}");
    assert_ne!(folder.said()["pid"], pid);
}

#[test]
fn a_crashed_holder_is_called_dead() {
    let folder = Folder::new(Dialect::Memory);
    let sitter = sitting(&folder, "crasher");
    let pid = sitter.id();
    sitter.kill();
    let status = folder.json(&["status"]);
    assert_eq!(status["is_stale"], true);
    assert_eq!(status["stale_reason"], format!("process {pid} is dead"));
    assert_eq!(status["holder"]["session_id"], "crasher");
}

#[test]
fn a_holder_that_hangs_is_replaced_once_it_is_older_than_the_limit() {
    let folder = Folder::new(Dialect::Memory);
    folder.put(&folder.dialect.content("hangs", Duration::from_secs(20)));
    assert_eq!(folder.json(&["status"])["is_stale"], false);
    assert_eq!(folder.run(&["acquire", "-n"]).code, 6, "it lives and is not old");
    folder.put(&folder.dialect.content("hangs", Duration::from_secs(45)));
    let status = folder.json(&["status"]);
    let reason = status["stale_reason"].as_str().expect("a reason");
    assert!(reason.starts_with("lock is 4") && reason.ends_with("s old (>30s)"), "{reason}");
    assert_eq!(folder.run(&["acquire", "-n"]).code, 0);
}

#[test]
fn of_those_who_start_together_one_wins() {
    one_winner(Dialect::Memory, 4, 4, |folder| assert!(!folder.lock().exists()));
}

#[test]
fn a_corrupt_file_counts_as_held_then_is_set_aside_and_never_deleted() {
    let folder = Folder::new(Dialect::Memory);
    let garbage = r#"{"pid": 17, "session_id": "half"#;
    folder.put(garbage);
    let refused = folder.run(&["acquire", "-n"]);
    assert_eq!(refused.code, 6, "its writer may not be done: {refused:?}");
    assert!(refused.stderr.contains("unreadable lock file .lock"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(folder.lock()).expect("the file"), garbage);
    assert_eq!(folder.run(&["doctor"]).code, 7, "what cannot be read is told");

    folder.backdate(Duration::from_secs(10));
    assert_eq!(folder.json(&["status"])["stale_reason"], "lock file cannot be read");
    assert_eq!(folder.run(&["acquire", "-n"]).code, 0);
    let aside = std::fs::read_dir(folder.path(".tenure/aside")).expect("a folder");
    let kept: Vec<String> = aside
        .map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("its text"))
        .collect();
    assert_eq!(kept, [garbage]);
    let doctor = folder.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert!(doctor.stdout.contains("1 unreadable files were kept"), "{doctor:?}");
    assert!(folder.run(&["events"]).stdout.contains("unreadable lock file"));
}

#[test]
fn a_corrupt_file_that_an_operator_breaks_is_kept_too() {
    let folder = Folder::new(Dialect::Memory);
    folder.put("garbage");
    assert_eq!(folder.run(&["break", "--force", "--reason", "garbage"]).code, 0);
    assert!(!folder.lock().exists());
    assert_eq!(std::fs::read_dir(folder.path(".tenure/aside")).expect("a folder").count(), 1);
}

#[test]
fn simultaneous_heartbeats_all_succeed() {
    let folder = Folder::new(Dialect::Memory);
    let lease = folder.json(&["acquire", "--ttl", "10m"]);
    let grant = lease["data"]["grant"].as_str().expect("a grant");
    let heartbeats: Vec<Running> =
        (0..12).map(|_| folder.start(&["renew", "--grant", grant])).collect();
    let mut left = heartbeats.len();
    for heartbeat in heartbeats {
        assert!(folder.judged(Duration::ZERO).starts_with("held by"), "never free, never torn");
        let ended = heartbeat.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        left -= 1;
    }
    assert_eq!(left, 0);
    assert_eq!(folder.said()["tenure"]["token"], lease["data"]["token"]);
}

/// What another program makes of a lease, at its beginning, near its end and after it.
#[test]
fn a_lease_is_fresh_to_others_until_it_ends_and_stale_after() {
    for dialect in Dialect::ALL {
        // Longer than their limit, and shorter.
        for (ttl, seconds) in [("1h", 3600), ("10s", 10)] {
            let folder = Folder::new(dialect);
            let ended = folder.run(&["--as", "me", "acquire", "--ttl", ttl, &dialect.resource()]);
            assert_eq!(ended.code, 0, "{ended:?}");
            let at = |later: u64| folder.judged(Duration::from_secs(later));
            if seconds > 10 {
                assert_eq!(at(0), "held by me", "{dialect:?} {ttl}");
                assert_eq!(at(31), "held by me", "{dialect:?} {ttl}");
                assert_eq!(at(seconds - 60), "held by me", "{dialect:?} {ttl}");
            }
            assert!(at(seconds + 1).starts_with("stale: "), "{dialect:?} {ttl}");
        }
    }
}

#[test]
fn a_long_operation_keeps_its_lock_fresh_and_its_process_alive() {
    let folder = Folder::new(Dialect::Memory);
    let run = folder.start(&[
        "--as",
        "long",
        "run",
        "--ttl",
        "3s",
        "--operation",
        "a long one",
        "memory",
        "--",
        "sleep",
        "50",
    ]);
    until("the lock", || folder.lock().exists().then_some(()));
    let mut renewals = std::collections::BTreeSet::new();
    until("four renewals", || {
        let said = folder.said();
        assert_eq!(folder.judged(Duration::ZERO), "held by long");
        assert_eq!((&said["operation"], &said["pid"]), (&"a long one".into(), &run.id().into()));
        renewals.insert(said["tenure"]["renewed_at"].to_string());
        (renewals.len() > 4).then_some(())
    });
    run.signal(Signal::TERM);
    run.end();
    until("the end of the lock", || (!folder.lock().exists()).then_some(()));
}
