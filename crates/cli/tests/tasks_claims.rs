//! One claim, one fate, through real processes: the task, its section and its files are held
//! together, lost together and freed together.
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![expect(clippy::print_stdout, reason = "seeds are for people")]

#[path = "support/dice.rs"]
mod dice;
mod task_support;
mod work_support;

use dice::Dice;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::process::{Child, Command};
use task_support::StoreLocation;
use tenure::core::Status;
use work_support::Bench;

/// How a part of a claim is lost.
const BREAKS: [&[&str]; 2] = [&["break"], &["locks", "release"]];

fn force(place: &StoreLocation, command: &[&str], resource: &str) {
    place.ok(&[command, &[resource, "--force", "--reason", "test"]].concat());
}

/// The status of a task in every listing that has one.
fn listed(place: &StoreLocation, task: &str) -> Vec<Value> {
    let list = place.json(&["tasks", "list"]).data();
    let in_list = list["tasks"].as_array().unwrap().iter().find(|one| one["id"] == task).cloned();
    let in_list = in_list.unwrap();
    vec![in_list["status"].clone(), place.task(task)["status"].clone()]
}

#[test]
fn files_that_another_took_end_the_claim() {
    let place = StoreLocation::new();
    place.add(&["A", "--id", "a", "--file", "src/**"]);
    place.claim(&["--as", "w1", "--ttl", "300ms"]);
    // Waits until the lease has lapsed, and takes the file over.
    place.ok(&["run", "path:src/x", "--", "true"]);
    for verb in ["complete", "fail", "review", "release", "start", "heartbeat"] {
        assert_eq!(place.tenure(&["tasks", verb, "a", "--as", "w1"]).code, 8, "{verb}");
    }
    assert_eq!(place.task("a")["result"], Value::Null);
    assert_eq!(place.ok(&["locks"]), "Nothing is held");
    let next = place.claim(&["--as", "w2", "-n"]);
    assert_eq!((&next["id"], &next["attempts"]), (&json!("a"), &json!(2)));
}

#[test]
fn a_claim_says_whether_its_last_worker_died_or_fell_silent() {
    let place = StoreLocation::new();
    let one = place.add(&["One", "--file", "src/**"]);
    assert_eq!(place.claim(&["--as", "w1", "--ttl", "300ms"])["reason"], "acquired_new");
    assert_eq!(place.claim(&["--as", "w2", "-w", "30", &one])["reason"], "claimed_expired");
    assert_eq!(place.claim(&["--as", "w2", &one])["reason"], "already_owned");
    place.ok(&["tasks", "release", &one, "--as", "w2"]);
    assert_eq!(place.claim(&["--as", "w3"])["reason"], "acquired_new");
    place.ok(&["tasks", "complete", &one, "--as", "w3"]);

    let dead = |task: &str| {
        let mut worker = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = worker.id().to_string();
        let claimed = place.claim(&["--as", "w1", "--pid", &pid]);
        assert_eq!((&claimed["id"], &claimed["reason"]), (&json!(task), &json!("acquired_new")));
        worker.kill().unwrap();
        worker.wait().unwrap();
    };
    let two = place.add(&["Two"]);
    dead(&two);
    assert_eq!(place.claim(&["--as", "w2", "-w", "30"])["reason"], "claimed_dead");
    let three = place.add(&["Three"]);
    dead(&three);
    let update = ["tasks", "update", &three, "--status", "in_progress", "--as", "w2"];
    assert_eq!(place.json(&update).data()["task"]["reason"], "claimed_dead");
    let four = place.add(&["Four"]);
    dead(&four);
    let said = place.ok(&["tasks", "claim", "--as", "w2", "-w", "30"]);
    assert!(said.starts_with("Took over \"Four\""), "{said}");
}

