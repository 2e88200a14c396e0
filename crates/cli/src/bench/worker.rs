//! One worker process: told by an argument what to do, begins when told to, prints what it found.

use super::{BenchError, fairness, handoff, pair, serve, tasks};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::path::PathBuf;

/// What a worker says when it could begin.
pub(super) const READY: &str = "ready";

/// What lets it begin.
pub(super) const GO: &str = "go";

/// What a worker does, and for how long.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub(crate) enum Work {
    /// Pairs beside the floor's, in turns, in one process.
    Duel { url: String, floor: PathBuf, rounds: u32, span_ms: u64 },
    /// Acquire and release.
    Pairs { url: String, lock: String, span_ms: u64 },
    /// The same on the floor.
    FloorPairs { floor: PathBuf, name: String, span_ms: u64 },
    /// Acquire and break, which is durable.
    Breaks { url: String, lock: String, span_ms: u64 },
    /// The same on the floor.
    FloorBreaks { floor: PathBuf, name: String, span_ms: u64 },
    /// Hand a lock around.
    Contend { url: String, lock: String, contenders: usize, span_ms: u64 },
    /// Tasks one by one beside the floor, in turns, in one process; then in batches.
    TaskDuel { url: String, floor: PathBuf, rounds: usize, span_ms: u64 },
    /// Claim and complete.
    TaskPairs { url: String, batch: usize, span_ms: u64 },
    /// As many commits on the floor.
    FloorCommits { floor: PathBuf, name: String, span_ms: u64 },
    /// Claim and complete over many connections at once.
    ServedClaims { url: String, connections: usize, span_ms: u64 },
    /// Claims in stores of different sizes, in turns.
    ClaimLatency { urls: Vec<String>, claims: usize },
}

/// Does the work and prints the result.
pub(crate) fn work(work: Work) -> Result<(), BenchError> {
    match work {
        Work::Duel { url, floor, rounds, span_ms } => {
            answer(&pair::duel(&url, &floor, rounds, span_ms)?)
        }
        Work::Pairs { url, lock, span_ms } => answer(&pair::pairs(&url, &lock, span_ms)?),
        Work::FloorPairs { floor, name, span_ms } => {
            answer(&pair::floor_pairs(&floor, &name, span_ms)?)
        }
        Work::Breaks { url, lock, span_ms } => answer(&fairness::breaks(&url, &lock, span_ms)?),
        Work::FloorBreaks { floor, name, span_ms } => {
            answer(&fairness::floor_breaks(&floor, &name, span_ms)?)
        }
        Work::Contend { url, lock, contenders, span_ms } => {
            answer(&handoff::contend(&url, &lock, contenders, span_ms)?)
        }
        Work::TaskDuel { url, floor, rounds, span_ms } => {
            answer(&tasks::duel(&url, &floor, rounds, span_ms)?)
        }
        Work::TaskPairs { url, batch, span_ms } => answer(&tasks::pairs(&url, batch, span_ms)?),
        Work::FloorCommits { floor, name, span_ms } => {
            answer(&tasks::floor_commits(&floor, &name, span_ms)?)
        }
        Work::ServedClaims { url, connections, span_ms } => {
            answer(&serve::claims(&url, connections, span_ms)?)
        }
        Work::ClaimLatency { urls, claims } => answer(&tasks::latencies(&urls, claims)?),
    }
}

/// Says that the work could begin, and waits until it may.
pub(super) fn ready() -> Result<(), BenchError> {
    say(READY)?;
    let mut order = String::new();
    let read = std::io::stdin().lock().read_line(&mut order);
    read.map_err(lost_touch)?;
    match order.trim_end() {
        GO => Ok(()),
        said => Err(BenchError::Worker { said: said.to_owned(), expected: GO }),
    }
}

/// Says a word to whoever started this worker.
pub(super) fn say(word: &str) -> Result<(), BenchError> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{word}").and_then(|()| stdout.flush()).map_err(lost_touch)
}

fn answer<T: Serialize>(result: &T) -> Result<(), BenchError> {
    say(&serde_json::to_string(result).expect("plain records always serialise"))
}

fn lost_touch(source: std::io::Error) -> BenchError {
    BenchError::Process { program: "the bench".to_owned(), source }
}
