//! `tenure work` with real commands: what a command is told, what its end means, and what happens
//! when the claim, the command or the worker comes to a bad end.

mod work_support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tenure::core::Status;
use work_support::{Bench, Said};

fn one(task: Value) -> Bench {
    Bench::new(json!([task]))
}

#[test]
fn a_command_is_told_its_task() {
    let bench = one(json!({
        "id": "t1", "title": "A title", "section": "Backend", "files": ["a/*", "b"],
        "payload": {"n": [1, 2]}, "description": "in full", "labels": ["x"],
    }));
    let script = r#"cat > input; printf '%s|' "$TENURE_TASK_ID" "$TENURE_TASK_TITLE" \
        "$TENURE_TASK_SECTION" "$TENURE_TASK_ATTEMPT" "$TENURE_TASK_PAYLOAD" "$TENURE_TASK_FILES" \
        "$TENURE_RESOURCE" > variables
        printf '%s\n' "$TENURE_TOKEN" "$TENURE_GRANT" "$TENURE_KEEPS" "$TENURE_STORE" > proof"#;
    let said = bench.work(&["--once"], script);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let input: Value = serde_json::from_str(&bench.await_file("input")).unwrap();
    assert_eq!(input["id"], "t1");
    assert_eq!(input["payload"], json!({"n": [1, 2]}));
    assert_eq!(input["description"], "in full");
    assert_eq!(input["attempt"], 1);
    let variables = std::fs::read_to_string(bench.path("variables")).unwrap();
    let expected = "t1|A title|Backend|1|{\"n\":[1,2]}|a/*\nb|task:t1\npath:a/*\npath:b|";
    assert_eq!(variables, expected);
    let proof = bench.await_file("proof");
    let [token, grant, keeps, store] = proof.lines().collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(input["token"].to_string(), token);
    // The grant of the task, and that under which the section is kept.
    let keeps: Vec<&str> = keeps.split(',').collect();
    assert!(keeps.len() == 2 && keeps.contains(&grant), "{keeps:?} {grant}");
    assert!(store.starts_with("sqlite:/"), "{store}");
}

#[test]
fn the_end_of_a_command_decides() {
    for (script, status, result, error) in [
        ("echo hello; echo '{\"a\": 1}'", Status::Completed, Some("{\"a\": 1}"), None),
        ("echo '{\"a\": 1}'; echo bye", Status::Completed, None, None),
        ("echo '{}' >&2", Status::Completed, None, None),
        ("echo 7; exit 76", Status::Review, Some("7"), None),
        ("exit 3", Status::Failed, None, Some("exit code 3")),
        ("echo out; echo no luck >&2; exit 3", Status::Failed, None, Some("exit code 3: no luck")),
        ("echo only out; exit 1", Status::Failed, None, Some("exit code 1: only out")),
        ("kill -9 $$", Status::Failed, None, Some("killed by signal 9")),
    ] {
        let bench = one(json!({ "id": "t", "title": "t", "max_attempts": 1 }));
        bench.work(&["--once"], script);
        let task = bench.task("t");
        assert_eq!(task.status, status, "{script}");
        assert_eq!(task.result.as_deref(), result, "{script}");
        assert_eq!(task.error.as_deref(), error, "{script}");
    }
}

#[test]
fn output_is_passed_on_and_the_code_too() {
    let bench = one(json!({ "id": "t", "title": "t" }));
    let Said { code, stdout, stderr } = bench.work(&["--once"], "echo out; echo err >&2; exit 42");
    assert_eq!((code, stdout.as_str()), (Some(42), "out\n"));
    assert!(stderr.contains("err\n") && stderr.contains("exit code 42"), "{stderr}");
}

#[test]
fn a_task_that_failed_is_tried_again_later() {
    let bench = one(json!({ "id": "t", "title": "t" }));
    bench.work(&["--once"], "exit 1");
    let task = bench.task("t");
    assert_eq!((task.status, task.attempts), (Status::Pending, 1));
    assert!(task.not_before.is_some());
    assert_eq!(bench.work(&["--once"], "true").code, Some(4), "its time has not come");
}

#[test]
fn a_task_is_put_off_by_code_75_and_the_attempt_does_not_count() {
    let bench = one(json!({ "id": "t", "title": "t" }));
    let said = bench.work(&["--once", "--snooze", "1h"], "exit 75");
    assert_eq!(said.code, Some(75));
    let task = bench.task("t");
    assert_eq!((task.status, task.attempts), (Status::Pending, 0));
    let pause = task.not_before.unwrap().0 - task.claimed_at.unwrap().0;
    assert!(pause >= 3_600_000, "{pause}");
}

