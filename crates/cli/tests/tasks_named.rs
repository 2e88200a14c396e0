//! A task is named by its id, a unique beginning of it or its exact title, by every command that takes
//! a resource; a name that means no task is refused where there are tasks.

mod task_support;

use serde_json::json;
use std::time::Duration;
use task_support::StoreLocation;

/// How long to wait for what must happen; only a failure ever takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store with a task that alice works on and one that is free.
fn place() -> (StoreLocation, String) {
    let place = StoreLocation::new();
    place.add(&["Fix: the login", "--id", "a1b2c3d4-e5f6"]);
    place.add(&["Write docs", "--id", "a1ffffff"]);
    let claim = place.claim(&["a1b2c3d4-e5f6", "--as", "alice"]);
    (place, claim["token"].to_string())
}

const NAMES: [&str; 3] = ["task:a1b2c3d4-e5f6", "task:a1b2c3d4-e5f", "task:Fix: the login"];

#[test]
fn every_command_finds_a_task_by_a_short_id_and_by_its_title() {
    let (place, token) = place();
    for name in NAMES {
        let status = place.json(&["status", name]).data();
        assert_eq!(status["locked"], true, "{name}: {status}");
        assert_eq!(status["holder"]["resource"], "task:a1b2c3d4-e5f6");
        assert_eq!(place.json(&["wait", "-n", name]).code, 6, "{name}");
        assert_eq!(place.json(&["run", "-n", name, "--", "true"]).code, 6, "{name}");
        assert_eq!(place.json(&["acquire", "-n", name, "--as", "bob"]).code, 6, "{name}");
        assert_eq!(place.json(&["verify", name, "--token", &token]).data()["valid"], true);
        assert_eq!(place.json(&["verify", name, "--token", "1"]).code, 8, "{name}");
        assert!(place.ok(&["why", name]).contains("alice"), "{name}");
        assert!(place.ok(&["events", name]).contains("alice acquired task:a1b2c3d4-e5f6"));
        assert_eq!(place.json(&["release", name, "--as", "bob"]).code, 5, "{name}");
        assert_eq!(
            place.json(&["renew", name, "--as", "alice"]).data()["renewed"][0]["resource"],
            "task:a1b2c3d4-e5f6"
        );
    }
    for name in NAMES.map(|name| name.strip_prefix("task:").unwrap()).into_iter().chain(NAMES) {
        let shown = place.json(&["locks", "show", name]).data();
        assert_eq!(shown["locks"][0]["holder"], "alice", "{name}");
        assert_eq!(place.json(&["locks", "release", name, "--as", "bob"]).code, 5, "{name}");
    }
    for command in [&["break"][..], &["locks", "release"]] {
        let name = "task:a1b2c3d4-e5f";
        place.ok(&[command, &[name, "--force", "--reason", "test"]].concat());
        assert_eq!(place.json(&["status", name]).data()["locked"], false);
        place.ok(&["acquire", name, "--as", "alice"]);
    }
    place.ok(&["release", "task:Fix: the login", "--as", "alice"]);
}

#[test]
fn what_is_held_by_a_title_excludes_the_claim_of_the_task() {
    let (place, _) = place();
    place.ok(&["acquire", "task:Write docs", "--as", "bob"]);
    let said = place.json(&["tasks", "claim", "a1ffffff", "-n", "--as", "carol"]);
    assert_eq!((said.code, &said.error()["details"]["lockedBy"]), (6, &json!("bob")));
}

#[test]
fn several_tasks_that_are_meant_are_listed() {
    let (place, _) = place();
    for args in [
        &["status", "task:a1"][..],
        &["run", "task:a1", "--", "true"],
        &["acquire", "deploy", "task:a1"],
        &["locks", "show", "a1"],
    ] {
        let said = place.json(args);
        assert_eq!((said.code, &said.error()["code"]), (2, &json!("TASK_AMBIGUOUS")), "{args:?}");
        let message = said.error()["message"].to_string();
        assert!(message.contains("a1b2c3d4-e5f6 (Fix: the login)"), "{message}");
        assert!(message.contains("a1ffffff (Write docs)"), "{message}");
    }
    assert_eq!(place.json(&["status", "deploy"]).data()["locked"], false);
}

