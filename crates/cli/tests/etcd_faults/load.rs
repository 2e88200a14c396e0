//! Processes that work while servers fail, and what must be true of their work afterwards.

use crate::engine_support::{run, tenure};
use crate::fenced_log;
use crate::support::{Running, Signal, StoreLocation, until};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long faults go on.
pub fn fault_time() -> Duration {
    let seconds = std::env::var("TENURE_FAULT_SECONDS").map_or(12, |text| text.parse().unwrap());
    Duration::from_secs(seconds)
}

/// Times to recovery in a few words.
pub fn in_words(mut times: Vec<Duration>) -> String {
    times.sort();
    match (times.first(), times.get(times.len() / 2), times.last()) {
        (Some(shortest), Some(median), Some(longest)) => format!(
            "{} times: work went on after {shortest:.1?} to {longest:.1?}, in the median {median:.1?}",
            times.len()
        ),
        _ => "never".to_owned(),
    }
}

/// What the store acknowledged.
#[derive(Default)]
struct Acknowledged {
    added: HashSet<String>,
    completed: HashSet<String>,
}

/// Processes at work over one store.
pub struct Load<'a> {
    place: &'a StoreLocation,
    url: &'a str,
    is_over: AtomicBool,
    acknowledged: Mutex<Acknowledged>,
    held: AtomicUsize,
    failed: AtomicUsize,
}