#[test]
fn a_command_that_takes_too_long_is_stopped_with_all_that_it_started() {
    let task = json!({ "id": "t", "title": "t", "timeout_seconds": 0.3, "max_attempts": 1 });
    let bench = one(task);
    bench.work(&["--once", "--grace", "5s"], "sleep 600 & echo $! > pid; wait");
    assert_eq!(bench.task("t").error.as_deref(), Some("timed out after 300ms"));
    assert!(is_gone(bench.await_file("pid").trim()));
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn a_lost_claim_stops_the_command_and_finishes_nothing() {
    let bench = one(json!({ "id": "t", "title": "t" }));
    let script = "trap 'echo stopped > stopped; exit 0' TERM; echo $$ > begun; sleep 600 & wait";
    let worker = bench.start(&["--once", "--ttl", "600ms"], script);
    bench.await_file("begun");
    let said = bench.tenure(&["break", "task:t", "--force", "--reason", "test"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let said = Said::from(worker.wait_with_output().unwrap());
    assert_eq!(said.code, Some(8), "{}", said.stderr);
    bench.await_file("stopped");
    assert_eq!(bench.history("t"), ["added", "acquired", "broken", "recovered"]);
    assert_eq!(bench.task("t").status, Status::Pending, "it is taken back at once");
    assert_eq!(bench.work(&["--once"], "true").code, Some(0));
    assert_eq!(bench.task("t").status, Status::Completed);
}

#[test]
fn sigterm_lets_a_command_end_in_time() {
    let bench = Bench::new(json!([{ "id": "a", "title": "a" }, { "id": "b", "title": "b" }]));
    let script = "echo > begun; while [ ! -e go ]; do sleep 0.02; done";
    let worker = bench.start(&["--grace", "1h"], script);
    bench.await_file("begun");
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    bench.await_words("Stopping");
    std::fs::write(bench.path("go"), "").unwrap();
    let said = Said::from(worker.wait_with_output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(bench.task("a").status, Status::Completed);
    assert_eq!(bench.history("b"), ["added"], "no more tasks are taken");
}

#[test]
fn sigterm_hands_back_what_does_not_end_in_time() {
    let bench = one(json!({ "id": "t", "title": "t" }));
    let worker = bench.start(&["--grace", "100ms"], "echo $$ > begun; exec sleep 600");
    let command = bench.await_file("begun");
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    let said = Said::from(worker.wait_with_output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(is_gone(command.trim()));
    assert_eq!(bench.history("t"), ["added", "acquired", "handed_back"]);
    let task = bench.task("t");
    assert_eq!((task.status, task.attempts), (Status::Pending, 0));
}

#[test]
fn a_command_that_cannot_be_run_uses_up_no_attempt() {
    let bench = one(json!({ "id": "t", "title": "t" }));
    let said = bench.tenure(&["work", "--", "./no-such-program"]);
    assert_eq!(said.code, Some(127), "{}", said.stderr);
    let task = bench.task("t");
    assert_eq!((task.status, task.attempts), (Status::Pending, 0));
}

#[test]
fn a_task_that_kills_its_workers_is_set_aside_and_the_others_are_done() {
    let bench = Bench::new(json!([
        { "id": "poison", "title": "poison", "priority": 1, "max_attempts": 100 },
        { "id": "fine", "title": "fine" },
    ]));
    let script = "[ $TENURE_TASK_ID = fine ] || kill -9 $PPID";
    let mut killed = 0;
    let last = loop {
        let said = bench.work(&["--until-empty"], script);
        match said.code {
            Some(code) => break code,
            None => killed += 1,
        }
        assert!(killed < 10, "it is handed out for ever");
    };
    assert_eq!((last, killed), (0, 3));
    assert_eq!(bench.task("poison").status, Status::Blocked);
    assert_eq!(bench.task("fine").status, Status::Completed);
    let history = bench.history("poison");
    assert_eq!(history.last().map(String::as_str), Some("set_aside"));
}

#[test]
fn a_background_process_that_keeps_the_output_open_does_not_keep_the_task() {
    let bench = one(json!({ "id": "t", "title": "t" }));
    let said = bench.work(&["--once"], "sleep 600 & echo $! > pid; echo '{}'");
    let pid: i32 = bench.await_file("pid").trim().parse().unwrap();
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    assert_eq!(said.code, Some(0));
    assert_eq!(bench.task("t").result.as_deref(), Some("{}"));
}

#[test]
fn logs_are_written_for_each_attempt() {
    let bench = one(json!({ "id": "a/b", "title": "t" }));
    let said = bench.work(&["--once", "--logs", "logs"], "echo out; echo err >&2");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    assert_eq!(bench.await_file("logs/a%2Fb-1.log").lines().count(), 2);
}

#[test]
fn a_command_acts_under_the_name_of_its_worker() {
    for label in [Some("alice"), None] {
        let bench = one(json!({ "id": "t", "title": "t" }));
        let options: Vec<&str> =
            ["--once"].into_iter().chain(label.map(|_| "--as")).chain(label).collect();
        let tenure = env!("CARGO_BIN_EXE_tenure");
        let script = format!(
            "echo $TENURE_AGENT >label; {tenure} tasks show t --json >task; \
             {tenure} tasks heartbeat t && {tenure} tasks complete t --result 7"
        );
        let said = bench.work(&options, &script);
        let task: Value = serde_json::from_str(&bench.await_file("task")).unwrap();
        let name = bench.await_file("label").trim().to_owned();
        assert_eq!(task["data"]["task"]["claimed_by"], name.as_str());
        assert!(label.is_none_or(|label| label == name), "{name}");
        assert_eq!(bench.task("t").status, Status::Completed, "{}", said.stderr);
        assert_eq!(bench.task("t").result.as_deref(), Some("7"));
    }
}
