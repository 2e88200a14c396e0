//! The life of a task through the command: every verb, from where it may and from where it may not.

mod task_support;

use serde_json::{Value, json};
use task_support::StoreLocation;

#[test]
fn a_task_is_added_claimed_and_completed() {
    let place = StoreLocation::new();
    let id = place.add(&[
        "Fix bug",
        "--section",
        "Backend",
        "--priority",
        "10",
        "--label",
        "rust",
        "--file",
        "src/**",
        "--payload",
        r#"{"issue": 7}"#,
        "--timeout",
        "5m",
        "--description",
        "In full",
    ]);
    assert!(id.len() == 8 && id.chars().all(|digit| digit.is_ascii_hexdigit()), "{id}");
    let task = place.task(&id);
    assert_eq!(task["status"], "pending");
    assert_eq!(task["payload"], json!({ "issue": 7 }));
    assert_eq!(task["timeout_seconds"], 300.0);
    assert_eq!(task["files"], json!(["src/**"]));

    let claimed = place.claim(&["--as", "alice", "--label", "rust"]);
    assert_eq!(claimed["id"], id.as_str());
    assert_eq!(claimed["claimed_by"], "alice");
    assert!(claimed["grant"].is_string() && claimed["token"].is_u64());
    assert!(claimed["expires_at"].as_str().unwrap().ends_with('Z'));
    let task = place.task(&id);
    assert_eq!(task["status"], "in_progress");
    let grant = claimed["grant"].as_str().unwrap();
    for args in [vec!["tasks", "show", &id], vec!["tasks", "list"], vec!["why", &id]] {
        let shown = place.json(&args).out;
        assert!(!shown.contains(grant), "the grant is the claimer's secret: {shown}");
    }

    place.ok(&["tasks", "start", &id, "--as", "alice"]);
    assert!(place.task(&id)["started_at"].is_string());
    place.ok(&["tasks", "complete", &id, "--grant", grant, "--result", r#"{"commit": "abc"}"#]);
    let task = place.task(&id);
    assert_eq!(task["status"], "completed");
    assert_eq!(task["result"], json!({ "commit": "abc" }));
    assert_eq!(task["claimed_by"], Value::Null);
    assert_eq!(task["finished_by"], "alice");
    assert!(task["finished_at"].is_string());
    assert!(place.ok(&["tasks", "show", &id]).contains("finished by  alice"));
    assert!(place.ok(&["tasks", "list"]).contains("alice"));
    assert_eq!(place.json(&["tasks", "list"]).data()["tasks"][0]["finished_by"], "alice");
    for format in ["json", "yaml", "markdown", "coordination"] {
        let exported = place.ok(&["tasks", "export", "--format", format]);
        assert!(exported.contains("alice"), "{format}: {exported}");
    }
    assert_eq!(place.ok(&["locks"]), "Nothing is held");
}

#[test]
fn a_failed_task_is_tried_again_after_a_pause_and_then_no_more() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--max-attempts", "2"]);
    place.claim(&["t", "--as", "a"]);
    place.ok(&["tasks", "fail", "t", "--as", "a", "--reason", "no network"]);
    let task = place.task("t");
    assert_eq!((&task["status"], &task["error"]), (&json!("pending"), &json!("no network")));
    assert!(task["not_before"].is_string());
    place.ok(&["tasks", "update", "t", "--not-before", "+1h"]);
    let early = place.json(&["tasks", "claim", "t", "--as", "a"]);
    assert_eq!((early.code, &early.error()["code"]), (6, &json!("NOT_READY")));
    assert_eq!(early.error()["details"]["why"], json!(["its time has not come"]));

    place.add(&["U", "--id", "u"]);
    place.claim(&["u", "--as", "a"]);
    place.ok(&["tasks", "fail", "u", "--as", "a", "--no-retry"]);
    assert_eq!(place.task("u")["status"], "failed");
    place.ok(&["tasks", "retry", "u"]);
    assert_eq!(place.task("u")["attempts"], 0);
    place.claim(&["u", "--as", "a"]);
}

#[test]
fn a_review_is_rejected_with_feedback_and_then_approved() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    place.claim(&["t", "--as", "a"]);
    assert_eq!(place.tenure(&["tasks", "approve", "t"]).code, 1);
    place.ok(&["tasks", "review", "t", "--as", "a", "--result", "plain words"]);
    assert_eq!(place.task("t")["result"], "plain words");
    place.ok(&["tasks", "reject", "t", "--feedback", "add a test"]);
    let task = place.task("t");
    assert_eq!((&task["status"], &task["feedback"]), (&json!("pending"), &json!("add a test")));
    place.claim(&["t", "--as", "a"]);
    place.ok(&["tasks", "update", "t", "--status", "review", "--as", "a"]);
    place.ok(&["tasks", "approve", "t"]);
    assert_eq!(place.task("t")["status"], "completed");
}