/// Processes contend for a lock, do tasks, add tasks and complete tasks while `faults` happen; then all
/// tasks get done, and everything is checked.
pub fn under(url: &str, faults: impl FnOnce(&Load<'_>)) {
    let place = &StoreLocation::new();
    let load = Load {
        place,
        url,
        is_over: AtomicBool::new(false),
        acknowledged: Mutex::default(),
        held: AtomicUsize::new(0),
        failed: AtomicUsize::new(0),
    };
    assert_eq!(run(place, url, &["init"]).code, 0);
    let work = ["work", "--ttl", "4s", "--grace", "200ms", "--", "sh", "-c", fenced_log::COMMAND];
    let mut workers: Vec<Running> =
        (0..2).map(|_| Running::start(tenure(place, url, &work))).collect();
    std::thread::scope(|threads| {
        let over = OverOnDrop(&load.is_over);
        for _ in 0..3 {
            threads.spawn(|| load.hold());
        }
        threads.spawn(|| load.add());
        threads.spawn(|| load.complete());
        load.go_on("at the beginning");
        faults(&load);
        load.go_on("at the end");
        // On a busy machine the workers may have been faster than all single commands so far.
        until("an added task, and one that a command completed", || {
            let acknowledged = load.acknowledged.lock().unwrap();
            (!acknowledged.added.is_empty() && !acknowledged.completed.is_empty()).then_some(())
        });
        drop(over);
    });
    for (number, worker) in workers.iter_mut().enumerate() {
        assert!(!worker.has_ended(), "worker {number} gave up");
    }
    load.finish(workers);
}

/// Ends the load, also when the faults fail.
struct OverOnDrop<'a>(&'a AtomicBool);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Load<'_> {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts a command that failed, which is no fault while servers are away.
    fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
    }

    /// One holder after the other.
    fn hold(&self) {
        let words =
            ["run", "lock", "--ttl", "4s", "--grace", "200ms", "-w", "30", "--", "sh", "-c"];
        while !self.is_over() {
            let ended = run(self.place, self.url, &[&words[..], &[fenced_log::COMMAND]].concat());
            match ended.code {
                0 => drop(self.held.fetch_add(1, Ordering::Relaxed)),
                _ => self.failed(),
            }
        }
    }

    /// Adds tasks, and remembers those that the store said to have.
    fn add(&self) {
        for number in 0.. {
            if self.is_over() {
                return;
            }
            let id = format!("t{number}");
            match run(self.place, self.url, &["tasks", "add", "--id", &id, &id]).code {
                0 => drop(self.acknowledged.lock().unwrap().added.insert(id)),
                _ => self.failed(),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Completes tasks by single commands, and remembers those that the store said to be completed.
    fn complete(&self) {
        while !self.is_over() {
            let words = ["--json", "tasks", "claim", "--as", "single", "--ttl", "4s", "-n"];
            let claimed = run(self.place, self.url, &words);
            if claimed.code != 0 {
                self.failed();
                continue;
            }
            let claimed = claimed.json()["data"]["tasks"][0].clone();
            let id = claimed["id"].as_str().expect("a task").to_owned();
            let grant = claimed["grant"].as_str().expect("a grant").to_owned();
            let words = ["tasks", "complete", &id, "--grant", &grant];
            match run(self.place, self.url, &words).code {
                0 => drop(self.acknowledged.lock().unwrap().completed.insert(id)),
                _ => self.failed(),
            }
        }
    }

    /// Waits until two more holders have had the lock; returns how long that took. One of them may
    /// have got it before the fault.
    pub fn go_on(&self, when: &str) -> Duration {
        let (since, before) = (Instant::now(), fenced_log::begun(self.place, "lock"));
        until(&format!("two more holders {when}"), || {
            (fenced_log::begun(self.place, "lock") >= before + 2).then_some(())
        });
        since.elapsed()
    }

    /// Lets the workers end, and what is left be done; checks everything.
    fn finish(&self, workers: Vec<Running>) {
        for worker in workers {
            worker.signal(Signal::TERM);
            worker.end();
        }
        let acknowledged = self.acknowledged.lock().unwrap();
        let work = ["swarm", "-n", "4", "--", "sh", "-c", fenced_log::COMMAND];
        let ended = run(self.place, self.url, &work);
        assert_eq!(ended.code, 0, "{ended:?}");
        let listed = run(
            self.place,
            self.url,
            &["--json", "tasks", "list", "--status", "completed", "--limit", "100000"],
        );
        let listed = listed.json()["data"]["tasks"].clone();
        let completed: HashSet<String> = listed
            .as_array()
            .expect("tasks")
            .iter()
            .map(|task| task["id"].as_str().expect("an id").to_owned())
            .collect();
        let lost: Vec<&String> = acknowledged.added.difference(&completed).collect();
        assert!(lost.is_empty(), "tasks that were added are not done: {lost:?}");
        let ended = fenced_log::check(self.place);
        let not_done: Vec<&String> = completed
            .iter()
            .filter(|id| !ended.contains(*id) && !self.by_single_command(&acknowledged, id))
            .collect();
        assert!(not_done.is_empty(), "completed, but no worker did it: {not_done:?}");
        let missing: Vec<&String> = acknowledged.completed.difference(&completed).collect();
        assert!(missing.is_empty(), "completions were acknowledged and lost: {missing:?}");
        self.completed_once(&completed);
        println!(
            "{} holds, {} tasks added and done, {} of them completed by single commands, \
             {} commands failed meanwhile",
            self.held.load(Ordering::Relaxed),
            acknowledged.added.len(),
            acknowledged.completed.len(),
            self.failed.load(Ordering::Relaxed),
        );
    }

    /// Whether a task may have been completed by a single command: its answer may have been lost.
    fn by_single_command(&self, acknowledged: &Acknowledged, id: &str) -> bool {
        if acknowledged.completed.contains(id) {
            return true;
        }
        let shown = run(self.place, self.url, &["--json", "tasks", "show", id]).json();
        shown["data"].to_string().contains("single")
    }

    /// Each task was completed once: what was acknowledged was not undone and done again.
    fn completed_once(&self, completed: &HashSet<String>) {
        let events = run(self.place, self.url, &["--json", "events", "--last", "100000"]).json();
        let mut times: HashMap<&str, usize> = HashMap::new();
        for event in events["data"]["events"].as_array().expect("events") {
            if event["event"] == "completed" {
                *times.entry(event["resource"].as_str().expect("a task")).or_default() += 1;
            }
        }
        for id in completed {
            assert_eq!(times.get(format!("task:{id}").as_str()), Some(&1), "{id}");
        }
    }
}
