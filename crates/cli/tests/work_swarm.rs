//! `tenure swarm`: all tasks, several at a time, and what it says of them.

mod work_support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tenure::core::Status;
use work_support::{Bench, Said};

fn tasks(count: usize) -> Value {
    let task =
        |n| json!({ "id": format!("t{n}"), "title": format!("task {n}"), "max_attempts": 1 });
    (0..count).map(task).collect()
}

#[test]
fn all_tasks_are_done_once_and_counted() {
    let bench = Bench::new(tasks(20));
    let said = bench.tenure(&["swarm", "-n", "4", "--json", "--", "sh", "-c", "echo hi"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let envelope: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(envelope["data"]["completed"], 20);
    assert_eq!(envelope["data"]["tasks"]["completed"], 20);
    assert_eq!(envelope["data"]["all_done"], true);
    for n in 0..20 {
        assert_eq!(bench.history(&format!("t{n}")), ["added", "acquired", "completed"]);
    }
    assert_eq!(bench.await_file(".tenure/logs/t3-1.log"), "hi\n");
}

/// As a user of `tenure work` would type it.
#[test]
fn a_swarm_that_is_told_to_end_when_no_task_is_left_does_what_it_does_anyway() {
    let bench = Bench::new(tasks(3));
    let said = bench.tenure(&["swarm", "-n", "2", "--until-empty", "--", "true"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("3 completed"), "{}", said.stdout);
    let said = bench.tenure(&["swarm", "--until-empty", "--forever", "--", "true"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[test]
fn a_task_that_failed_is_told_and_fails_the_swarm() {
    let bench = Bench::new(tasks(3));
    let script = "[ $TENURE_TASK_ID != t1 ] || { echo bad luck; exit 9; }";
    let said = bench.tenure(&["swarm", "-n", "2", "--", "sh", "-c", script]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("failed t1 \"task 1\" in "), "{}", said.stderr);
    assert!(said.stderr.contains("exit code 9: bad luck"), "{}", said.stderr);
    assert!(said.stdout.contains("2 completed, 1 failed"), "{}", said.stdout);
    assert!(said.stdout.contains("Not all tasks are done: 1 failed"), "{}", said.stdout);
}

/// Two swarms, each started again when it is killed, as a supervisor would.
#[test]
fn a_task_that_kills_its_swarms_is_set_aside_and_the_others_are_done() {
    let mut tasks =
        json!([{ "id": "poison", "title": "poison", "priority": 1, "max_attempts": 100 }]);
    tasks.as_array_mut().unwrap().extend((0..20).map(|n| {
        let after: Vec<String> = (n == 19).then(|| "t0".to_owned()).into_iter().collect();
        json!({ "id": format!("t{n}"), "title": "fine", "depends_on": after })
    }));
    let bench = Bench::new(tasks);
    // One worker each: what else is at work in a swarm that is killed loses its worker too.
    let script = "[ $TENURE_TASK_ID != poison ] || kill -9 $PPID; sleep 0.05";
    let start = || bench.spawn(&["swarm", "-n", "1", "--", "sh", "-c", script]);
    let mut swarms = [start(), start()];
    let mut killed = 0;
    let mut codes = [None, None];
    while codes.contains(&None) {
        for (swarm, code) in swarms.iter_mut().zip(&mut codes) {
            match swarm.try_wait().unwrap().filter(|_| code.is_none()) {
                Some(ended) if ended.code().is_none() => {
                    killed += 1;
                    assert!(killed < 10, "it is handed out for ever");
                    *swarm = start();
                }
                Some(ended) => *code = ended.code(),
                None => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
    }
    assert_eq!((codes, killed), ([Some(1), Some(1)], 3), "not all is done");
    assert_eq!(bench.task("poison").status, Status::Blocked);
    let history = bench.history("poison");
    assert_eq!(history.last().map(String::as_str), Some("set_aside"));
    for n in 0..20 {
        assert_eq!(bench.task(&format!("t{n}")).status, Status::Completed, "t{n}");
    }
}

#[test]
fn ctrl_c_once_lets_what_runs_end_and_twice_hands_it_back() {
    for (signals, status) in [(1, Status::Completed), (2, Status::Pending)] {
        let bench = Bench::new(tasks(2));
        let script = "echo > begun; while [ ! -e go ]; do sleep 0.02; done";
        let swarm = bench.spawn(&["swarm", "-n", "1", "--", "sh", "-c", script]);
        bench.await_file("begun");
        let pid = Pid::from_child(&swarm);
        kill_process(pid, Signal::INT).unwrap();
        bench.await_words("Stopping");
        match signals {
            1 => std::fs::write(bench.path("go"), "").unwrap(),
            _ => kill_process(pid, Signal::INT).unwrap(),
        }
        let said = Said::from(swarm.wait_with_output().unwrap());
        assert_eq!(said.code, Some(1), "not all is done");
        assert_eq!(bench.task("t0").status, status);
        assert_eq!(bench.history("t1"), ["added"]);
    }
}

#[test]
fn tasks_of_a_file_are_added_once() {
    let bench = Bench::new(tasks(2));
    for _ in 0..2 {
        let said = bench.tenure(&["swarm", "--tasks", "tasks.json", "--", "true"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
    assert_eq!(bench.history("t0"), ["added", "acquired", "completed"]);
}

#[test]
fn the_envelope_of_a_swarm_says_what_its_exit_code_says() {
    let bench = Bench::new(tasks(2));
    let script = "[ $TENURE_TASK_ID != t1 ]";
    let said = bench.tenure(&["swarm", "-n", "2", "--json", "--", "sh", "-c", script]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let envelope: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(envelope["success"], false);
    assert_eq!(envelope["error"]["code"], "NOT_ALL_DONE");
    assert_eq!(envelope["error"]["message"], "Not all tasks are done: 1 failed");
    assert_eq!(envelope["data"]["completed"], 1, "the report is there all the same");
}

#[test]
fn a_command_that_prints_nothing_leaves_no_log() {
    let bench = Bench::new(tasks(3));
    let script = "[ $TENURE_TASK_ID != t1 ] || echo hi >&2";
    let said = bench.tenure(&["swarm", "-n", "2", "--logs", "logs", "--", "sh", "-c", script]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let logs: Vec<_> = std::fs::read_dir(bench.path("logs")).unwrap().flatten().collect();
    let names: Vec<_> = logs.iter().map(std::fs::DirEntry::file_name).collect();
    assert_eq!(names, ["t1-1.log"]);
}

#[test]
fn quiet_is_quiet() {
    let bench = Bench::new(tasks(2));
    let said = bench.tenure(&["-q", "swarm", "-n", "2", "--", "true"]);
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn each_worker_of_a_swarm_has_its_name() {
    let bench = Bench::new(tasks(1));
    let line = "echo $TENURE_AGENT; tenure acquire db --ttl 1m -q >/dev/null";
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let mut command = bench.command(&["swarm", "-n", "1", "--as", "alice", "-c", line]);
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    let said = Said::from(command.output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let label = bench.await_file(".tenure/logs/t0-1.log");
    assert!(label.starts_with("alice"), "{label}");
    let held: Value =
        serde_json::from_str(&bench.tenure(&["status", "db", "--json"]).stdout).unwrap();
    assert_eq!(held["data"]["holder"]["session_id"], label.trim(), "{held}");
}

#[test]
fn a_swarm_that_waits_says_so_where_nothing_can_be_redrawn() {
    let bench = Bench::new(json!([{ "id": "t0", "title": "T", "section": "S" }]));
    let held = bench.tenure(&["acquire", "section:S", "--as", "bob", "-q"]);
    assert_eq!(held.code, Some(0), "{}", held.stderr);
    let swarm = bench.spawn(&["swarm", "-n", "2", "--", "true"]);
    bench.await_words("Waiting for 1 pending");
    assert_eq!(bench.tenure(&["release", "section:S", "--as", "bob"]).code, Some(0));
    let said = Said::from(swarm.wait_with_output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.stdout);
}

#[test]
fn a_worker_that_waits_says_so_and_does_not_call_it_done_when_it_is_stopped() {
    let bench = Bench::new(json!([{ "id": "t0", "title": "T", "section": "S" }]));
    let held = bench.tenure(&["acquire", "section:S", "--as", "bob", "-q"]);
    assert_eq!(held.code, Some(0), "{}", held.stderr);
    let worker = bench.spawn(&["work", "--until-empty", "--", "true"]);
    bench.await_words("Waiting for a task");
    kill_process(Pid::from_raw(worker.id() as i32).unwrap(), Signal::TERM).unwrap();
    worker.wait_with_output().unwrap();
    let words = std::fs::read_to_string(bench.path("stderr")).unwrap();
    assert!(words.contains("Stopping: ") && !words.contains("No task is left"), "{words}");
}

/// Each command waits until all of them run.
#[test]
fn the_items_below_one_heading_of_a_checklist_are_done_at_once() {
    let bench = Bench::new(json!([]));
    let list: String = (0..3).map(|n| format!("- [ ] item {n}\n")).collect();
    std::fs::write(bench.path("TODO.md"), format!("# Plan\n\n{list}")).unwrap();
    let script = "echo >> begun; while [ $(wc -l < begun) -lt 3 ]; do sleep 0.02; done";
    let words = ["swarm", "-n", "3", "--tasks", "TODO.md", "--", "sh", "-c", script];
    let said = bench.tenure(&words);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}