#[test]
fn a_part_that_an_operator_ended_ends_the_claim() {
    for command in BREAKS {
        for part in ["task:a", "path:src/**", "section:S"] {
            let place = StoreLocation::new();
            place.add(&["A", "--id", "a", "--file", "src/**", "--section", "S"]);
            let claimed = place.claim(&["--as", "w1"]);
            let case = format!("{command:?} {part}");
            force(&place, command, part);
            assert_eq!(listed(&place, "a"), ["pending", "pending"], "{case}");
            let stats = place.json(&["tasks", "stats"]).data();
            assert!(!stats.to_string().contains("\"in_progress\":1"), "{case}: {stats}");
            assert_eq!(place.ok(&["locks"]), "Nothing is held", "{case}");
            let token = claimed["token"].to_string();
            assert_eq!(place.tenure(&["verify", "task:a", "--token", &token]).code, 8, "{case}");
            let before = place.task("a");
            assert_eq!(place.tenure(&["tasks", "complete", "a", "--as", "w1"]).code, 8, "{case}");
            assert_eq!(place.tenure(&["tasks", "heartbeat", "a", "--as", "w1"]).code, 8, "{case}");
            assert_eq!(place.task("a"), before, "{case}");
            assert_eq!(place.claim(&["--as", "w2", "-n"])["id"], "a", "{case}");
        }
    }
}

#[test]
fn giving_back_one_part_gives_up_the_claim() {
    for part in ["task:a", "path:src/**"] {
        let place = StoreLocation::new();
        place.add(&["A", "--id", "a", "--file", "src/**", "--section", "S"]);
        place.claim(&["--as", "w1"]);
        place.ok(&["release", part, "--as", "w1"]);
        assert_eq!(listed(&place, "a"), ["pending", "pending"], "{part}");
        assert_eq!(place.ok(&["locks"]), "Nothing is held", "{part}");
        assert_eq!(place.tenure(&["tasks", "complete", "a", "--as", "w1"]).code, 8, "{part}");
    }
}

#[test]
fn a_worker_whose_claim_lost_a_part_is_stopped_and_its_finish_refused() {
    for part in ["section:S", "path:src/**", "task:t"] {
        let bench = Bench::new(json!([
            { "id": "t", "title": "t", "section": "S", "files": ["src/**"] },
        ]));
        let script = "trap 'echo stopped > stopped; exit 0' TERM; echo begun > begun; \
                      while :; do sleep 0.05; done";
        let worker = bench.start(&["--once"], script);
        bench.await_file("begun");
        let said = bench.tenure(&["break", part, "--force", "--reason", "test"]);
        assert_eq!(said.code, Some(0), "{part}: {}", said.stderr);
        bench.await_file("stopped");
        let ended = worker.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(8), "{part}");
        let task = bench.task("t");
        assert_eq!((task.status, task.attempts), (Status::Pending, 1), "{part}");
        let history = bench.history("t");
        assert!(!history.contains(&"completed".to_owned()), "{part}: {history:?}");
        let locks = bench.tenure(&["locks"]);
        assert_eq!(locks.stdout.trim_end(), "Nothing is held", "{part}");
    }
}

/// "Two Runners, Same Section" of a section that is kept from task to task, with the second runner
/// waiting for the section itself.
#[test]
fn a_section_is_broken_between_two_tasks_and_taken_by_the_next() {
    let place = StoreLocation::new();
    for id in ["t1", "t2"] {
        place.add(&[id, "--id", id, "--section", "Backend"]);
    }
    place.claim(&["t1", "--as", "Runner A"]);
    place.ok(&["tasks", "complete", "t1", "--as", "Runner A"]);
    force(&place, &["break"], "section:Backend");
    assert_eq!(place.claim(&["--as", "Runner B", "-n"])["id"], "t2");
    let said = place.json(&["tasks", "claim", "--as", "Runner A"]);
    assert_eq!((said.code, &said.error()["code"]), (6, &json!("NOT_READY")));
    let message = said.error()["message"].to_string();
    assert!(message.contains("1 is in progress (Runner B)"), "{message}");
    place.ok(&["tasks", "complete", "t2", "--as", "Runner B"]);
    assert_eq!(place.tenure(&["tasks", "claim", "--as", "Runner A"]).code, 4);
}

