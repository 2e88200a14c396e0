//! `tasks.json`, changed under a kernel lock.

use crate::place::{Place, assert_done_once, errors};
use serde_json::{Value, json};

/// Where a change to this list can be cut short.
pub(crate) const STEPS: [&str; 5] =
    ["files-taken", "tasks-drafted", "tasks-replaced", "append-before", "append-done"];

fn task(id: &str, status: &str) -> Value {
    json!({
        "id": id, "description": format!("do {id}"), "status": status, "priority": 5,
        "claimed_by": null, "dependencies": [], "context": { "files": [], "hints": "" },
        "result": null, "created_at": "2026-01-01T00:00:00Z", "claimed_at": null,
        "started_at": null, "completed_at": null, "owner": { "kept": true },
    })
}

fn place(tasks: Vec<Value>) -> Place {
    let place = Place::new("c", "coordination");
    let list = json!({ "version": "1.0", "created_at": "2026-01-01T00:00:00Z",
        "last_updated": "2026-01-01T00:00:00Z", "goal": "kept", "tasks": tasks });
    place.write("c/tasks.json", &list);
    place
}

fn entry(place: &Place, id: &str) -> Value {
    let list = place.json("c/tasks.json");
    let tasks = list["tasks"].as_array().expect("a list").iter();
    tasks.into_iter().find(|task| task["id"] == id).expect("it is listed").clone()
}

#[test]
fn others_and_a_swarm_share_one_list_and_do_each_task_once() {
    let mut tasks: Vec<Value> = (0..120).map(|n| task(&format!("t{n}"), "available")).collect();
    for (n, task) in tasks.iter_mut().enumerate().skip(60) {
        task["dependencies"] = json!([format!("t{}", n - 60)]);
    }
    let place = place(tasks);
    let others: Vec<_> = (0..4)
        .map(|n| place.foreign("coordination.py", &["c", &format!("term-{n}"), "done"]))
        .collect();
    let work = "echo $TENURE_TASK_ID tenure >>done";
    let said = place.ok(&["swarm", "-n", "4", "--", "sh", "-c", work]);
    for mut other in others {
        assert!(other.wait().expect("it ends").success());
    }
    assert_done_once(&place, 120);
    let list = place.json("c/tasks.json");
    assert_eq!(list["goal"], "kept");
    for task in list["tasks"].as_array().expect("a list") {
        assert_eq!(task["status"], "done", "{task} {said}");
        assert_eq!(task["owner"], json!({ "kept": true }));
        assert!(task.get("tenure").is_none(), "{task}");
    }
    assert_eq!(list["tasks"].as_array().map(Vec::len), Some(120));
}