#[test]
fn a_task_waits_for_others_and_goes_on_when_they_are_done_or_skipped() {
    let place = StoreLocation::new();
    place.add(&["First", "--id", "a"]);
    place.add(&["Second", "--id", "b", "--after", "First", "--after", "a"]);
    let said = place.json(&["tasks", "claim", "Second"]);
    assert_eq!((said.code, &said.error()["code"]), (6, &json!("NOT_READY")));
    assert!(place.ok(&["why", "Second"]).contains(r#"it waits for a ("First"), which is pending"#));
    let deleted = place.tenure(&["tasks", "delete", "a"]);
    assert_eq!(deleted.code, 1, "{}", deleted.err);
    place.ok(&["tasks", "skip", "a"]);
    assert!(place.ok(&["why", "task:b"]).contains("is ready"));
    place.claim(&["b", "--as", "x"]);
    place.ok(&["tasks", "cancel", "b"]);
    assert_eq!(place.tenure(&["tasks", "complete", "b", "--as", "x"]).code, 8);
    place.ok(&["tasks", "delete", "b"]);
    assert_eq!(place.tenure(&["tasks", "show", "b"]).code, 4);
}

#[test]
fn a_task_is_put_off_or_given_back_without_counting_the_attempt() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    place.ok(&["tasks", "update", "t", "--not-before", "+1h"]);
    assert_eq!(place.json(&["tasks", "claim"]).error()["code"], "NOT_READY");
    place.add(&["U", "--id", "u"]);
    place.claim(&["u", "--as", "a"]);
    assert_eq!(place.tenure(&["tasks", "snooze", "u", "--for", "1h", "--as", "b"]).code, 8);
    place.ok(&["tasks", "release", "u", "--as", "a"]);
    assert_eq!(place.task("u")["attempts"], 0);
    place.claim(&["u", "--as", "a"]);
    place.ok(&["tasks", "snooze", "u", "--for", "1h", "--as", "a"]);
    let task = place.task("u");
    assert_eq!((&task["status"], &task["attempts"]), (&json!("pending"), &json!(0)));
}

#[test]
fn the_same_key_adds_no_second_task() {
    let place = StoreLocation::new();
    let first = place.json(&["tasks", "add", "Nightly", "--key", "n1"]).data();
    let second = place.json(&["tasks", "add", "Nightly again", "--key", "n1"]).data();
    assert_eq!((&first["created"], &second["created"]), (&json!(true), &json!(false)));
    assert_eq!(first["task"]["id"], second["task"]["id"]);
    assert_eq!(second["task"]["title"], "Nightly");
    assert_eq!(place.json(&["tasks", "list"]).data()["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_task_is_found_by_id_by_a_beginning_of_it_and_by_title() {
    let place = StoreLocation::new();
    place.add(&["Same", "--id", "abc1"]);
    place.add(&["Same", "--id", "abd2"]);
    for (text, id) in [("abc1", "abc1"), ("abd", "abd2"), ("task:abc1", "abc1")] {
        assert_eq!(place.task(text)["id"], id);
    }
    assert_eq!(place.ok(&["why", "ab"]), "ab is free");
    for text in ["Same", "ab"] {
        let said = place.json(&["tasks", "show", text]);
        assert_eq!((said.code, &said.error()["code"]), (2, &json!("TASK_AMBIGUOUS")));
        let message = said.error()["message"].to_string();
        assert!(message.contains("abc1") && message.contains("abd2"), "{message}");
    }
}

#[test]
fn the_text_of_a_task_has_no_power_over_the_terminal() {
    let place = StoreLocation::new();
    let red = "\u{1b}[31m";
    place.add(&[&format!("{red}T"), "--id", "t", "--description", &format!("two\nlines{red}")]);
    for args in [["tasks", "show", "t"], ["tasks", "list", "--limit=1"], ["tasks", "cancel", "t"]] {
        let said = place.coloured(&args);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.contains("[31mT") && !said.out.contains(red), "{:?}", said.out);
    }
}

#[test]
fn fields_change_and_statuses_come_about_by_their_verbs() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    place.ok(&["tasks", "update", "t", "--title", "Better", "--priority", "5", "--section", "S"]);
    let task = place.task("t");
    assert_eq!((&task["title"], &task["priority"]), (&json!("Better"), &json!(5)));
    assert_eq!(task["section"], "S");
    let out = place.ok(&["tasks", "update", "Better", "--status", "in_progress", "--as", "a"]);
    assert!(out.starts_with("Task \"Better\" status updated to in_progress."), "{out}");
    place.ok(&["tasks", "update", "t", "--status", "done", "--as", "a"]);
    assert_eq!(place.task("t")["status"], "completed");
    let said = place.json(&["tasks", "update", "t", "--status", "in_progress", "--as", "a"]);
    assert_eq!((said.code, &said.error()["code"]), (6, &json!("NOT_READY")));
    assert_eq!(place.tenure(&["tasks", "update", "t", "--status", "cancelled"]).code, 1);
    assert_eq!(place.tenure(&["tasks", "update", "t"]).code, 2);
}

#[test]
fn claims_go_by_priority_then_position_and_come_in_batches() {
    let place = StoreLocation::new();
    place.add(&["c", "--id", "c"]);
    place.add(&["b", "--id", "b", "--position", "-1"]);
    place.add(&["a", "--id", "a", "--priority", "1"]);
    assert_eq!(place.ok(&["-q", "tasks", "claim"]), "a");
    assert_eq!(place.ok(&["-q", "tasks", "claim", "--count", "5"]), "b\nc");
    let data = place.json(&["tasks", "stats"]).data();
    assert_eq!(data["total"]["in_progress"], 3);
    let listed = place.json(&["tasks", "list", "--status", "claimed", "--limit", "2"]).data();
    assert_eq!((&listed["tasks"].as_array().unwrap().len(), &listed["more"]), (&2, &json!(true)));
}

#[test]
fn every_wrong_input_gets_a_sentence_and_changes_nothing() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    let deep = "[".repeat(10_000);
    for (args, code) in [
        (vec!["add", "x", "--payload", "{a"], 2),
        (vec!["add", "x", "--payload", &deep], 2),
        (vec!["add", "x", "--priority", "101"], 2),
        (vec!["add", "x", "--priority", "-1"], 2),
        (vec!["add", "x", "--id", "t"], 2),
        (vec!["add", "x", "--id", "a\nb"], 2),
        (vec!["add", "  "], 2),
        (vec!["add", "x", "--section", ""], 2),
        (vec!["add", "x", "--file", "../../etc"], 2),
        (vec!["add", "x", "--max-attempts", "0"], 2),
        (vec!["add", "x", "--timeout", "5 parsecs"], 2),
        (vec!["add", "x", "--not-before", "tomorrow"], 2),
        (vec!["add", "x", "--after", "missing"], 4),
        (vec!["list", "--status", "lost"], 2),
        (vec!["update", "t", "--status", "lost"], 2),
        (vec!["update", "t", "--title", ""], 2),
        (vec!["show", ""], 2),
        (vec!["show", "missing"], 4),
        (vec!["claim", "missing"], 4),
        (vec!["claim", "--count", "0"], 2),
        (vec!["claim", "--ttl", "0s"], 2),
        (vec!["complete", "t"], 2),
        (vec!["complete", "t", "--grant", "mine"], 2),
        (vec!["complete", "t", "--as", "a"], 8),
        (vec!["reject", "t"], 2),
        (vec!["retry", "t"], 1),
    ] {
        let said = place.json(&[&["tasks"], args.as_slice()].concat());
        assert_eq!(said.code, code, "{args:?}: {} {}", said.out, said.err);
        assert!(!said.error()["message"].as_str().unwrap().is_empty(), "{args:?}");
    }
    let tasks = place.json(&["tasks", "list"]).data();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(tasks["tasks"][0]["status"], "pending");
}