/// "Lock Expired" for a task in a section.
#[test]
fn an_expired_claim_does_not_keep_its_section() {
    let place = StoreLocation::new();
    place.add(&["Task 1", "--id", "t1", "--section", "Backend"]);
    place.add(&["Task 2", "--id", "t2", "--section", "Backend"]);
    let first = place.claim(&["t1", "--as", "Runner A", "--ttl", "300ms"]);
    let second = place.claim(&["t1", "--as", "Runner B", "-w", "60"]);
    assert!(second["token"].as_u64() > first["token"].as_u64());
    assert_eq!(second["attempts"], 2);
    let locks = place.json(&["locks"]).data();
    assert_eq!(locks["section_locks"][0]["runner_id"], "Runner B");
    assert_eq!(place.tenure(&["tasks", "complete", "t1", "--as", "Runner A"]).code, 8);
    place.ok(&["tasks", "complete", "t1", "--as", "Runner B"]);
    assert_eq!(place.claim(&["--as", "Runner B"])["id"], "t2");
    place.ok(&["tasks", "complete", "t2", "--as", "Runner B"]);
    assert_eq!(place.ok(&["locks"]), "Nothing is held");
}

#[test]
fn one_who_wants_the_section_itself_need_not_wait_for_a_silent_worker() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--section", "S"]);
    place.claim(&["t", "--as", "a", "--ttl", "300ms"]);
    // The section's own lease is two hours.
    let said = place.tenure(&["run", "section:S", "-w", "60", "--", "true"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn handing_back_the_last_task_gives_back_the_section() {
    let place = StoreLocation::new();
    for id in ["t", "u"] {
        place.add(&[id, "--id", id, "--section", "S"]);
        place.claim(&[id, "--as", "a"]);
    }
    let data = place.json(&["tasks", "release", "t", "--as", "a"]).data();
    assert_eq!(data["gave_up_section"], false);
    let said = place.json(&["tasks", "claim", "t", "--as", "b", "-n"]);
    assert_eq!(said.error()["code"], "SECTION_LOCKED");
    let data = place.json(&["tasks", "release", "u", "--as", "a"]).data();
    assert_eq!(data["gave_up_section"], true);
    assert_eq!(place.ok(&["locks"]), "Nothing is held");
    place.claim(&["t", "--as", "b", "-n"]);
}

#[test]
fn a_task_of_one_attempt_is_tried_once() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--max-attempts", "1"]);
    place.claim(&["t", "--as", "a", "--ttl", "100ms"]);
    // Takes the lock of the task when the lease has lapsed: so it has.
    place.ok(&["run", "task:t", "--", "true"]);
    place.ok(&["tasks", "recover"]);
    let task = place.task("t");
    assert_eq!((&task["status"], &task["attempts"]), (&json!("blocked"), &json!(1)));
    assert!(task["error"].as_str().unwrap().contains("attempt 1 of 1"), "{task}");
    assert_eq!(place.tenure(&["tasks", "claim", "--as", "b"]).code, 6);
    place.ok(&["tasks", "retry", "t"]);
    place.claim(&["t", "--as", "b", "-n"]);
}

#[test]
fn a_named_task_says_what_it_really_waits_for() {
    let place = StoreLocation::new();
    place.add(&["Write it", "--id", "doc-12"]);
    place.add(&["Print it", "--id", "doc-13", "--after", "doc-12"]);
    let waits = |said: &str, status: &str| {
        let expected = format!("it waits for doc-12 (\"Write it\"), which is {status}");
        assert!(said.contains(&expected), "{said}");
    };
    let said = place.tenure(&["tasks", "claim", "doc-13", "-n"]);
    assert_eq!(said.code, 6);
    waits(&said.err, "pending");
    waits(&place.ok(&["tasks", "show", "doc-13"]), "pending");
    place.claim(&["doc-12", "--as", "a"]);
    waits(&place.tenure(&["tasks", "claim", "doc-13", "-n"]).err, "in_progress");
    waits(&place.ok(&["why", "doc-13"]), "in_progress");
    place.ok(&["tasks", "complete", "doc-12", "--as", "a"]);
    place.claim(&["doc-13", "-n"]);
}

#[test]
fn the_next_task_is_not_waited_for_unless_told_to() {
    let place = StoreLocation::new();
    let none_left = place.json(&["tasks", "claim", "--as", "b"]);
    assert_eq!((none_left.code, &none_left.error()["code"]), (4, &json!("NOTHING_READY")));
    place.add(&["T", "--id", "t", "--section", "S"]);
    place.add(&["U", "--id", "u", "--section", "S"]);
    place.add(&["V", "--id", "v", "--after", "u"]);
    place.claim(&["t", "--as", "a"]);
    // Nobody ends a's claim: a wait would never end.
    let said = place.json(&["tasks", "claim", "--as", "b"]);
    let error = said.error();
    assert_eq!((said.code, &error["code"]), (6, &json!("SECTION_LOCKED")));
    assert_eq!(error["details"]["lockedBy"], "a");
    place.ok(&["tasks", "cancel", "u"]);
    let said = place.json(&["tasks", "claim", "--as", "b"]);
    let error = said.error();
    assert_eq!((said.code, &error["code"]), (6, &json!("NOT_READY")));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("1 is in progress (a)"), "{message}");
    assert!(message.contains("1 waits for other tasks"), "{message}");
    place.ok(&["tasks", "complete", "t", "--as", "a"]);
    place.ok(&["tasks", "cancel", "v"]);
    let said = place.json(&["tasks", "claim", "--as", "b"]);
    assert_eq!((said.code, &said.error()["code"]), (4, &json!("NOTHING_READY")));
}

