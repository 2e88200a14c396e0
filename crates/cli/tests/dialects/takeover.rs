//! Many who want one lock that was left behind: exactly one gets it, each time.
//!
//! In each round all takers wait for the round's file, try once, and keep what they got until the
//! next round.

use crate::folder::{Dialect, Folder};
use crate::roles::{LEASE, variable};
use crate::support::{Running, until};
use std::path::Path;
use std::time::{Duration, Instant};
use tenure::blocking::{Attempt, Client};

const ROUNDS: usize = 500;

/// So old that all agree that it was left behind.
const AGES: Duration = Duration::from_secs(4000);

/// Tries once in each round, and writes to `LOG` whether it won.
pub fn take_one() {
    let folder = std::env::current_dir().expect("the scratch folder");
    let client = Client::open(&variable("URL")).expect("the store");
    let resource = variable("RESOURCE");
    let me = variable("ME");
    for round in 0..ROUNDS {
        wait_for(&folder.join(format!("round.{round}")));
        let request = client.request(resource.as_str()).ttl(LEASE).wait(tenure::Wait::No);
        let attempt = client.hold(request).expect("an answer");
        let word = match &attempt {
            Attempt::Held(_) => "won",
            Attempt::Busy(_) => "lost",
        };
        std::fs::write(folder.join(format!("{word}.{round}.{me}")), "").expect("an answer");
        wait_for(&folder.join(format!("over.{round}")));
        drop(attempt);
        std::fs::write(folder.join(format!("done.{round}.{me}")), "").expect("a sign");
    }
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + crate::support::PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < deadline, "in vain: {}", path.display());
        std::thread::sleep(Duration::from_micros(500));
    }
}

fn count(folder: &Folder, beginning: &str) -> usize {
    let entries = std::fs::read_dir(folder.place.path("")).expect("the scratch folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(beginning)).count()
}

/// Leaves a lock behind in each round, and counts who gets it.
pub fn one_winner(dialect: Dialect, foreign: usize, tenure: usize, leave: impl Fn(&Folder)) {
    let folder = Folder::new(dialect);
    let takers = foreign + tenure;
    let directory = folder.path("");
    let directory = directory.to_str().expect("a plain path");
    let mut running = Vec::new();
    for number in 0..takers {
        let me = number.to_string();
        let command = match number < foreign {
            true => {
                let rounds = ROUNDS.to_string();
                folder.foreign("take_one.py", &[directory, dialect.name(), &me, &rounds])
            }
            false => {
                let mut command = folder.role("take-one");
                command.env("ME", &me);
                command
            }
        };
        running.push(Running::start(command));
    }
    let mut won_by_tenure = 0;
    for round in 0..ROUNDS {
        leave(&folder);
        folder.place.touch(&format!("round.{round}"));
        let won = format!("won.{round}.");
        let answers = || count(&folder, &won) + count(&folder, &format!("lost.{round}."));
        until("an answer from all", || (answers() == takers).then_some(()));
        assert_eq!(count(&folder, &won), 1, "winners of round {round}");
        let is_tenure = |number: &usize| folder.place.path(&format!("{won}{number}")).exists();
        won_by_tenure += (foreign..takers).filter(is_tenure).count();
        folder.place.touch(&format!("over.{round}"));
        let done = format!("done.{round}.");
        until("the end of the round", || (count(&folder, &done) == takers).then_some(()));
        assert!(!folder.lock().exists(), "released");
        sweep(&folder, round);
    }
    for process in running {
        let ended = process.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    println!("{dialect:?}: {ROUNDS} rounds, {won_by_tenure} won by one of tenure's {tenure}");
}

/// Removes what a round left, so that counting stays cheap.
fn sweep(folder: &Folder, round: usize) {
    let middle = format!(".{round}.");
    for entry in std::fs::read_dir(folder.place.path("")).expect("the scratch folder").flatten() {
        if entry.file_name().to_string_lossy().contains(&middle) {
            std::fs::remove_file(entry.path()).expect("a file of the round");
        }
    }
}

fn leave_stale(folder: &Folder) {
    folder.put(&folder.dialect.content("gone", AGES));
    folder.backdate(AGES);
}

fn leave_corrupt(folder: &Folder) {
    folder.put(r#"{"worker_id": "gone", "star"#);
    folder.backdate(AGES);
}

#[test]
fn one_of_eight_takes_a_stale_lock() {
    one_winner(Dialect::Worker, 0, 8, leave_stale);
}

#[test]
fn one_of_eight_of_both_kinds_takes_a_stale_lock() {
    one_winner(Dialect::Worker, 4, 4, leave_stale);
}

#[test]
fn one_of_eight_of_both_kinds_takes_a_stale_path() {
    one_winner(Dialect::Swarm, 4, 4, leave_stale);
}

#[test]
fn one_of_eight_of_both_kinds_takes_a_corrupt_lock() {
    one_winner(Dialect::Worker, 4, 4, leave_corrupt);
}

#[test]
fn one_of_eight_takes_a_corrupt_lock() {
    one_winner(Dialect::Memory, 0, 8, leave_corrupt);
}
