//! The file store, with a process killed at each step of a change that there is.
//!
//! `STEPS` is the list of steps; a debug build dies at the one that `TENURE_FAULT` names. For each,
//! commands are run in a fresh store until one dies there. Whatever a command reported before is
//! there afterwards, and everything works on.

use crate::support::{Ended, Engine, Running, StoreLocation, TENURE};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure::blocking::Client;
use tenure::store::{FileOptions, FileStore, STEPS};
use tenure::world::ManualClock;

/// So short that each store sees several generations.
const ROTATE_BYTES: &str = "3000";

/// How many rounds of commands a store sees before a step counts as not reached.
const ROUNDS: usize = 5;

/// Each step is met in a fresh store, and in one that was used for so many rounds.
const QUIET_ROUNDS: [usize; 2] = [0, 2];

/// What commands have reported.
#[derive(Default)]
struct Known {
    /// The statuses that a task may have: two while a command died that changes it.
    tasks: BTreeMap<String, BTreeSet<String>>,
    held: BTreeMap<String, u64>,
    /// What a command that died may have taken or given back.
    unsure: BTreeSet<String>,
    tokens: Vec<u64>,
}

struct Life {
    place: StoreLocation,
    fault: String,
    quiet: usize,
    /// Whether tasks are removed too, which most steps do not need.
    removes: bool,
    known: Known,
    /// Somebody who has had the store open since before the fault.
    beside: Option<Client>,
}

impl Life {
    fn new(fault: &str, quiet: usize) -> Life {
        let place = StoreLocation::with(Engine::Files);
        if fault.starts_with("boot") {
            // A store that was last used before the machine was started.
            let options =
                FileOptions { clock: Arc::new(ManualClock::new()), ..FileOptions::default() };
            FileStore::open_with(&place.path("store"), options).expect("a store");
        }
        let known = Known::default();
        let removes = fault.starts_with("compact");
        Life { place, fault: fault.to_owned(), quiet, removes, known, beside: None }
    }

    fn command(&self, fault: &str, words: &[&str]) -> Ended {
        let mut command = self.place.command(TENURE);
        command.args(["--store", &self.place.url(), "--json", "--as", "w"]).args(words);
        command.env("TENURE_ROTATE_BYTES", ROTATE_BYTES).env("TENURE_FAULT", fault);
        Running::start(command).end()
    }

    fn undisturbed(&self, words: &[&str]) -> Value {
        let ended = self.command("", words);
        assert_eq!(ended.code, 0, "after {}: {words:?}: {ended:?}", self.fault);
        ended.json()["data"].clone()
    }

    /// Runs a command that may die; `None` if it did.
    fn attempt(&self, words: &[&str]) -> Option<Value> {
        let ended = self.command(&self.fault, words);
        assert!([0, 137].contains(&ended.code), "{}: {words:?}: {ended:?}", self.fault);
        (ended.code == 0).then(|| ended.json()["data"].clone())
    }

    fn acquire(&mut self, lock: &str) -> Option<()> {
        self.known.unsure.insert(lock.to_owned());
        let lease = self.attempt(&["acquire", "-n", "--ttl", "10m", lock])?;
        let token = lease["token"].as_u64().expect("a token");
        self.known.held.insert(lock.to_owned(), token);
        self.known.tokens.push(token);
        self.known.unsure.remove(lock);
        Some(())
    }

    fn release(&mut self, lock: &str) -> Option<()> {
        self.known.unsure.insert(lock.to_owned());
        let known = self.known.held.remove(lock);
        assert!(known.is_some());
        self.attempt(&["release", lock])?;
        self.known.unsure.remove(lock);
        Some(())
    }

    fn task(&mut self, id: &str, words: &[&str], status: &str) -> Option<()> {
        let statuses = self.known.tasks.entry(id.to_owned()).or_default();
        if statuses.is_empty() {
            statuses.insert(String::new());
        }
        statuses.insert(status.to_owned());
        self.attempt(&[&["tasks"], words].concat())?;
        self.known.tasks.insert(id.to_owned(), BTreeSet::from([status.to_owned()]));
        Some(())
    }

    /// All that a store can be asked to do; `None` when a command died.
    fn round(&mut self, number: usize) -> Option<()> {
        let (lock, kept) = (format!("lock-{number}"), format!("kept-{number}"));
        let (id, key) = (format!("t{number}"), format!("key-{number}"));
        self.acquire(&lock)?;
        self.acquire(&kept)?;
        self.task(&id, &["add", "Task", "--id", &id, "--key", &key], "pending")?;
        self.task(&id, &["claim", &id], "in_progress")?;
        self.release(&lock)?;
        self.task(&id, &["complete", &id], "completed")?;
        let open = format!("open-{number}");
        self.task(&open, &["add", "Open", "--id", &open, "--after", &id], "pending")?;
        if self.removes { self.remove_an_older_one(number) } else { Some(()) }
    }

    /// Completes a task, deletes that of the round before, which is archived by now, and removes what is
    /// left of deleted ones.
    fn remove_an_older_one(&mut self, number: usize) -> Option<()> {
        let id = format!("gone-{number}");
        self.attempt(&["tasks", "add", "Gone", "--id", &id])?;
        self.attempt(&["tasks", "claim", &id])?;
        self.attempt(&["tasks", "complete", &id])?;
        if let Some(before) = number.checked_sub(1) {
            self.attempt(&["tasks", "delete", &format!("gone-{before}")])?;
        }
        self.attempt(&["gc"]).map(drop)
    }