#[test]
fn a_wait_that_ended_in_vain_does_not_say_that_the_lock_was_released() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    place.add(&["U", "--id", "u", "--after", "t"]);
    place.claim(&["t", "--as", "a"]);
    for args in [&["t"][..], &["u"], &[]] {
        let said = place.tenure(&[&["tasks", "claim", "--as", "b", "-w", "0.3"], args].concat());
        assert_eq!(said.code, 6, "{args:?} {}", said.err);
        assert!(!said.err.contains("Lock released!"), "{args:?} {}", said.err);
    }
}

#[test]
fn completing_twice_is_said_to_be_done_before() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t"]);
    let claimed = place.claim(&["t", "--as", "a"]);
    place.ok(&["tasks", "complete", "t", "--as", "a", "--result", "1"]);
    let done = place.task("t");
    assert_eq!(done["status"], "completed");
    let again = place.ok(&["tasks", "complete", "t", "--as", "a", "--result", "2"]);
    assert!(again.contains("is already completed"), "{again}");
    let grant = claimed["grant"].as_str().unwrap();
    let data = place.json(&["tasks", "complete", "t", "--grant", grant]).data();
    assert_eq!(data["repeated"], true);
    assert_eq!(place.task("t"), done);
    assert_eq!(place.tenure(&["tasks", "complete", "t", "--as", "b"]).code, 8);
    assert_eq!(place.tenure(&["tasks", "fail", "t", "--as", "a"]).code, 8);
}

/// So often something is done to the workers or to what they hold.
const BLOWS: usize = 80;

/// A worker that goes on until nothing is left; what its commands do takes a moment.
fn spawn_worker(bench: &Bench, number: usize) -> Child {
    let label = format!("w{number}");
    let options = ["--as", &label, "--ttl", "1s", "--grace", "100ms", "--until-empty"];
    bench.start(&options, "sleep 0.1")
}

/// What somebody holds now.
fn held(bench: &Bench) -> Vec<String> {
    let said = bench.tenure(&["locks", "--json"]);
    let envelope: Value = serde_json::from_str(&said.stdout).unwrap();
    let kinds = envelope["data"].as_object().unwrap().values().filter_map(Value::as_array);
    let name = |lock: &Value| lock["resource"].as_str().map(str::to_owned);
    kinds.flatten().filter_map(name).collect()
}

