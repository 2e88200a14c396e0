//! Task files through the command: what is wrong is named with its place, what waits for itself is
//! named, nothing is added by halves, and a file may be long.

mod task_support;

use serde_json::{Value, json};
use task_support::StoreLocation;

/// How many tasks there are in all.
fn count(place: &StoreLocation) -> u64 {
    let total = place.json(&["tasks", "stats"]).data()["total"].clone();
    total.as_object().unwrap().values().filter_map(Value::as_u64).sum()
}

#[test]
fn a_malformed_file_is_refused_with_its_line_and_column_and_adds_nothing() {
    for (name, text, line, column) in [
        ("plan.json", "{\"tasks\": [\n  {\"title\": \"good\"},\n  {\"title\": }\n]}", 3, 13),
        ("cut.json", "{\"tasks\": [\n  {\"title\": \"good\"}", 2, 19),
        ("plan.yaml", "tasks:\n- title: good\n- title: a\n  title: b\n", 4, 3),
        ("plan.yml", "tasks:\n- title: good\n- [a\n", 3, 3),
        ("TODO.md", "# Plan\n- [ ] good\n- [?] bad\n", 3, 1),
        ("TODO.md", "- [ ] good\n  - [ ] bad (priority: no)\n", 2, 3),
        (
            ".coordination/tasks.json",
            "{\"version\": \"1.0\", \"tasks\": [\n {\"id\": \"1\", \"description\": \"good\"},\n {\"id\": \"2\",,}]}",
            3,
            13,
        ),
        (
            "queue.json",
            "{\"tasks\": [{\"id\": \"1\", \"instruction\": \"good\"}],\n \"completed\": [}",
            2,
            16,
        ),
    ] {
        let place = StoreLocation::new();
        place.add(&["before"]);
        place.write(name, text);
        for more in [None, Some("--dry-run")] {
            let args: Vec<&str> = ["tasks", "import", name].into_iter().chain(more).collect();
            let said = place.tenure(&args);
            assert_eq!(said.code, 1, "{name}: {}", said.err);
            let beginning = format!("Error: {name}: line {line}, column {column}: ");
            assert!(said.err.starts_with(&beginning), "{name}: {}", said.err);
            assert_eq!(said.err.lines().count(), 2, "{name}: {}", said.err);
            assert!(said.err.contains("nothing was added"), "{name}: {}", said.err);
        }
        let error = place.json(&["tasks", "import", name]).error();
        assert_eq!(error["code"], "TASK_FILE");
        assert_eq!(error["details"], json!({ "file": name, "line": line, "column": column }));
        assert_eq!(count(&place), 1, "{name}: something was added");
    }
}

#[test]
fn a_value_that_cannot_be_is_refused_with_its_task_and_field_and_adds_nothing() {
    for (name, text, expected) in [
        (
            "a.json",
            json!([{ "title": "good" }, { "id": "x", "title": "x", "status": "odd" }]),
            "task 2 (\"x\"): status: ",
        ),
        (
            "queue.json",
            json!({ "tasks": [{ "id": "1", "instruction": "good" }], "completed": 3 }),
            "`completed` is a number",
        ),
        (
            ".coordination/tasks.json",
            json!({ "version": "1.0", "tasks": [{ "id": "t", "description": "x", "status": "odd" }] }),
            "task 1 (\"t\"): status: ",
        ),
    ] {
        let place = StoreLocation::new();
        place.add(&["before"]);
        place.write(name, &text.to_string());
        let said = place.tenure(&["tasks", "import", name]);
        assert_eq!(said.code, 1, "{name}: {}", said.err);
        assert!(
            said.err.starts_with(&format!("Error: {name}: {expected}")),
            "{name}: {}",
            said.err
        );
        assert_eq!(count(&place), 1, "{name}: something was added");
    }
}

