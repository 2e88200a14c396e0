//! Several runners over one list: real processes that claim, wait, lapse and finish late.

mod task_support;

use serde_json::{Value, json};
use task_support::StoreLocation;

/// "Two Runners, Same Section", step by step.
#[test]
fn two_runners_in_the_same_section() {
    let place = StoreLocation::new();
    place.add(&["Task 1", "--section", "Backend"]);
    place.add(&["Task 2", "--section", "Backend"]);
    // Runner A starts Task 1.
    place.claim(&["Task 1", "--as", "Runner A"]);
    // Runner B wants Task 2: it has no lock, but the section has.
    let now = place.tenure(&["tasks", "claim", "Task 2", "--as", "Runner B", "--no-wait"]);
    assert_eq!(now.code, 6);
    assert!(now.err.starts_with("Error: Section \"Backend\" is locked by runner Runner A\n"));
    let mut waiting = place.start(&["tasks", "claim", "Task 2", "--as", "Runner B", "-w", "60"]);
    assert_eq!(waiting.line(), "Section \"Backend\" is locked by another runner.");
    assert_eq!(waiting.line(), "Waiting for lock... (Ctrl+C to cancel)");
    // Runner A completes Task 1 and keeps the section, because Task 2 is left.
    let data = place.json(&["tasks", "complete", "Task 1", "--as", "Runner A"]).data();
    assert_eq!(data["gave_up_section"], false);
    assert_eq!(place.claim(&["--as", "Runner A"])["title"], "Task 2");
    // Runner B is told that Task 2 is Runner A's now.
    let now = place.json(&["tasks", "claim", "Task 2", "--as", "Runner B", "-n"]);
    assert_eq!(now.error()["code"], "TASK_LOCKED");
    // Runner A completes Task 2. Nothing is left: it releases the section.
    let data = place.json(&["tasks", "complete", "Task 2", "--as", "Runner A"]).data();
    assert_eq!(data["gave_up_section"], true);
    assert_eq!(place.ok(&["locks"]), "Nothing is held");
    // Only now Runner B's wait ends; Task 2 is done, and there is none for it.
    assert_eq!(waiting.line(), "Lock released!");
    let ended = waiting.end();
    assert_eq!(ended.code, 6);
    assert!(ended.err.contains("it is completed"), "{}", ended.err);
    let idle = place.json(&["tasks", "claim", "--section", "Backend", "--as", "Runner B"]);
    assert_eq!((idle.code, &idle.error()["code"]), (4, &json!("NOTHING_READY")));
}

/// "Lock Expired", step by step.
#[test]
fn an_expired_lock_is_claimed_by_the_next() {
    let place = StoreLocation::new();
    place.add(&["Task 1", "--id", "t"]);
    // Runner A starts and is never heard of again.
    let first = place.claim(&["t", "--as", "Runner A", "--ttl", "300ms"]);
    // Runner B finds the lock, waits for its end, and claims it.
    let second = place.claim(&["t", "--as", "Runner B", "-w", "60"]);
    assert!(second["token"].as_u64() > first["token"].as_u64());
    assert_eq!(second["attempts"], 2);
    assert_eq!(second["recoveries"], 1);
    assert!(place.ok(&["events"]).contains("it was held by Runner A"));
    place.ok(&["tasks", "complete", "t", "--as", "Runner B"]);
}

#[test]
fn a_late_finish_is_refused_and_changes_nothing() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    let first = place.claim(&["t", "--as", "a", "--ttl", "300ms"]);
    place.claim(&["t", "--as", "b", "-w", "60"]);
    let before = place.task("t");
    let (grant, token) = (first["grant"].as_str().unwrap(), first["token"].to_string());
    for (verb, more) in [
        ("complete", vec!["--grant", grant]),
        ("complete", vec!["--as", "a"]),
        ("fail", vec!["--grant", grant]),
        ("review", vec!["--grant", grant]),
        ("release", vec!["--grant", grant]),
        ("start", vec!["--grant", grant]),
        ("heartbeat", vec!["--grant", grant]),
    ] {
        let said = place.json(&[&["tasks", verb, "t"], more.as_slice()].concat());
        assert_eq!((said.code, &said.error()["code"]), (8, &json!("LEASE_LOST")), "{verb}");
        assert_eq!(said.error()["details"]["lockedBy"], "b");
    }
    // The label is right again, but the claim is another one.
    for verb in ["complete", "heartbeat", "start"] {
        let said = place.json(&["tasks", verb, "t", "--as", "b", "--token", &token]);
        assert_eq!((said.code, &said.error()["code"]), (8, &json!("TOKEN_REFUSED")), "{verb}");
    }
    assert_eq!(place.task("t"), before);
    place.ok(&["tasks", "complete", "t", "--as", "b"]);
}