/// Says what is wrong with a history: a task was completed although a part of its claim had ended.
fn late_finishes(events: &[Value], sections: &HashMap<String, String>) -> Vec<String> {
    let mut lost: HashSet<u64> = HashSet::new();
    let mut runners: HashMap<&str, &str> = HashMap::new();
    let mut wrong = Vec::new();
    for event in events {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let (what, resource, holder) = (text("event"), text("resource"), text("holder"));
        let token = event["token"].as_u64();
        let is_section = resource.starts_with("section:");
        match what {
            "acquired" if is_section => drop(runners.insert(resource, holder)),
            "broken" | "lapsed" | "died" | "released" if is_section => {
                runners.remove(resource);
            }
            "broken" | "lapsed" | "died" => lost.extend(token),
            "completed" => {
                let section = sections.get(resource).filter(|section| !section.is_empty());
                let in_section = section
                    .is_none_or(|name| runners.get(name.as_str()).is_some_and(|by| *by == holder));
                if token.is_some_and(|token| lost.contains(&token)) || !in_section {
                    wrong.push(event.to_string());
                }
            }
            _ => {}
        }
    }
    wrong
}

/// Workers are killed and stopped, and parts of their claims are broken: every task is done in the
/// end, and no finish counted after a part of its claim was lost.
#[test]
fn no_finish_counts_after_a_part_of_its_claim_was_lost() {
    let section = |number: usize| ["S", "T", ""][number % 3];
    let tasks = (0..90).map(|number| {
        json!({
            "id": format!("t{number}"), "title": format!("t{number}"),
            "section": (number % 3 < 2).then(|| section(number)),
            "files": [format!("f{}/**", number % 7)], "max_attempts": 100_000,
        })
    });
    let bench = Bench::new(tasks.collect());
    let said = bench.tenure(&["config", "set", "tasks.maxRecoveries", "100000"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let mut dice = Dice::new();
    let mut workers: Vec<Child> = (0..4).map(|number| spawn_worker(&bench, number)).collect();
    for _ in 0..BLOWS {
        let number = dice.below(workers.len());
        let worker = Pid::from_child(&workers[number]);
        match dice.below(4) {
            0 => {
                let _ = kill_process(worker, Signal::KILL);
                let _ = workers[number].wait();
                workers[number] = spawn_worker(&bench, number);
            }
            1 => drop(kill_process(worker, Signal::STOP)),
            _ => {
                let held = held(&bench);
                if !held.is_empty() {
                    let name = &held[dice.below(held.len())];
                    // It may be gone by now.
                    bench.tenure(&["break", name, "--force", "--reason", "test"]);
                }
            }
        }
        let woken = &workers[dice.below(workers.len())];
        let _ = kill_process(Pid::from_child(woken), Signal::CONT);
    }
    // All go on before one is waited for: one that was stopped while it writes is in the way of all.
    for worker in &workers {
        let _ = kill_process(Pid::from_child(worker), Signal::CONT);
    }
    for mut worker in workers {
        worker.wait().unwrap();
    }
    // Those that were killed last, or that had just ended, may have left something.
    let said = bench.work(&["--as", "last", "--ttl", "1s", "--until-empty"], "true");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let said = bench.tenure(&["events", "--json", "--last", "100000"]);
    let envelope: Value = serde_json::from_str(&said.stdout).unwrap();
    let events = envelope["data"]["events"].as_array().unwrap();
    let completed = events.iter().filter(|event| event["event"] == "completed").count();
    assert_eq!(completed, 90, "each task is completed once");
    let sections = (0..90).map(|number| {
        let name = section(number);
        let section = if name.is_empty() { String::new() } else { format!("section:{name}") };
        (format!("task:t{number}"), section)
    });
    let wrong = late_finishes(events, &sections.collect());
    assert!(wrong.is_empty(), "{wrong:#?}");
    let broken = events.iter().filter(|event| event["event"] == "broken").count();
    assert!(broken > 0, "something was broken while it was held");
}

#[test]
fn a_wait_for_a_section_ends_when_nothing_is_left_there() {
    let place = StoreLocation::new();
    place.add(&["T", "--id", "t", "--section", "S"]);
    place.add(&["Other", "--section", "R"]);
    place.claim(&["t", "--as", "a"]);
    place.ok(&["tasks", "complete", "t", "--as", "a"]);
    let said = place.json(&["tasks", "claim", "--section", "S", "-w", "600", "--as", "b"]);
    assert_eq!((said.code, &said.error()["code"]), (4, &json!("NOTHING_READY")));
}
