//! The server is killed again and again under load. What was acknowledged is there, nothing is done
//! twice, and nobody has to be started again.

use crate::server::{Server, through};
use crate::support::{Dice, Over, Running, StoreLocation};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KILLS: usize = 50;
/// Where too little happened between the kills, there are more of them, up to so many.
const KILLS_MAX: usize = 150;
/// How many tasks and counts there must be at least.
const ENOUGH: usize = 10;
const COUNTERS: usize = 3;

/// Adds tasks one after the other; which of them were acknowledged, and which only perhaps added.
fn add_tasks(place: &StoreLocation, url: &str, over: &AtomicBool) -> (Vec<String>, Vec<String>) {
    let (mut added, mut perhaps) = (Vec::new(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        let id = format!("t{}", added.len() + perhaps.len());
        let words = ["tasks", "add", "--id", &id, "A task"];
        let ended = Running::start(through(place, url, &words)).end();
        match ended.code {
            0 => added.push(id),
            // A command that never reached the server gives up soon.
            1 | 3 => perhaps.push(id),
            _ => panic!("adding ended with {ended:?}"),
        }
    }
    (added, perhaps)
}

/// Counts under a lock, by reading and writing a file: two at once would lose a count.
fn count_up(place: &StoreLocation, url: &str, over: &AtomicBool) -> usize {
    const COUNT: &str = "n=$(cat $D/count); sleep 0.01; echo $((n + 1)) >$D/count";
    let mut counted = 0;
    while !over.load(Ordering::Relaxed) {
        let words = ["run", "counter", "--", "sh", "-c", COUNT];
        let ended = Running::start(through(place, url, &words)).end();
        match ended.code {
            0 => counted += 1,
            3 if ended.stderr.contains("is not available") => {}
            _ => panic!("counting ended with {ended:?}"),
        }
    }
    counted
}

/// How many tasks were done or counts made so far, whichever is less.
fn done_so_far(place: &StoreLocation) -> usize {
    let counts = place.read("count").trim().parse().unwrap_or(0);
    place.read("done").lines().count().min(counts)
}

#[test]
fn fifty_kills_lose_nothing_and_do_nothing_twice() {
    let place = StoreLocation::new();
    std::fs::write(place.path("count"), "0\n").expect("a counter");
    let mut server = Server::start(&place);
    let url = server.url();
    let words = |name| {
        let log = "echo $TENURE_TASK_ID $TENURE_AGENT >>$D/done";
        ["work", "--as", name, "--", "sh", "-c", log]
    };
    let names = ["w1", "w2", "w3", "w4"];
    let workers: Vec<Running> =
        names.iter().map(|name| Running::start(server.tenure(&words(name)))).collect();
    let over = Over::default();
    let flag = over.flag();
    let (added, counted) = std::thread::scope(|scope| {
        let add = scope.spawn(|| add_tasks(&place, &url, &flag));
        let counters: Vec<_> =
            (0..COUNTERS).map(|_| scope.spawn(|| count_up(&place, &url, &flag))).collect();
        // A worker that never reached its server gives up soon, as for a wrong address.
        crate::support::until("a task by each worker", || {
            let done = place.read("done");
            names.iter().all(|name| done.contains(name)).then_some(())
        });
        let mut dice = Dice::new();
        for kill in 0..KILLS_MAX {
            if kill >= KILLS && done_so_far(&place) > ENOUGH {
                break;
            }
            // On a busy machine commands take longer, so the server has to live longer in the end.
            let longer = kill.saturating_sub(KILLS) * 20;
            std::thread::sleep(Duration::from_millis((20 + longer + dice.below(180)) as u64));
            server.kill();
            std::thread::sleep(Duration::from_millis(dice.below(60) as u64));
            server.restart();
        }
        drop(over);
        let counted: usize =
            counters.into_iter().map(|thread| thread.join().expect("a counter")).sum();
        (add.join().expect("the thread that adds"), counted)
    });
    let (added, perhaps) = added;

    // Every worker is still there, and does what is left.
    let tasks = crate::support::until("the end of all tasks", || {
        let tasks = place.json(&["tasks", "list"]);
        let tasks = tasks["tasks"].as_array().cloned().unwrap_or_default();
        tasks.iter().all(|task| task["status"] == "completed").then_some(tasks)
    });
    for mut worker in workers {
        assert!(!worker.has_ended(), "a worker gave up: {:?}", worker.end());
    }
    let ids: BTreeMap<&str, &Value> =
        tasks.iter().map(|task| (task["id"].as_str().expect("an id"), task)).collect();
    assert_eq!(ids.len(), tasks.len());
    for id in &added {
        assert!(ids.contains_key(id.as_str()), "{id} was acknowledged and is not there");
    }
    assert!(ids.len() <= added.len() + perhaps.len());
    let mut done: HashMap<String, usize> = HashMap::new();
    for line in place.read("done").lines() {
        let id = line.split(' ').next().unwrap_or_default();
        *done.entry(id.to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "done more than once: {twice:?}");
    assert_eq!(done.len(), ids.len(), "completed without being done");
    assert_eq!(place.read("count").trim(), counted.to_string(), "counts were lost or repeated");
    println!("{} tasks, {} counts, {} perhaps", ids.len(), counted, perhaps.len());
    assert!(ids.len() > ENOUGH && counted > ENOUGH, "hardly anything happened");
}