#[test]
fn twelve_completions_at_once_are_all_kept() {
    let place = StoreLocation::new();
    let names: Vec<String> = (0..12).map(|number| format!("task-{number}")).collect();
    for name in &names {
        place.add(&[name, "--id", name]);
        place.claim(&[name, "--as", name]);
    }
    let running: Vec<_> = names
        .iter()
        .map(|name| place.start(&["tasks", "complete", name, "--as", name, "--result", name]))
        .collect();
    for one in running {
        let said = one.end();
        assert_eq!(said.code, 0, "{}", said.err);
    }
    for name in &names {
        let task = place.task(name);
        assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &json!(name)));
    }
}

#[test]
fn of_eight_that_claim_one_task_at_once_one_gets_it() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    let running: Vec<_> =
        (0..8).map(|_| place.start(&["--json", "tasks", "claim", "t", "-n"])).collect();
    let codes: Vec<i32> = running.into_iter().map(|one| one.end().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 6).count(), 7, "{codes:?}");
    assert_eq!(place.task("t")["attempts"], 1);
}

#[test]
fn updating_to_in_progress_waits_for_the_lock_and_says_so() {
    let place = StoreLocation::new();
    place.add(&["Fix bug", "--id", "bug"]);
    place.claim(&["bug", "--as", "f47ac10b-58cc"]);
    let update = ["tasks", "update", "Fix bug", "--status", "in_progress"];
    let refused = place.tenure(&[&update[..], &["--no-wait"]].concat());
    assert_eq!(refused.code, 6);
    let mut lines = refused.err.lines();
    let first = "Error: Task \"Fix bug\" is locked by runner f47ac10b-58cc";
    assert_eq!(lines.next(), Some(first));
    let expiry = lines.next().unwrap();
    assert!(expiry.starts_with("Lock expires at: 2") && expiry.ends_with('Z'), "{expiry}");
    assert!(!refused.err.contains("force"), "a refusal does not teach forcing");

    let refused = place.json(&[&update[..], &["--no-wait"]].concat());
    let error = refused.error();
    assert_eq!((refused.code, &error["code"]), (6, &json!("TASK_LOCKED")));
    let details = &error["details"];
    assert_eq!(details["taskId"], "bug");
    assert_eq!(details["lockedBy"], "f47ac10b-58cc");
    assert_eq!(details["runnerId"], details["lockedBy"]);
    assert!(details["expiresAt"].is_string());

    let mut waiting = place.start(&[&update[..], &["--as", "next", "-w", "60"]].concat());
    assert_eq!(waiting.line(), "Task \"Fix bug\" is locked by another runner.");
    assert_eq!(waiting.line(), "Waiting for lock... (Ctrl+C to cancel)");
    place.ok(&["tasks", "release", "bug", "--as", "f47ac10b-58cc"]);
    assert_eq!(waiting.line(), "Lock released!");
    let ended = waiting.end();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.starts_with("Task \"Fix bug\" status updated to in_progress.\n"));
    assert_eq!(place.task("bug")["claimed_by"], "next");
}