/// How a worker can end its work.
const ENDS: [&[&str]; 5] =
    [&["complete"], &["fail"], &["review"], &["snooze", "--for", "1h"], &["release"]];

#[test]
fn no_end_of_a_claim_counts_after_the_claim_is_lost() {
    let losses: [(&str, &[&[&str]]); 4] = [
        ("never claimed", &[]),
        ("a part was broken", &[&["break", "section:S", "--force", "--reason", "test"]]),
        (
            "broken and taken back",
            &[&["break", "task:t", "--force", "--reason", "test"], &["tasks", "recover"]],
        ),
        (
            "claimed again",
            &[
                &["break", "task:t", "--force", "--reason", "test"],
                &["tasks", "recover"],
                &["tasks", "claim", "t", "--as", "b"],
            ],
        ),
    ];
    for (loss, steps) in losses {
        let place = StoreLocation::new();
        place.add(&["T", "--id", "t", "--section", "S"]);
        let mut proofs = vec![
            ["--grant".to_owned(), "00000000-0000-4000-8000-000000000000".to_owned()],
            ["--token".to_owned(), "77".to_owned()],
        ];
        if !steps.is_empty() {
            let claimed = place.claim(&["t", "--as", "a"]);
            let grant = claimed["grant"].as_str().expect("a claim prints its grant");
            proofs.push(["--grant".to_owned(), grant.to_owned()]);
        }
        steps.iter().for_each(|step| drop(place.ok(step)));
        let before = place.task("t");
        for end in ENDS {
            for proof in &proofs {
                let args = [&["tasks", end[0], "t", "--as", "a"], &end[1..]].concat();
                let args: Vec<_> =
                    args.into_iter().chain(proof.iter().map(String::as_str)).collect();
                let said = place.tenure(&args);
                assert_eq!(said.code, 8, "{loss}: {args:?}: {}", said.err);
                assert_eq!(place.task("t"), before, "{loss}: {args:?}");
            }
        }
    }
}
