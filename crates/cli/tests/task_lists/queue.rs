//! `queue.json`, lock files and `execution_log.jsonl`.

use crate::place::{StoreLocation, assert_done_once};
use serde_json::{Value, json};

/// Where a claim or a finish can be cut short, and where an addition can.
pub(crate) const STEPS: [&str; 4] = ["files-taken", "log-appended", "append-before", "append-done"];
pub(crate) const QUEUE_STEPS: [&str; 2] = ["queue-drafted", "queue-replaced"];

fn place(tasks: Vec<Value>) -> StoreLocation {
    let place = StoreLocation::new("task_locks", "worker");
    let queue = json!({ "version": "1.0", "tasks": tasks, "completed": [], "failed": [] });
    place.write("queue.json", &queue);
    place
}

fn task(id: &str) -> Value {
    json!({ "id": id, "instruction": format!("do {id}"), "priority": 5, "dependencies": [] })
}

/// The last word of the log about a task.
fn last(place: &StoreLocation, id: &str) -> String {
    let log = place.text("execution_log.jsonl");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("whole lines"));
    let mut about = events.filter(|event| event["task_id"] == id);
    about
        .next_back()
        .map(|event| event["status"].as_str().unwrap_or_default().to_owned())
        .expect("told")
}

#[test]
fn others_and_tenure_share_one_queue_and_do_each_task_once() {
    let mut tasks: Vec<Value> = (0..80).map(|n| task(&format!("t{n}"))).collect();
    for (n, task) in tasks.iter_mut().enumerate().skip(40) {
        task["dependencies"] = json!([format!("t{}", n - 40)]);
    }
    let place = place(tasks);
    let others: Vec<_> = (0..4)
        .map(|n| place.foreign("worker.py", &[".", &format!("worker_{n}"), "done"]))
        .collect();
    let work = "echo $TENURE_TASK_ID tenure >>done";
    place.ok(&["swarm", "-n", "4", "--", "sh", "-c", work]);
    for mut other in others {
        assert!(other.wait().expect("it ends").success());
    }
    assert_done_once(&place, 80);
    for n in 0..80 {
        assert_eq!(last(&place, &format!("t{n}")), "completed");
    }
    let locks = std::fs::read_dir(place.path("task_locks")).expect("a folder");
    let left: Vec<_> = locks
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .filter(|name| name.ends_with(".lock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_tenure_does_is_in_the_log_and_what_the_log_says_is_known() {
    let place = place(vec![task("a"), task("b"), task("c")]);
    place.ok(&["tasks", "claim", "a", "--as", "me"]);
    assert_eq!(last(&place, "a"), "in_progress");
    let lock = place.json("task_locks/a.lock");
    assert_eq!((&lock["worker_id"], &lock["task_id"]), (&json!("me"), &json!("a")));
    place.ok(&["tasks", "complete", "a", "--as", "me"]);
    assert_eq!(last(&place, "a"), "completed");
    assert!(!place.path("task_locks/a.lock").exists());

    let log = place.text("execution_log.jsonl")
        + "{\"task_id\":\"b\",\"worker_id\":\"w\",\"status\":\"completed\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"
        + "{\"task_id\":\"c\",\"worker_id\":\"w\",\"status\":\"failed\",\"error\":\"broken\"}\n{\"task_id\":\"c\",\"sta";
    std::fs::write(place.path("execution_log.jsonl"), log).expect("written");
    assert_eq!(place.status("b"), "completed");
    assert_eq!(place.status("c"), "failed");
    place.ok(&["tasks", "retry", "c"]);
    assert_eq!(place.status("c"), "pending");
    let torn = place.text("execution_log.jsonl");
    let whole = torn.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count();
    assert_eq!(torn.lines().count(), whole + 1, "a line was added to the torn one: {torn}");
    place.ok(&["tasks", "add", "later", "--priority", "10"]);
    let queue = place.json("queue.json");
    let added = queue["tasks"].as_array().and_then(|tasks| tasks.last()).expect("it was added");
    assert_eq!((&added["instruction"], &added["priority"]), (&json!("later"), &json!(90)));
}

#[test]
fn a_tasks_text_has_several_names() {
    let place = place(vec![
        json!({ "id": "a", "instruction": "first line\nand more" }),
        json!({ "id": "b", "prompt": "ask the model" }),
        json!({ "id": "c", "task": "do the thing" }),
        json!({ "id": "d" }),
        json!({ "id": "e", "title": "short", "prompt": "long" }),
    ]);
    let shown = |id: &str| -> Value {
        let shown = place.ok(&["--json", "tasks", "show", id]);
        serde_json::from_str::<Value>(&shown).expect("JSON")["data"]["task"].clone()
    };
    for (id, title) in [
        ("a", "first line"),
        ("b", "ask the model"),
        ("c", "do the thing"),
        ("d", "d"),
        ("e", "short"),
    ] {
        assert_eq!(shown(id)["title"], title);
    }
    assert_eq!(shown("a")["description"], "first line\nand more");
    assert_eq!(shown("e")["description"], "long");
    // Its program finds an edit where it wrote the text.
    place.ok(&["tasks", "update", "b", "--title", "ask another"]);
    let queue = place.json("queue.json");
    assert_eq!(queue["tasks"][1]["prompt"], "ask another", "{queue}");
    assert!(queue["tasks"][1].get("instruction").is_none(), "{queue}");
}

#[test]
fn an_entry_that_makes_no_sense_stops_nothing_else() {
    let place = place(vec![json!({ "id": "odd", "status": "frobnicating" }), task("good")]);
    assert_eq!(place.status("odd"), "blocked");
    place.ok(&["work", "--until-empty", "--", "true"]);
    assert_eq!(last(&place, "good"), "completed");
}

#[test]
fn what_other_workers_have_is_counted_as_it_is_shown() {
    let place = place(vec![task("a"), task("b"), task("c")]);
    let now = jiff::Timestamp::now().to_string();
    let lock = |id: &str, at: &str| json!({ "worker_id": "w", "started_at": at, "task_id": id });
    place.write("task_locks/a.lock", &lock("a", &now));
    place.write("task_locks/b.lock", &lock("b", "2026-01-01T00:00:00Z"));
    let stats: Value =
        serde_json::from_str(&place.ok(&["--json", "tasks", "stats"])).expect("JSON");
    assert_eq!(stats["data"]["total"]["in_progress"], 1, "the other one is stale: {stats}");
    assert_eq!(stats["data"]["total"]["pending"], 2, "{stats}");
    assert_eq!(
        (place.status("a").as_str(), place.status("b").as_str()),
        ("in_progress", "pending")
    );
}

#[test]
fn a_queue_that_cannot_be_read_is_never_answered_with_advice_to_begin_anew() {
    let place = place(vec![]);
    std::fs::write(place.path("queue.json"), "{\"tasks\": 3}").expect("written");
    let output = place.command(&["tasks", "list"]).output().expect("it runs");
    let errors = crate::place::errors(&output);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("queue.json") && errors.contains("another program's"), "{errors}");
    assert!(!errors.contains("empty store"), "{errors}");
}

#[test]
fn a_death_at_any_step_leaves_a_queue_that_all_can_go_on_with() {
    for step in STEPS {
        for verb in ["claim", "complete"] {
            let place = place(vec![task("a"), task("b")]);
            if verb == "complete" {
                place.ok(&["tasks", "claim", "a", "--as", "me", "--ttl", "200ms"]);
            } else {
                place.ok(&["tasks", "list"]);
            }
            let lease: &[&str] = if verb == "claim" { &["--ttl", "200ms"] } else { &[] };
            let mut command = place.command(&[&["tasks", verb, "a", "--as", "me"], lease].concat());
            let output = command.env("TENURE_FAULT", step).output().expect("it runs");
            assert_eq!(output.status.code(), None, "{verb} did not die at {step}");
            place.ok(&["swarm", "-n", "2", "--", "true"]);
            for id in ["a", "b"] {
                assert_eq!(last(&place, id), "completed", "{verb} at {step}");
                assert_eq!(place.status(id), "completed", "{verb} at {step}");
            }
        }
    }
    for (step, left) in QUEUE_STEPS.into_iter().zip([1, 2]) {
        let place = place(vec![]);
        let mut command = place.command(&["tasks", "add", "x"]);
        let output = command.env("TENURE_FAULT", step).output().expect("it runs");
        assert_eq!(output.status.code(), None);
        place.ok(&["tasks", "add", "x"]);
        // What was in the queue already is there, though nobody was told.
        assert_eq!(
            place.json("queue.json")["tasks"].as_array().map(Vec::len),
            Some(left),
            "{step}"
        );
    }
}