#[test]
fn a_task_that_does_not_exist_is_not_found_and_not_locked() {
    let (place, _) = place();
    for args in [
        &["status", "task:typo"][..],
        &["wait", "task:typo"],
        &["why", "task:typo"],
        &["run", "task:typo", "--", "true"],
        &["acquire", "task:typo", "--as", "bob"],
        &["release", "task:typo", "--as", "bob"],
        &["renew", "task:typo", "--as", "bob"],
        &["verify", "task:typo", "--token", "1"],
        &["events", "task:typo"],
        &["break", "task:typo", "--force", "--reason", "test"],
        &["locks", "show", "task:typo"],
    ] {
        let said = place.json(args);
        assert_eq!((said.code, &said.error()["code"]), (4, &json!("TASK_NOT_FOUND")), "{args:?}");
    }
    let held = place.json(&["locks"]).data();
    assert_eq!(held["task_locks"].as_array().unwrap().len(), 1, "{held}");
}

#[test]
fn a_deleted_task_still_has_its_history() {
    let (place, _) = place();
    place.ok(&["tasks", "delete", "a1ffffff"]);
    assert!(place.ok(&["events", "task:a1ffffff"]).contains("deleted task:a1ffffff"));
    assert_eq!(place.json(&["status", "task:a1ffffff"]).code, 4);
}

#[test]
fn without_tasks_the_ids_of_another_list_can_be_held() {
    let place = StoreLocation::new();
    place.ok(&["acquire", "task:JIRA-12", "--as", "alice"]);
    assert_eq!(place.json(&["run", "-n", "task:JIRA-12", "--", "true"]).code, 6);
    // What is held already is meant, also when there are tasks later.
    place.add(&["T", "--id", "t"]);
    assert_eq!(place.json(&["status", "task:JIRA-12"]).data()["locked"], true);
    place.ok(&["release", "task:JIRA-12", "--as", "alice"]);
    assert_eq!(place.json(&["acquire", "task:JIRA-12", "--as", "alice"]).code, 4);
}

/// Each command that waits for a task by name has a place in its queue and is shown there.
#[test]
fn those_who_wait_for_a_task_are_shown_and_served_in_order() {
    let (place, _) = place();
    let asks: [(&str, &[&str]); 4] = [
        ("b1", &["tasks", "claim", "a1b2c3d4-e5f6", "-w", "60"]),
        ("b2", &["tasks", "update", "a1b2c3d4-e5f6", "--status", "in_progress", "-w", "60"]),
        ("b3", &["acquire", "task:a1b2c3d4-e5f6", "-w", "60"]),
        ("b4", &["tasks", "claim", "a1b2c3d4-e5f6", "-w", "60"]),
    ];
    let why = || place.json(&["why", "task:a1b2c3d4-e5f6"]).data();
    let waiting = || {
        let queue = why()["waiters"].as_array().expect("why lists who waits").clone();
        queue.iter().map(|one| one["holder"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let begun = std::time::Instant::now();
    let mut children = Vec::new();
    for (count, (label, ask)) in asks.iter().enumerate() {
        let child = place.command(&[ask, &["--as", label][..]].concat()).spawn().expect("tenure");
        children.push((*label, child));
        while waiting().len() <= count {
            assert!(begun.elapsed() < PATIENCE, "{label} is not shown: {}", why());
        }
    }
    assert_eq!(waiting(), ["b1", "b2", "b3", "b4"]);
    let locks = place.json(&["locks"]).data();
    assert_eq!(locks["task_locks"][0]["waiting"], 4, "{locks}");
    let mut last = "alice";
    for (label, mut child) in children {
        match last {
            "b3" => place.ok(&["release", "task:a1b2c3d4-e5f6", "--as", last]),
            _ => place.ok(&["tasks", "release", "a1b2c3d4-e5f6", "--as", last]),
        };
        assert!(child.wait().expect("it ends").success(), "{label}");
        let held = place.json(&["status", "task:a1b2c3d4-e5f6"]).data();
        assert_eq!(held["holder"]["session_id"], label, "{held}");
        last = label;
    }
    assert!(waiting().is_empty());
}

#[test]
fn a_place_for_a_task_ends_with_the_wait() {
    let (place, _) = place();
    let said = place.json(&["tasks", "claim", "a1b2c3d4-e5f6", "-w", "0.2", "--as", "bob"]);
    assert_eq!((said.code, &said.error()["details"]["lockedBy"]), (6, &json!("alice")));
    let why = place.json(&["why", "task:a1b2c3d4-e5f6"]).data();
    assert_eq!(why["waiters"], json!([]), "{why}");
}
