//! Recovery that needs nobody: real workers are killed at random and started again, as a supervisor
//! would, and no one takes back, retries or mends anything. Every task ends completed all the same.
//!
//! The command of each task notes when it begins and ends, so that two at one task would be seen.

use crate::support::{Dice, PATIENCE, Running, Signal, StoreLocation};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// What the workers run for each task.
const SCRIPT: &str = "echo $TENURE_TASK_ID begun $TENURE_TOKEN >>$D/log
    sleep 0.05
    echo $TENURE_TASK_ID ended $TENURE_TOKEN >>$D/log";

/// Adds tasks, some of them in sections, some waiting for others.
fn add_tasks(place: &StoreLocation, count: usize) {
    let task = |n: usize| {
        let section = n.is_multiple_of(5).then(|| format!("s{}", n % 3));
        let after: Vec<String> = (n % 10 == 9).then(|| format!("t{}", n - 1)).into_iter().collect();
        // Each kill of a worker costs its task an attempt.
        json!({ "id": format!("t{n}"), "title": format!("task {n}"), "section": section,
                "depends_on": after, "max_attempts": 100 })
    };
    let file = json!({ "tasks": (0..count).map(task).collect::<Value>() });
    std::fs::write(place.path("tasks.json"), file.to_string()).expect("a file of tasks");
    assert_eq!(place.run(&["tasks", "import", "tasks.json"]).code, 0);
}

/// Starts workers, kills one every so often and starts another in its place, until they end by
/// themselves because nothing is left to do.
fn supervise(workers: usize, every: Duration, start: impl Fn() -> Command) -> usize {
    let mut dice = Dice::new();
    let start = || Running::start(start());
    let mut fleet: Vec<Running> = (0..workers).map(|_| start()).collect();
    let (begun, mut killed) = (Instant::now(), 0);
    while fleet.iter_mut().all(|worker| !worker.has_ended()) {
        // Each start and each kill costs a busy machine a while.
        assert!(begun.elapsed() < 15 * PATIENCE, "they never end");
        std::thread::sleep(every);
        let index = dice.below(fleet.len());
        if !fleet[index].has_ended() {
            let victim = std::mem::replace(&mut fleet[index], start());
            victim.signal(Signal::KILL);
            let ended = victim.end();
            // One that ended by itself in this very moment had nothing more to do.
            assert!([137, 0].contains(&ended.code), "{ended:?}");
            killed += 1;
        }
    }
    for worker in fleet {
        let ended = worker.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    println!("{killed} workers killed in {:.1?}", begun.elapsed());
    killed
}

/// What the log says of a task.
#[derive(Default)]
struct History {
    words: Vec<String>,
    claimed: Vec<u64>,
    completed: Vec<u64>,
}

fn histories(place: &StoreLocation) -> HashMap<String, History> {
    let data = place.json(&["events", "--last", "1000000"]);
    let mut histories = HashMap::<String, History>::new();
    for event in data["events"].as_array().expect("events") {
        let resource = event["resource"].as_str().unwrap_or_default();
        let Some(id) = resource.strip_prefix("task:") else { continue };
        let history = histories.entry(id.to_owned()).or_default();
        let word = event["event"].as_str().expect("a word");
        match word {
            "acquired" => history.claimed.extend(event["token"].as_u64()),
            "completed" => history.completed.extend(event["token"].as_u64()),
            _ => {}
        }
        history.words.push(word.to_owned());
    }
    histories
}

/// All is completed, each task by its latest claim and once, and nobody lent a hand.
fn check(place: &StoreLocation, count: usize) {
    let histories = histories(place);
    let tasks = place.json(&["tasks", "list", "--limit", "100000"])["tasks"].clone();
    let tasks = tasks.as_array().expect("tasks");
    assert_eq!(tasks.len(), count);
    let mut recovered = 0;
    for task in tasks {
        let id = task["id"].as_str().expect("an id");
        let History { words, claimed, completed } = &histories[id];
        assert_eq!(task["status"], "completed", "{id}: {words:?}");
        assert_eq!(completed.as_slice(), &claimed[claimed.len() - 1..], "{id}: {words:?}");
        let by_hand = ["retried", "edited", "handed_back", "broken", "set_aside"];
        assert!(!words.iter().any(|word| by_hand.contains(&word.as_str())), "{id}: {words:?}");
        assert_eq!(task["attempts"], claimed.len(), "{id}: {words:?}");
        recovered += words.iter().filter(|word| *word == "recovered").count();
    }
    println!("{recovered} tasks were taken back");
    assert!(recovered > 0, "nobody was killed in the middle of a task");
    assert!(place.json(&["locks"])["locks"].as_array().is_some_and(Vec::is_empty));
}

/// No command did anything for a task once the next one had begun: each dies with its worker.
fn check_commands(place: &StoreLocation) {
    let mut latest = HashMap::<&str, &str>::new();
    let log = place.read("log");
    for line in log.lines() {
        let [id, word, token] = line.split(' ').collect::<Vec<_>>().try_into().expect("a line");
        match word {
            "begun" => _ = latest.insert(id, token),
            _ => assert_eq!(latest[id], token, "two at work: {line}"),
        }
    }
}

/// So many that no task is set aside for the bad luck of its workers.
const MANY: (&str, &str) = ("TENURE_MAX_RECOVERIES", "1000");

#[test]
fn a_hundred_workers_that_are_killed_and_started_again_complete_everything_by_themselves() {
    let place = StoreLocation::new();
    add_tasks(&place, 1000);
    supervise(100, Duration::from_millis(100), || {
        let mut command = place.tenure(&["work", "--until-empty", "--", "sh", "-c", SCRIPT]);
        command.env(MANY.0, MANY.1);
        command
    });
    check(&place, 1000);
    check_commands(&place);
}

#[test]
fn swarms_of_a_hundred_workers_that_are_killed_and_started_again_complete_everything_by_themselves()
{
    let place = StoreLocation::new();
    add_tasks(&place, 1000);
    supervise(4, Duration::from_millis(300), || {
        let logs = ["swarm", "-n", "25", "--logs", "logs", "--", "sh", "-c", SCRIPT];
        let mut command = place.tenure(&logs);
        command.env(MANY.0, MANY.1);
        command
    });
    check(&place, 1000);
    check_commands(&place);
}