#[test]
fn tasks_of_a_file_that_would_wait_for_each_other_are_named_and_nothing_is_added() {
    let long: Vec<Value> = (0..1000)
        .map(|n| json!({ "id": format!("t{n}"), "title": "t", "depends_on": [format!("t{}", (n + 1) % 1000)] }))
        .collect();
    let coordination = json!({ "version": "1.0", "tasks": [
        { "id": "1", "description": "a", "dependencies": ["2"] },
        { "id": "2", "description": "b", "dependencies": ["1"] },
    ] });
    let queue = json!({ "tasks": [
        { "id": "1", "instruction": "a", "depends_on": ["2"] },
        { "id": "2", "instruction": "b", "dependencies": ["1"] },
    ] });
    let yaml = "tasks:\n- {id: good, title: good}\n- {id: p, title: p, after: [q]}\n\
                - {id: q, title: q, after: [r]}\n- {id: r, title: r, after: [p]}\n";
    for (name, text, cycle) in [
        ("self.json", r#"[{"id": "a", "title": "a", "after": ["a"]}]"#, "a → a"),
        ("plan.yaml", yaml, "p → q → r → p"),
        (
            "TODO.md",
            "- [ ] good\n- [ ] a (id: a, after: b)\n- [ ] b (id: b, after: a)\n",
            "a → b → a",
        ),
        (".coordination/tasks.json", &coordination.to_string(), "1 → 2 → 1"),
        ("queue.json", &queue.to_string(), "1 → 2 → 1"),
        ("long.json", &json!(long).to_string(), "t9 → (990 more) → t0"),
    ] {
        let place = StoreLocation::new();
        place.write(name, text);
        let said = place.json(&["tasks", "import", name]);
        assert_eq!((said.code, &said.error()["code"]), (2, &json!("TASK_REFUSED")), "{name}");
        let message = said.error()["message"].as_str().unwrap().to_owned();
        let beginning = "circular dependency of tasks: ";
        assert!(message.starts_with(beginning) && message.ends_with(cycle), "{name}: {message}");
        assert_eq!(count(&place), 0, "{name}: something was added");
    }
}

/// A new task can wait only for those that are there, and what a task waits for does not change
/// later: so neither adding nor updating one can close a cycle.
#[test]
fn one_task_alone_cannot_close_a_cycle() {
    let place = StoreLocation::new();
    place.add(&["A", "--id", "a"]);
    place.add(&["B", "--id", "b", "--after", "a"]);
    let said = place.json(&["tasks", "add", "C", "--id", "c", "--after", "c"]);
    assert_eq!((said.code, &said.error()["code"]), (4, &json!("TASK_NOT_FOUND")));
    assert_eq!(place.tenure(&["tasks", "update", "a", "--after", "b"]).code, 2);
    place.write("again.json", r#"[{"id": "a", "title": "A", "after": ["b"]}]"#);
    place.ok(&["tasks", "import", "again.json"]);
    assert_eq!(place.task("a")["depends_on"], json!([]), "what is there stays as it is");
    assert_eq!(count(&place), 2);
}

#[test]
fn a_hundred_thousand_tasks_are_imported_at_once_and_handed_out() {
    const TASKS: u64 = 100_000;
    let place = StoreLocation::new();
    // Each waits for the one a hundred before it: a thousand chains.
    let task = |n: u64| {
        let after: Vec<String> = n.checked_sub(100).map(|n| format!("t{n}")).into_iter().collect();
        json!({ "id": format!("t{n}"), "title": format!("task {n}"), "depends_on": after,
                "section": format!("s{}", n % 10), "priority": n % 100 })
    };
    let sections: Vec<Value> =
        (0..10).map(|n| json!({ "name": format!("s{n}"), "max_runners": null })).collect();
    let file = json!({ "tasks": (0..TASKS).map(task).collect::<Value>(), "sections": sections });
    place.write("tasks.json", &file.to_string());
    assert_eq!(place.ok(&["tasks", "import", "tasks.json"]), "Added 100000 tasks");
    assert_eq!(place.json(&["tasks", "stats"]).data()["total"]["pending"], TASKS);
    for expected in ["t0", "t1", "t2"] {
        assert_eq!(place.claim(&["--as", expected])["id"], expected);
    }
    place.ok(&["tasks", "complete", "t0", "--as", "t0"]);
    assert_eq!(place.claim(&["--as", "next"])["id"], "t100", "it waited for t0");
    assert_eq!(place.ok(&["tasks", "import", "tasks.json"]), "Added 0 tasks; 100000 already exist");
    let total = place.json(&["tasks", "stats"]).data()["total"].clone();
    assert_eq!((&total["pending"], &total["in_progress"]), (&json!(TASKS - 4), &json!(3)));
}
