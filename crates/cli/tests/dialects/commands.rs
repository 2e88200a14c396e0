//! The commands in folders that are shared: what they show of others' locks, and what they do.

use crate::folder::{Dialect, Folder};
use crate::memory::sitting;
use crate::support::{Ended, Running, until};
use serde_json::{Value, json};
use std::time::Duration;

/// A command of a session, as its programs name themselves.
fn as_session(folder: &Folder, session: &str, arguments: &[&str]) -> Ended {
    let mut command = folder.tenure(arguments);
    command.env("CLAWDBOT_SESSION_ID", session);
    Running::start(command).end()
}

#[test]
fn the_commands_of_a_memory_folder_need_no_name_and_print_what_its_programs_print() {
    let folder = Folder::new(Dialect::Memory);
    assert_eq!(folder.json(&["status"])["locked"], false);
    let acquire = ["acquire", "--operation", "consolidate", "--wait", "5"];
    assert_eq!(as_session(&folder, "session-1", &acquire).code, 0);
    let said = folder.said();
    assert_eq!(said["session_id"], "session-1");
    assert_eq!(said["operation"], "consolidate");
    assert_eq!(folder.judged(Duration::ZERO), "held by session-1");

    let status = as_session(&folder, "session-1", &["--json", "status"]).json();
    assert_eq!((&status["locked"], &status["we_hold_it"]), (&true.into(), &true.into()));
    assert_eq!((&status["is_stale"], &status["stale_reason"]), (&false.into(), &Value::Null));
    let holder = status["holder"].as_object().expect("a holder");
    for field in ["pid", "session_id", "acquired_at", "hostname", "operation"] {
        assert!(holder.contains_key(field), "{field}");
    }

    let other = as_session(&folder, "session-2", &["acquire", "--wait", "0.1"]);
    assert_eq!(other.code, 6);
    for word in ["session-1", "consolidate", "waited"] {
        assert!(other.stderr.contains(word), "who, doing what, waited how long: {other:?}");
    }
    let status = as_session(&folder, "session-2", &["--json", "status"]).json();
    assert_eq!(status["we_hold_it"], false);
    assert_eq!(as_session(&folder, "session-2", &["release"]).code, 5, "not theirs");
    assert_eq!(as_session(&folder, "session-1", &["release"]).code, 0);
    assert!(!folder.lock().exists());
    assert_eq!(folder.run(&["acquire", "another-name"]).code, 2, "this folder has one lock");
}

#[test]
fn an_operator_breaks_the_lock_that_was_seen() {
    let folder = Folder::new(Dialect::Memory);
    folder.put(&folder.dialect.content("theirs", Duration::ZERO));
    assert_eq!(folder.run(&["break"]).code, 5, "only with permission");
    assert!(folder.lock().exists());
    let broken = as_session(&folder, "me", &["break", "--force", "--reason", "it hangs"]);
    assert_eq!(broken.code, 0, "{broken:?}");
    assert!(!folder.lock().exists());
    let events = folder.run(&["events"]).stdout;
    assert!(events.contains("theirs") && events.contains("it hangs"), "{events}");
    assert_eq!(as_session(&folder, "me", &["acquire", "-n"]).code, 0);
    let broken = as_session(&folder, "you", &["break", "--force", "--reason", "again"]);
    assert_eq!(broken.code, 0, "tenure's own as well: {broken:?}");
    assert!(!folder.lock().exists());
}

#[test]
fn who_holds_what_is_shown_whoever_it_is() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        let resource = dialect.resource();
        let sitter = sitting(&folder, "somebody");
        let list = folder.run(&["locks", "list"]);
        assert!(list.stdout.contains("somebody") && list.stdout.contains(&resource), "{list:?}");
        let why = folder.run(&["why", &resource]);
        assert!(why.stdout.contains("somebody"), "{why:?}");
        let status = folder.json(&["status", &resource]);
        assert_eq!(status["data"]["holder"]["session_id"], "somebody", "{dialect:?}");
        assert_eq!(status["data"]["we_hold_it"], false);
        let release = folder.run(&["--as", "somebody", "release", &resource]);
        assert_eq!(release.code, 5, "a name is no proof: {dialect:?} {release:?}");
        assert_eq!(folder.run(&["doctor"]).code, 0);
        assert_eq!(folder.run(&["locks", "cleanup"]).code, 0);
        assert_eq!(folder.judged(Duration::ZERO), "held by somebody", "nothing is cleaned up");
        drop(sitter);
    }
}

#[test]
fn what_others_left_behind_is_cleaned_up_and_told() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        folder.put(&dialect.content("long-gone", dialect.limit() + Duration::from_secs(9)));
        let dry = folder.run(&["locks", "cleanup", "--dry-run"]);
        assert!(dry.stdout.contains("long-gone"), "{dialect:?}: {dry:?}");
        assert!(folder.lock().exists());
        assert_eq!(folder.run(&["locks", "cleanup"]).code, 0);
        assert!(!folder.lock().exists(), "{dialect:?}");
        assert!(folder.run(&["events"]).stdout.contains("long-gone"));
    }
}