#[test]
fn what_tenure_does_is_seen_by_the_others_and_the_other_way_round() {
    let place = place(vec![task("a", "available"), task("b", "available")]);
    place.ok(&["tasks", "claim", "a", "--as", "me"]);
    let claimed = entry(&place, "a");
    assert_eq!((&claimed["status"], &claimed["claimed_by"]), (&json!("claimed"), &json!("me")));
    place.ok(&["tasks", "complete", "a", "--as", "me", "--result", r#"{"files":1}"#]);
    let done = entry(&place, "a");
    assert_eq!((&done["status"], &done["result"]), (&json!("done"), &json!({ "files": 1 })));
    assert!(done["completed_at"].is_string());

    // Another program claims, fails and adds.
    let mut list = place.json("c/tasks.json");
    list["tasks"][1]["status"] = "in_progress".into();
    list["tasks"][1]["claimed_by"] = "term-1".into();
    list["tasks"].as_array_mut().expect("a list").push(task("c", "available"));
    place.write("c/tasks.json", &list);
    assert_eq!(place.status("b"), "in_progress");
    assert!(place.ok(&["locks"]).contains("term-1"));
    let refused = place.command(&["tasks", "claim", "b", "--no-wait"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(6), "{}", errors(&refused));
    assert!(errors(&refused).contains("term-1"), "{}", errors(&refused));
    list["tasks"][1]["status"] = "failed".into();
    list["tasks"][1]["result"] = json!({ "error": "broken" });
    place.write("c/tasks.json", &list);
    assert_eq!(place.status("b"), "failed");
    place.ok(&["tasks", "retry", "b"]);
    assert_eq!(entry(&place, "b")["status"], "available");
    place.ok(&["tasks", "add", "new here", "--priority", "20", "--after", "c"]);
    let list = place.json("c/tasks.json");
    let added = list["tasks"].as_array().and_then(|tasks| tasks.last()).expect("it was added");
    assert_eq!((&added["description"], &added["priority"]), (&json!("new here"), &json!(2)));
    assert_eq!(added["dependencies"], json!(["c"]));
}

/// The first programs only claim under the lock. What they write back from memory must not undo
/// what tenure did.
#[test]
fn what_is_written_back_from_memory_does_not_undo_what_tenure_did() {
    let place = place(vec![task("a", "available"), task("b", "available")]);
    let before_claim = place.json("c/tasks.json");
    place.ok(&["tasks", "claim", "a", "--as", "me"]);
    place.write("c/tasks.json", &before_claim);
    assert_eq!(place.status("a"), "in_progress", "tenure's worker still has it");
    assert_eq!(entry(&place, "a")["claimed_by"], "me");
    let before_end = place.json("c/tasks.json");
    place.ok(&["tasks", "complete", "a", "--as", "me"]);
    place.write("c/tasks.json", &before_end);
    assert_eq!(place.status("a"), "completed");
    assert_eq!(entry(&place, "a")["status"], "done");
    // Who claimed what tenure had, because the list said it was free, has it.
    place.ok(&["tasks", "claim", "b", "--as", "me"]);
    let mut list = place.json("c/tasks.json");
    list["tasks"][1] = task("b", "claimed");
    list["tasks"][1]["claimed_by"] = "term-1".into();
    place.write("c/tasks.json", &list);
    let late = place.command(&["tasks", "complete", "b", "--as", "me"]).output().expect("it runs");
    assert_ne!(late.status.code(), Some(0), "two finished one task");
    assert_eq!(entry(&place, "b")["claimed_by"], "term-1");
}

#[test]
fn a_list_that_cannot_be_read_is_refused_and_left_alone() {
    let place = place(vec![task("a", "available")]);
    place.ok(&["tasks", "list"]);
    let torn = "{\"version\":\"1.0\",\n \"tasks\": [ {\"id\": \"a\", ";
    std::fs::write(place.path("c/tasks.json"), torn).expect("written");
    for args in [["tasks", "list"], ["tasks", "claim"]] {
        let output = place.command(&args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
        assert!(errors(&output).contains("line 2"), "{}", errors(&output));
    }
    assert_eq!(place.text("c/tasks.json"), torn);
    // Locks need no list.
    place.ok(&["run", "x", "--", "true"]);
}

#[test]
fn a_death_at_any_step_leaves_a_list_that_all_can_go_on_with() {
    for step in STEPS {
        for verb in ["claim", "complete"] {
            let place = place(vec![task("a", "available"), task("b", "available")]);
            if verb == "complete" {
                place.ok(&["tasks", "claim", "a", "--as", "me", "--ttl", "200ms"]);
            } else {
                place.ok(&["tasks", "list"]);
            }
            let lease: &[&str] = if verb == "claim" { &["--ttl", "200ms"] } else { &[] };
            let mut command = place.command(&[&["tasks", verb, "a", "--as", "me"], lease].concat());
            let output = command.env("TENURE_FAULT", step).output().expect("it runs");
            assert_eq!(output.status.code(), None, "{verb} did not die at {step}");
            assert!(place.json("c/tasks.json")["tasks"].is_array(), "{verb} at {step}");
            // Whoever comes next does all of it, whatever was done and not yet reported.
            place.ok(&["swarm", "-n", "2", "--", "true"]);
            for id in ["a", "b"] {
                assert_eq!(entry(&place, id)["status"], "done", "{verb} at {step}");
                assert_eq!(place.status(id), "completed", "{verb} at {step}");
            }
            place.ok(&["doctor"]);
        }
    }
}
