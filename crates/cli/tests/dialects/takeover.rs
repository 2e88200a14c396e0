//! Many who want one lock that was left behind: exactly one gets it, each time.
//!
//! A taker reads a line for each round, tries once, and answers `won` or `lost`; at the next line it
//! gives back what it won and answers `done`.

use crate::folder::{Dialect, Folder};
use crate::roles::{LEASE, variable};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;
use tenure::blocking::{Attempt, Client};

const ROUNDS: usize = 500;

/// So old that all agree that it was left behind.
const AGES: Duration = Duration::from_secs(4000);

/// Tries once at each line. What the test harness prints around it has other words.
pub fn take_one() {
    let client = Client::open(&variable("URL")).expect("the store");
    let resource = variable("RESOURCE");
    let mut held = None;
    for line in std::io::stdin().lines() {
        let answer = match line.expect("a line").as_str() {
            "try" => {
                let request = client.request(resource.as_str()).ttl(LEASE).wait(tenure::Wait::No);
                match client.hold(request).expect("an answer") {
                    Attempt::Held(guard) => {
                        held = Some(guard);
                        "won"
                    }
                    Attempt::Busy(_) => "lost",
                }
            }
            _ => {
                held = None;
                "done"
            }
        };
        println!("{answer}");
    }
    drop(held);
}

/// A taker and the lines between it and the test.
struct Taker {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Taker {
    fn start(folder: &Folder, number: usize, is_tenure: bool) -> Taker {
        let directory = folder.path("");
        let directory = directory.to_str().expect("a plain path");
        let arguments = [directory, folder.dialect.name(), &format!("taker-{number}")];
        let mut command = match is_tenure {
            true => folder.role("take-one"),
            false => folder.foreign("take_one.py", &arguments),
        };
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a taker");
        let ask = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Taker { child, ask, answers }
    }

    fn tell(&mut self, word: &str) {
        self.ask.write_all(format!("{word}\n").as_bytes()).expect("a taker that listens");
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.answers.read_line(&mut line).expect("a line");
            assert!(read > 0, "a taker ended before the test");
            if ["won", "lost", "done"].contains(&line.trim()) {
                return line.trim().to_owned();
            }
        }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Leaves a lock behind in each round, and counts who gets it.
pub fn one_winner(dialect: Dialect, foreign: usize, tenure: usize, leave: impl Fn(&Folder)) {
    let folder = Folder::new(dialect);
    let mut takers: Vec<Taker> = (0..foreign + tenure)
        .map(|number| Taker::start(&folder, number, number >= foreign))
        .collect();
    // A first round in which all come to life.
    takers.iter_mut().for_each(|taker| taker.tell("wake"));
    takers.iter_mut().for_each(|taker| assert_eq!(taker.answer(), "done"));
    let mut won_by_tenure = 0;
    for round in 0..ROUNDS {
        leave(&folder);
        // Not always the same one first.
        let count = takers.len();
        (0..count).for_each(|number| takers[(number + round) % count].tell("try"));
        let answers: Vec<String> = takers.iter_mut().map(Taker::answer).collect();
        let won = answers.iter().filter(|answer| *answer == "won").count();
        assert_eq!(won, 1, "winners of round {round}: {answers:?}");
        won_by_tenure += answers[foreign..].iter().filter(|answer| *answer == "won").count();
        takers.iter_mut().for_each(|taker| taker.tell("end"));
        takers.iter_mut().for_each(|taker| assert_eq!(taker.answer(), "done"));
        assert!(!folder.lock().exists(), "released");
    }
    println!("{dialect:?}: {ROUNDS} rounds, {won_by_tenure} won by one of tenure's {tenure}");
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
