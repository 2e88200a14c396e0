//! What is going on and what happened: the output of tasks, live and afterwards, the workers, idle ones
//! too, and the history of one task, with real processes.

mod work_support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Duration;
use work_support::Bench;

fn data(bench: &Bench, args: &[&str]) -> Value {
    let said = bench.tenure(&[args, &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    serde_json::from_str::<Value>(&said.stdout).unwrap()["data"].clone()
}

/// Waits until this is as wanted; gives what it was then.
fn until<T>(what: &str, mut look: impl FnMut() -> T, wanted: impl Fn(&T) -> bool) -> T {
    for _ in 0..600 {
        let found = look();
        if wanted(&found) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} does not come");
}

fn log(bench: &Bench) -> Value {
    data(bench, &["tasks", "log", "t"])
}

#[test]
fn the_output_of_each_attempt_is_kept_and_harmless() {
    let bench = Bench::new(json!([{ "id": "t", "title": "t", "max_attempts": 3 }]));
    let script = r"printf 'first \033[31mred\033[0m\n'; echo problem >&2; exit 1";
    assert_eq!(bench.work(&["--once", "--as", "alice"], script).code, Some(1));
    let first = log(&bench);
    assert_eq!((&first["attempt"], &first["by"]), (&json!(1), &json!("alice")), "{first}");
    assert_eq!((&first["outcome"], &first["running"]), (&json!("failed"), &json!(false)));
    let text = first["text"].as_str().unwrap();
    assert!(text.contains("first red\n") && text.contains("problem\n"), "{text:?}");
    assert!(!text.contains('\u{1b}'), "{text:?}");

    let shown = data(&bench, &["tasks", "show", "t", "--history"]);
    let attempt = &shown["task"]["tries"][0];
    assert_eq!((&attempt["has_output"], &attempt["by"]), (&json!(true), &json!("alice")));
    assert!(attempt["seconds"].as_f64().is_some(), "{attempt}");
    let history = shown["history"].as_array().unwrap();
    let words: Vec<&str> = history.iter().filter_map(|event| event["event"].as_str()).collect();
    assert!(words.starts_with(&["added", "acquired"]) && words.contains(&"failed"), "{words:?}");
    assert!(history.iter().all(|event| event["resource"] == "task:t"), "{history:?}");

    let said = bench.tenure(&["tasks", "log", "t", "--attempt", "7"]);
    assert_eq!(said.code, Some(4), "{}", said.stderr);
    assert_eq!(bench.tenure(&["tasks", "delete", "t"]).code, Some(0));
    assert_eq!(bench.tenure(&["tasks", "log", "t"]).code, Some(4));
}

#[test]
fn output_is_seen_while_the_command_runs_and_workers_while_they_are_idle() {
    let bench = Bench::new(json!([{ "id": "t", "title": "T", "section": "api" }]));
    let script = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended";
    let mut worker = bench.start(&["--as", "alice", "--section", "api"], script);
    let running = until("output", || log_if_there(&bench), |log| log["text"] == "begun\n");
    assert_eq!(running["running"], true, "{running}");
    let workers = || data(&bench, &["workers"]);
    let busy = until("a working worker", workers, |data| data["workers"][0]["state"] == "working");
    let one = &busy["workers"][0];
    assert_eq!((&one["holder"], &one["section"]), (&json!("alice"), &json!("api")), "{busy}");
    assert_eq!(one["tasks"][0]["id"], "t", "{busy}");
    assert_eq!(one["pid"], worker.id(), "{busy}");
    assert_eq!((&busy["count"], busy["workers"].as_array().unwrap().len()), (&json!(1), 1));
    std::fs::write(bench.path("go"), "").unwrap();
    let is_idle = |data: &Value| data["workers"][0]["done"] == 1;
    let idle = until("an idle worker", workers, is_idle);
    assert_eq!(
        (&idle["workers"][0]["state"], &idle["count"]),
        (&json!("idle"), &json!(1)),
        "{idle}"
    );
    assert_eq!(log(&bench)["text"], "begun\nended\n");
    // A worker that ends leaves at once.
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    worker.wait().unwrap();
    assert_eq!(workers()["workers"], json!([]));
}

fn log_if_there(bench: &Bench) -> Value {
    let said = bench.tenure(&["tasks", "log", "t", "--json"]);
    serde_json::from_str::<Value>(&said.stdout).map_or(Value::Null, |said| said["data"].clone())
}

#[test]
fn a_killed_worker_does_not_count_and_its_output_stays() {
    let bench = Bench::new(json!([{ "id": "t", "title": "T" }]));
    let script = "echo $$ > pid; echo begun; exec sleep 600";
    let mut worker = bench.start(&["--as", "alice"], script);
    until("output", || log_if_there(&bench), |log| log["text"] == "begun\n");
    let workers = || data(&bench, &["workers"]);
    until("the worker", workers, |data| data["workers"][0]["state"] == "working");
    kill_process(Pid::from_child(&worker), Signal::KILL).unwrap();
    worker.wait().unwrap();
    // The worker counts as dead when its command has ended too.
    let command: i32 = bench.await_file("pid").trim().parse().unwrap();
    kill_process(Pid::from_raw(command).unwrap(), Signal::KILL).unwrap();
    let next = bench.work(&["--once", "--as", "bob", "--idle-exit", "60s"], "echo second");
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    let workers = workers();
    let alice = workers["workers"].as_array().unwrap().iter().find(|one| one["holder"] == "alice");
    assert!(alice.is_none_or(|alice| alice["state"] == "gone"), "{workers}");
    assert_eq!(workers["count"], 0, "{workers}");
    assert_eq!(log(&bench)["text"], "second\n");
    let first = data(&bench, &["tasks", "log", "t", "--attempt", "1"]);
    assert_eq!((&first["text"], &first["outcome"]), (&json!("begun\n"), &json!("died")), "{first}");
}
