//! `tasks.json`, changed under a kernel lock.

use crate::place::{StoreLocation, assert_done_once, errors};
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

fn place(tasks: Vec<Value>) -> StoreLocation {
    let place = StoreLocation::new("c", "coordination");
    let list = json!({ "version": "1.0", "created_at": "2026-01-01T00:00:00Z",
        "last_updated": "2026-01-01T00:00:00Z", "goal": "kept", "tasks": tasks });
    place.write("c/tasks.json", &list);
    place
}

fn entry(place: &StoreLocation, id: &str) -> Value {
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
    // Shown if a task was worked on twice: whose claim was lost, and why.
    println!("{said}\n{}", place.ok(&["events", "--last", "1000"]));
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

/// A claim of another program, as it writes it.
fn claimed(id: &str, by: &str, at: &str) -> Value {
    let mut task = task(id, "claimed");
    task["claimed_by"] = by.into();
    task["claimed_at"] = at.into();
    task
}

fn code(place: &StoreLocation, args: &[&str]) -> (Option<i32>, String) {
    let output = place.command(args).output().expect("it runs");
    (output.status.code(), errors(&output))
}

#[test]
fn an_operator_ends_another_programs_claim_in_its_file() {
    let force = ["--force", "--reason", "its terminal was closed"];
    for verb in [&["break", "task:a"][..], &["locks", "release", "a"]] {
        let now = jiff::Timestamp::now().to_string();
        let place = place(vec![claimed("a", "term-1", &now), claimed("b", "term-2", &now)]);
        place.ok(&[verb, &force].concat());
        let freed = entry(&place, "a");
        assert_eq!(freed["status"], "available", "{verb:?}: {freed}");
        assert_eq!((&freed["claimed_by"], &freed["claimed_at"]), (&Value::Null, &Value::Null));
        assert_eq!(freed["owner"], json!({ "kept": true }));
        assert_eq!(entry(&place, "b")["claimed_by"], "term-2", "only the one that was named");
        assert_eq!(place.status("a"), "pending");
        assert!(!place.ok(&["locks"]).contains("term-1"));
        let events = place.ok(&["events"]);
        assert!(events.contains("term-1") && events.contains("its terminal was closed"));
        // Another program, or tenure, can take it now.
        place.ok(&["tasks", "claim", "a", "--as", "me", "--no-wait"]);
        assert_eq!(entry(&place, "a")["claimed_by"], "me");
    }
}

#[test]
fn what_another_program_works_on_is_changed_by_hand_only_as_far_as_that_can_be() {
    let now = jiff::Timestamp::now().to_string();
    let place = place(vec![claimed("a", "term-1", &now), task("b", "available")]);
    for verb in ["retry", "delete"] {
        let (code, errors) = code(&place, &["tasks", verb, "a"]);
        assert_ne!(code, Some(0), "{verb}: {errors}");
        assert!(errors.contains("in_progress") || errors.contains("term-1"), "{verb}: {errors}");
    }
    place.ok(&["tasks", "update", "a", "--priority", "30"]);
    let after = entry(&place, "a");
    assert_eq!(after["priority"], 3);
    assert_eq!((&after["status"], &after["claimed_by"]), (&json!("claimed"), &json!("term-1")));
    assert_eq!(place.status("a"), "in_progress");
    place.ok(&["tasks", "cancel", "a"]);
    assert_eq!(entry(&place, "a")["status"], "cancelled");
    assert_eq!(place.status("a"), "cancelled");
}

#[test]
fn a_foreign_claim_counts_as_in_progress_wherever_tasks_are_counted() {
    let now = jiff::Timestamp::now().to_string();
    let place = place(vec![claimed("a", "term-1", &now), task("b", "available")]);
    let stats: Value =
        serde_json::from_str(&place.ok(&["--json", "tasks", "stats"])).expect("JSON");
    assert_eq!(stats["data"]["total"]["in_progress"], 1, "{stats}");
    assert_eq!(stats["data"]["total"]["pending"], 1, "{stats}");
    let list: Value =
        serde_json::from_str(&place.ok(&["--json", "tasks", "list", "--status", "in_progress"]))
            .expect("JSON");
    assert_eq!(list["data"]["tasks"].as_array().map(Vec::len), Some(1), "{list}");
    let top: Value = serde_json::from_str(&place.ok(&["--json", "top", "--once"])).expect("JSON");
    let one = json!({ "section": null, "status": "in_progress", "count": 1 });
    assert!(top["data"]["tallies"].as_array().expect("a list").contains(&one), "{top}");
}

#[test]
fn a_claim_older_than_the_limit_that_was_set_is_taken_over() {
    let old = "2026-01-01T00:00:00+00:00";
    let now = jiff::Timestamp::now().to_string();
    let place = place(vec![claimed("a", "term-1", old), claimed("b", "term-2", &now)]);
    assert_eq!(code(&place, &["tasks", "claim", "a", "--no-wait"]).0, Some(6), "there is no limit");
    let limited = ["--store", "file:c?dialect=coordination&claim_limit=2h"];
    let run = |args: &[&str]| place.ok(&[&limited, args].concat());
    assert!(run(&["locks"]).contains("(>2h)"));
    assert!(run(&["tasks", "list"]).contains("pending"));
    run(&["tasks", "claim", "a", "--as", "me", "--no-wait"]);
    assert_eq!(entry(&place, "a")["claimed_by"], "me");
    let (code, errors) =
        code(&place, &[&limited[..], &["tasks", "claim", "b", "--no-wait"]].concat());
    assert_eq!(code, Some(6), "{errors}");
    assert_eq!(entry(&place, "b")["claimed_by"], "term-2", "it is not old");
    run(&["tasks", "complete", "a", "--as", "me"]);
    assert_eq!(entry(&place, "a")["status"], "done");
}

/// Nothing ends such a claim but its program or an operator, so no view names a time.
#[test]
fn a_claim_without_a_limit_is_shown_as_that() {
    let place = place(vec![claimed("a", "term-1", "2026-01-01T00:00:00+00:00")]);
    for args in [&["locks"][..], &["why", "task:a"], &["tasks", "show", "a"], &["status", "task:a"]]
    {
        let text = place.ok(args);
        assert!(text.contains("no limit") || args[0] == "why", "{args:?}: {text}");
        assert!(!text.contains("365d") && !text.contains("36500d"), "{args:?}: {text}");
    }
    assert!(place.ok(&["why", "task:a"]).contains("freed when it is released"));
    let json = |args: &[&str]| -> Value {
        let text = place.ok(&[&["--json"], args].concat());
        serde_json::from_str::<Value>(&text).expect("JSON")["data"].clone()
    };
    let lock = json(&["locks"])["task_locks"][0].clone();
    assert_eq!(
        (&lock["expires_at"], &lock["seconds_left"]),
        (&Value::Null, &Value::Null),
        "{lock}"
    );
    assert_eq!(lock["state"], "held");
    assert_eq!(json(&["tasks", "show", "a"])["task"]["expires_at"], Value::Null);
    assert_eq!(json(&["status", "task:a"])["holder"]["expires_at"], Value::Null);
    assert_eq!(json(&["workers"])["workers"][0]["seconds_left"], Value::Null);
    let (_, errors) = code(&place, &["tasks", "claim", "a", "--no-wait"]);
    assert!(errors.contains("Lock expires at: no limit"), "{errors}");
}

/// Files that a task only reads are told to its worker; nothing waits for them.
#[test]
fn context_files_are_told_and_not_held() {
    let tasks = (0..3).map(|n| {
        let mut task = task(&format!("t{n}"), "available");
        task["context"] = json!({ "files": ["src/main.py"], "hints": "look first" });
        task
    });
    let place = place(tasks.collect());
    for n in 0..3 {
        let claim = ["--json", "tasks", "claim", "--no-wait", "--as", &format!("w{n}")];
        let claim: Value = serde_json::from_str(&place.ok(&claim)).expect("JSON");
        let text = claim["data"].to_string();
        assert!(text.contains("src/main.py") && text.contains("look first"), "{text}");
    }
    assert!(!place.ok(&["locks"]).contains("path:"), "no file is held");
    let context = entry(&place, "t0")["context"].clone();
    assert_eq!(context, json!({ "files": ["src/main.py"], "hints": "look first" }));
    // What is to be held is told too.
    place.ok(&["tasks", "add", "edit", "--id", "edit", "--file", "src/**"]);
    assert_eq!(entry(&place, "edit")["context"]["files"], json!(["src/**"]));
    place.ok(&["tasks", "claim", "edit", "--as", "me"]);
    assert!(place.ok(&["locks"]).contains("path:src/**"), "and is held");
}

#[test]
fn files_that_an_agent_names_are_in_the_list() {
    let place = place(vec![]);
    let arguments = json!({ "id": "m", "description": "read them",
        "context_files": ["docs/a.md", "docs/b.md"], "hints": "both" });
    place.agent(&[("create_task", arguments)]);
    let context = entry(&place, "m")["context"].clone();
    assert_eq!(context, json!({ "files": ["docs/a.md", "docs/b.md"], "hints": "both" }));
    // Another program changes them.
    let mut list = place.json("c/tasks.json");
    list["tasks"][0]["context"]["files"] = json!(["docs/c.md"]);
    place.write("c/tasks.json", &list);
    assert!(place.ok(&["--json", "tasks", "show", "m"]).contains("docs/c.md"));
    place.ok(&["tasks", "claim", "m", "--as", "me"]);
    assert_eq!(entry(&place, "m")["context"]["files"], json!(["docs/c.md"]));
}

#[test]
fn priorities_keep_their_order_on_the_other_scale() {
    let place = place(vec![]);
    let tasks = [("x", 2), ("y", 8), ("z", 50), ("last", 100)];
    let tasks = tasks.map(|(id, priority)| json!({ "id": id, "title": id, "priority": priority }));
    place.write("new.json", &json!({ "tasks": tasks }));
    place.ok(&["tasks", "import", "new.json"]);
    let written: Vec<f64> = ["x", "y", "z", "last"]
        .map(|id| entry(&place, id)["priority"].as_f64().expect("a number"))
        .to_vec();
    assert!(written.windows(2).all(|pair| pair[0] < pair[1]), "{written:?}");
    assert!((1.0..=10.0).contains(&written[0]) && written[2..] == [5.0, 10.0], "{written:?}");
    // And back: what is read again is what was given.
    let mut list = place.json("c/tasks.json");
    list["tasks"][0]["description"] = "x, edited by another program".into();
    place.write("c/tasks.json", &list);
    let shown: Value =
        serde_json::from_str(&place.ok(&["--json", "tasks", "show", "x"])).expect("JSON");
    assert_eq!(shown["data"]["task"]["priority"], 2);
}

#[test]
fn an_entry_that_makes_no_sense_blocks_that_task_alone() {
    let mut cycle = [task("c1", "available"), task("c2", "available")];
    cycle[0]["dependencies"] = json!(["c2"]);
    cycle[1]["dependencies"] = json!(["c1"]);
    let [c1, c2] = cycle;
    let mut after = task("after", "available");
    after["dependencies"] = json!(["good"]);
    let tasks = vec![task("odd", "frobnicating"), c1, c2, task("good", "available"), after];
    let place = place(tasks);
    for (id, why) in [("odd", "frobnicating"), ("c1", "c1 → c2 → c1"), ("c2", "c2 → c1 → c2")]
    {
        assert_eq!(place.status(id), "blocked");
        for command in [&["tasks", "show", id][..], &["why", id]] {
            let said = place.ok(command);
            assert!(said.contains(why), "{command:?}: {said}");
        }
        let (code, errors) = code(&place, &["tasks", "claim", id, "--no-wait"]);
        assert_eq!(code, Some(6), "{id}: {errors}");
    }
    assert_eq!(entry(&place, "odd")["status"], "frobnicating", "left as it is");
    let (doctor, _) = code(&place, &["doctor"]);
    assert_eq!(doctor, Some(7));
    let doctor = place.command(&["doctor"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("\"odd\"") && said.contains("c1 → c2 → c1"), "{said}");
    // The others are done meanwhile.
    place.ok(&["work", "--until-empty", "--", "true"]);
    for id in ["good", "after"] {
        assert_eq!(entry(&place, id)["status"], "done");
    }
    let mut list = place.json("c/tasks.json");
    list["tasks"][0]["status"] = "available".into();
    list["tasks"][1]["dependencies"] = json!([]);
    place.write("c/tasks.json", &list);
    place.ok(&["work", "--until-empty", "--", "true"]);
    for id in ["odd", "c1", "c2"] {
        assert_eq!(entry(&place, id)["status"], "done", "mended, and done");
    }
    place.ok(&["doctor"]);
}

/// As `datetime.fromisoformat` of Python 3.7 to 3.10 reads them: no `Z`, three or six digits.
fn old_python_reads(value: &Value) {
    let text = value.as_str().unwrap_or_else(|| panic!("a time as text: {value}"));
    let shape: String =
        text.chars().map(|one| if one.is_ascii_digit() { '9' } else { one }).collect();
    let seconds = shape.strip_suffix("+99:99").unwrap_or_else(|| panic!("an offset: {text}"));
    let known = ["9999-99-99T99:99:99", "9999-99-99T99:99:99.999", "9999-99-99T99:99:99.999999"];
    assert!(known.contains(&seconds), "{text}");
}

#[test]
fn times_are_written_as_every_python_reads_them() {
    let place = place(vec![task("a", "available")]);
    place.ok(&["tasks", "add", "b", "--id", "b"]);
    place.ok(&["tasks", "claim", "a", "--as", "me"]);
    place.ok(&["tasks", "complete", "a", "--as", "me"]);
    old_python_reads(&place.json("c/tasks.json")["last_updated"]);
    for name in ["claimed_at", "completed_at"] {
        old_python_reads(&entry(&place, "a")[name]);
    }
    old_python_reads(&entry(&place, "b")["created_at"]);
    place.ok(&["tasks", "export", "--format", "coordination", "--output", "out.json"]);
    let exported = place.json("out.json");
    old_python_reads(&exported["created_at"]);
    for task in exported["tasks"].as_array().expect("a list") {
        old_python_reads(&task["created_at"]);
    }
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
        assert!(errors(&output).contains("another program's"), "{}", errors(&output));
        assert!(!errors(&output).contains("empty store"), "{}", errors(&output));
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