#[test]
fn what_others_add_to_tenures_lock_is_kept() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        let resource = dialect.resource();
        let lease = folder.json(&["acquire", &resource, "--ttl", "10m"]);
        let grant = lease["data"]["grant"].as_str().expect("a grant");
        let mut said = folder.said();
        said["progress"] = json!({ "percent": 40, "note": "half way" });
        folder.put(&said.to_string());
        for arguments in
            [&["renew", "--grant", grant][..], &["acquire", &resource, "--grant", grant]]
        {
            let ended = folder.run(arguments);
            assert_eq!(ended.code, 0, "{dialect:?} {arguments:?}: {ended:?}");
            assert_eq!(folder.said()["progress"]["percent"], 40, "{dialect:?} {arguments:?}");
        }
        assert_eq!(folder.run(&["release", "--grant", grant]).code, 0);
        assert!(!folder.lock().exists());
    }
}

#[test]
fn a_lock_that_others_took_away_is_lost_and_not_taken_back() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        let resource = dialect.resource();
        let lease = folder.json(&["acquire", &resource, "--ttl", "10m"]);
        let grant = lease["data"]["grant"].as_str().expect("a grant");
        let theirs = dialect.content("thief", Duration::ZERO);
        folder.put(&theirs);
        let renewed = folder.run(&["renew", "--grant", grant]);
        assert_eq!(renewed.code, 8, "{dialect:?}: {renewed:?}");
        folder.run(&["release", "--grant", grant]);
        let there = std::fs::read_to_string(folder.lock()).expect("a lock");
        assert_eq!(there, theirs, "{dialect:?}: left as it is");
        assert_eq!(folder.run(&["acquire", "-n", &resource]).code, 6);
    }
}

/// Somebody deleted the file. Its holder does not know yet, so nobody of tenure's takes its place.
#[test]
fn a_deleted_lock_file_frees_nothing_among_tenures_own() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        let resource = dialect.resource();
        assert_eq!(folder.run(&["acquire", &resource, "--ttl", "10m"]).code, 0);
        std::fs::remove_file(folder.lock()).expect("a lock");
        assert_eq!(folder.run(&["acquire", "-n", &resource]).code, 6, "{dialect:?}");
        let status = folder.json(&["status", &resource]);
        let reason = status["data"]["stale_reason"].as_str().expect("a reason");
        assert!(reason.contains("taken away"), "{reason}");
        let broken = folder.run(&["break", &resource, "--force", "--reason", "deleted"]);
        assert_eq!(broken.code, 0, "{broken:?}");
        assert_eq!(folder.run(&["acquire", "-n", &resource]).code, 0);
    }
}

#[test]
fn when_tenure_is_killed_others_take_over_at_once_and_tenure_sees_them() {
    let folder = Folder::new(Dialect::Memory);
    let run = folder.start(&["--as", "victim", "run", "memory", "--", "sh", "-c", "exec sleep 50"]);
    until("the lock", || folder.lock().exists().then_some(()));
    assert_eq!(folder.judged(Duration::ZERO), "held by victim");
    let pid = run.id();
    run.kill();
    assert_eq!(folder.judged(Duration::ZERO), format!("stale: process {pid} is dead"));
    let sitter = sitting(&folder, "successor");
    let status = folder.json(&["status"]);
    let sessions: Vec<&Value> = status["holders"]
        .as_array()
        .expect("holders")
        .iter()
        .map(|holder| &holder["session_id"])
        .collect();
    assert!(sessions.contains(&&json!("successor")), "{status}");
    let refused = folder.run(&["acquire", "-n"]);
    assert_eq!(refused.code, 6);
    assert!(refused.stderr.contains("successor"), "{refused:?}");
    sitter.kill();
    until("the end of both", || (folder.run(&["acquire", "-n"]).code == 0).then_some(()));
}

#[test]
fn only_one_at_a_time_can_hold_what_others_share() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        let resource = dialect.resource();
        for mode in [&["--shared"][..], &["--slots", "3"]] {
            let ended = folder.run(&[&["acquire", "-n", &resource], mode].concat());
            assert_eq!(ended.code, 3, "{dialect:?} {mode:?}: {ended:?}");
            assert!(ended.stderr.contains("alone"), "{ended:?}");
            assert!(!folder.lock().exists());
        }
    }
}

#[test]
fn what_cannot_have_a_lock_file_is_refused_and_not_held_in_secret() {
    for (dialect, resource) in [
        (Dialect::Worker, "a/b"),
        (Dialect::Worker, "task:.hidden"),
        (Dialect::Swarm, "path://w/x"),
    ] {
        let folder = Folder::new(dialect);
        let ended = folder.run(&["run", "-n", resource, "--", "true"]);
        assert_eq!(ended.code, 3, "{dialect:?} {resource}: {ended:?}");
        assert!(ended.stderr.contains("other programs would not see it"), "{ended:?}");
        assert!(!folder.run(&["locks"]).stdout.contains(resource), "{resource} is held");
    }
}