    /// Whether a command died there.
    fn run(&mut self) -> bool {
        let fault = std::mem::take(&mut self.fault);
        for number in 0..self.quiet {
            assert_eq!(self.round(number), Some(()));
            self.beside.get_or_insert_with(|| Client::open(&self.place.url()).expect("the store"));
        }
        self.fault = fault;
        (self.quiet..self.quiet + ROUNDS).any(|number| self.round(number).is_none())
    }

    /// Whoever had the store open all the while sees what others see, and they see what it does.
    fn check_beside(&self) {
        let Some(client) = &self.beside else { return };
        let guard = client.acquire("beside").expect("an answer");
        let shown = self.undisturbed(&["status", "beside"]);
        assert_eq!(shown["holders"][0]["token"], guard.token().0, "{}: {shown}", self.fault);
        assert!(self.known.tokens.iter().all(|known| *known < guard.token().0), "{}", self.fault);
        drop(guard);
        let shown = self.undisturbed(&["status", "beside"]);
        assert_eq!(shown["locked"], false, "{}: {shown}", self.fault);
        let counted: u64 = client
            .run(client.asynchronous().tasks().tallies())
            .expect("counts")
            .iter()
            .map(|tally| tally.count)
            .sum();
        let listed = self.undisturbed(&["tasks", "list"]);
        assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(counted as usize));
    }

    fn check(&self) {
        let fault = &self.fault;
        let listed = self.undisturbed(&["tasks", "list"]);
        let listed = listed["tasks"].as_array().expect("tasks");
        for (id, statuses) in &self.known.tasks {
            let found: Vec<&Value> = listed.iter().filter(|task| task["id"] == **id).collect();
            assert!(found.len() <= 1, "{fault}: {id} is there twice");
            let status = found.first().map_or("", |task| task["status"].as_str().expect("a word"));
            assert!(statuses.contains(status), "{fault}: {id} is {status:?}, not {statuses:?}");
        }
        let counted = self.undisturbed(&["tasks", "stats"]);
        let counted: u64 =
            counted["total"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, listed.len() as u64, "{fault}: the counts are wrong");

        let locks = self.undisturbed(&["locks"]);
        let locks: BTreeMap<&str, u64> = (locks["locks"].as_array().expect("locks").iter())
            .map(|lock| (lock["name"].as_str().expect("a name"), lock["token"].as_u64().unwrap()))
            .collect();
        for (lock, token) in &self.known.held {
            assert_eq!(locks.get(lock.as_str()), Some(token), "{fault}: {lock}");
        }
        for lock in locks.keys() {
            let expected = self.known.held.contains_key(*lock) || self.known.unsure.contains(*lock);
            assert!(expected, "{fault}: nobody was told that it holds {lock}");
        }
    }

    fn check_works(&self) {
        let fault = &self.fault;
        self.check_beside();
        self.undisturbed(&["doctor"]);
        self.check();
        // What a dead command may have taken is nobody's after its lease; here its label knows it.
        let lease = self.undisturbed(&["acquire", "-n", "--ttl", "10m", "afterwards"]);
        let token = lease["token"].as_u64().expect("a token");
        assert!(self.known.tokens.iter().all(|known| *known < token), "{fault}: {token} again");
        let unique: BTreeSet<&u64> = self.known.tokens.iter().collect();
        assert_eq!(unique.len(), self.known.tokens.len(), "{fault}: a token came twice");
        for (number, statuses) in self.known.tasks.values().enumerate() {
            assert!(!statuses.is_empty());
            let id = format!("after-{number}");
            self.undisturbed(&["tasks", "add", "After", "--id", &id]);
            self.undisturbed(&["tasks", "claim", &id]);
            self.undisturbed(&["tasks", "complete", &id]);
        }
        self.undisturbed(&["release", "afterwards"]);
        self.check();
        self.check_beside();
        self.undisturbed(&["locks", "cleanup"]);
        let store = self.place.path("store");
        let drafts: Vec<PathBuf> = files_below(&store)
            .into_iter()
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("draft-"))
            .collect();
        assert!(drafts.is_empty(), "{fault}: {drafts:?}");
        let doctor = self.undisturbed(&["doctor"]);
        let checks = doctor["checks"].as_array().expect("checks");
        let held = checks.iter().find(|check| check["check"] == "held").expect("a check of held/");
        let message = held["message"].as_str().expect("a sentence");
        assert!(message.contains("say what the journal says"), "{fault}: {message}");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

/// Several at once, for most of the time of a command goes into starting it.
#[test]
fn killed_at_any_step_a_command_loses_nothing_that_was_reported_and_hinders_nobody() {
    let (even, odd): (Vec<_>, Vec<_>) = STEPS.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    std::thread::scope(|scope| {
        for half in [even, odd] {
            scope.spawn(move || {
                for (_, step) in half {
                    let mut reached = 0;
                    for quiet in QUIET_ROUNDS {
                        let mut life = Life::new(step, quiet);
                        reached += usize::from(life.run());
                        life.check_works();
                    }
                    assert!(reached > 0, "nothing here reaches the step {step}");
                }
            });
        }
    });
}