#[test]
fn a_heartbeat_extends_the_task_and_the_section_that_its_runner_keeps() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--section", "S", "--file", "src/**"]);
    place.claim(&["t", "--as", "a", "--ttl", "1m"]);
    let data = place.json(&["tasks", "heartbeat", "t", "--as", "a", "--ttl", "2h"]).data();
    assert_eq!(data["section_renewed"], true);
    let locks = place.json(&["locks"]).data();
    for kind in ["task_locks", "path_locks", "section_locks"] {
        let left = locks[kind][0]["seconds_left"].as_f64().unwrap();
        assert!(left > 3600.0, "{kind}: {left}");
    }
}

#[test]
fn a_claim_without_a_label_ends_its_section_with_the_task() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--section", "S"]);
    place.add(&["U", "--id", "u", "--section", "S"]);
    let claimed = place.claim(&["t"]);
    assert_eq!(place.json(&["tasks", "claim", "-n"]).error()["code"], "SECTION_LOCKED");
    let grant = claimed["grant"].as_str().unwrap();
    place.ok(&["tasks", "complete", "t", "--grant", grant]);
    assert_eq!(place.claim(&[])["id"], "u");
}

#[test]
fn a_runner_gives_up_a_section_in_which_others_ended_the_last_task() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--section", "S"]);
    place.add(&["U", "--id", "u", "--section", "S"]);
    place.claim(&["t", "--as", "a"]);
    place.ok(&["tasks", "complete", "t", "--as", "a"]);
    place.ok(&["tasks", "cancel", "u"]);
    assert_eq!(place.json(&["locks"]).data()["section_locks"][0]["runner_id"], "a");
    assert_eq!(place.tenure(&["tasks", "claim", "--as", "a"]).code, 4);
    assert_eq!(place.json(&["locks"]).data()["section_locks"], json!([]));
}

#[test]
fn a_claim_tied_to_a_process_ends_with_it() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--section", "S"]);
    let mut worker = std::process::Command::new("/bin/sleep").arg("600").spawn().unwrap();
    let pid = worker.id().to_string();
    place.claim(&["t", "--as", "a", "--pid", &pid]);
    assert_eq!(place.tenure(&["tasks", "claim", "t", "--as", "b", "-n"]).code, 6);
    worker.kill().unwrap();
    worker.wait().unwrap();
    let recovered = place.json(&["tasks", "recover"]).data();
    assert_eq!(recovered["tasks"][0]["id"], "t");
    assert_eq!(place.claim(&["t", "--as", "b", "-n"])["claimed_by"], "b");
}

#[test]
fn sections_wait_pause_and_refuse_cycles() {
    let place = StoreLocation::new();
    place.ok(&["sections", "add", "Build", "--max-runners", "2"]);
    place.ok(&["sections", "add", "Ship", "--after", "Build"]);
    let said = place.json(&["sections", "update", "Build", "--after", "Ship"]);
    assert_eq!((said.code, &said.error()["code"]), (2, &json!("SECTION_REFUSED")));
    let message = said.error()["message"].to_string();
    assert!(message.contains("Build → Ship → Build"), "{message}");
    for (args, code) in [
        (vec!["add", "X", "--after", "Missing"], 4),
        (vec!["add", "X", "--max-runners", "0"], 2),
        (vec!["add", "*"], 2),
        (vec!["update", "Missing"], 4),
        (vec!["show", "Missing"], 4),
        (vec!["pause", "Missing"], 4),
        (vec!["reorder", "Build", "Build"], 2),
    ] {
        let said = place.json(&[&["sections"], args.as_slice()].concat());
        assert_eq!(said.code, code, "{args:?} {}", said.out);
    }

    place.add(&["b1", "--id", "b1", "--section", "Build"]);
    place.add(&["b2", "--id", "b2", "--section", "Build"]);
    place.add(&["s", "--id", "s", "--section", "Ship"]);
    assert!(place.ok(&["why", "s"]).contains("section Ship waits for section Build to be done"));
    place.ok(&["sections", "pause"]);
    assert_eq!(place.json(&["tasks", "claim", "--as", "a"]).error()["code"], "NOT_READY");
    place.ok(&["sections", "resume"]);
    place.claim(&["--as", "a"]);
    place.claim(&["--as", "b"]);
    for (task, who) in [("b1", "a"), ("b2", "b")] {
        place.ok(&["tasks", "complete", task, "--as", who]);
    }
    place.ok(&["sections", "pause", "Ship"]);
    assert_eq!(place.tenure(&["tasks", "claim", "--as", "a"]).code, 6);
    place.ok(&["sections", "resume", "Ship"]);
    assert_eq!(place.claim(&["--as", "a"])["id"], "s");

    place.ok(&["sections", "reorder", "Ship", "Build"]);
    let data = place.json(&["sections", "list"]).data();
    let names: Vec<&Value> =
        data["sections"].as_array().unwrap().iter().map(|section| &section["name"]).collect();
    assert_eq!(names, ["Ship", "Build"]);
    assert!(place.ok(&["sections", "graph", "--format", "dot"]).contains(r#""Build" -> "Ship";"#));
    assert!(place.ok(&["sections", "graph", "--format", "mermaid"]).starts_with("graph LR"));
    assert!(place.ok(&["sections", "graph"]).contains("after Build"));
    assert!(place.ok(&["sections", "show", "Ship"]).contains("is held by a"));
}

#[test]
fn the_urgent_task_of_a_dead_worker_does_not_wait_behind_what_is_ready() {
    let place = StoreLocation::new();
    place.add(&["Urgent", "--id", "urgent", "--priority", "0"]);
    place.add(&["Other", "--id", "other"]);
    let mut worker = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = worker.id().to_string();
    assert_eq!(place.claim(&["--as", "a", "--pid", &pid])["id"], "urgent");
    worker.kill().unwrap();
    worker.wait().unwrap();
    let next = place.claim(&["--as", "b"]);
    assert_eq!((&next["id"], &next["attempts"]), (&json!("urgent"), &json!(2)));
}

#[test]
fn how_often_a_task_may_lose_its_worker_can_be_set() {
    for (limit, status) in [("1", "blocked"), ("3", "pending"), ("4", "pending")] {
        let place = StoreLocation::new();
        place.ok(&["config", "set", "tasks.maxRecoveries", limit]);
        place.add(&["T", "--id", "t"]);
        place.claim(&["t", "--as", "a", "--ttl", "100ms"]);
        std::thread::sleep(std::time::Duration::from_millis(110));
        place.ok(&["tasks", "recover"]);
        assert_eq!(place.task("t")["status"], status, "{limit}");
    }
    let place = StoreLocation::new();
    for limit in ["0", "1.5", "many", ""] {
        let said = place.tenure(&["config", "set", "tasks.maxRecoveries", limit]);
        assert_eq!(said.code, 3, "{limit}: {}", said.err);
        assert!(said.err.contains("use a whole number of at least 1"), "{}", said.err);
    }
}
