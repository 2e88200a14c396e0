//! One worker process of a benchmark. It gets its work as an argument, starts on order, and prints
//! its result.

use crate::{BenchError, etcd, fairness, handoff, pair, serve, tasks};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::PathBuf;

/// The first argument of a worker; the second is its work as JSON. It is not for users.
pub(crate) const WORKER: &str = "bench-worker";

/// What a worker prints when it is ready.
pub(crate) const READY: &str = "ready";

/// The order to begin.
pub(crate) const GO: &str = "go";

/// The work of a worker process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub(crate) enum Work {
    /// Pairs on the store and the baseline, in turns, in one process.
    Duel { url: String, baseline: PathBuf, rounds: u32, span_ms: u64 },
    /// Pairs on an etcd store and by bare calls to its servers, in turns, in one process.
    EtcdDuel { url: String, hosts: String, rounds: u32, span_ms: u64 },
    /// Acquire and release.
    Pairs { url: String, lock: String, span_ms: u64 },
    /// Pairs on the baseline.
    BaselinePairs { baseline: PathBuf, name: String, span_ms: u64 },
    /// Acquire and break, which is durable.
    Breaks { url: String, lock: String, span_ms: u64 },
    /// Breaks on the baseline.
    BaselineBreaks { baseline: PathBuf, name: String, span_ms: u64 },
    /// Passes a lock around.
    Contend { url: String, lock: String, contenders: usize, hold_ms: u64, span_ms: u64 },
    /// Tasks one by one and the baseline, in turns, in one process; then in batches.
    TaskDuel { url: String, baseline: PathBuf, rounds: usize, span_ms: u64 },
    /// Claim and complete.
    TaskPairs { url: String, batch: usize, span_ms: u64 },
    /// As many commits on the baseline.
    BaselineCommits { baseline: PathBuf, name: String, span_ms: u64 },
    /// Claim and complete over many connections at once.
    ServedClaims { url: String, connections: usize, span_ms: u64 },
    /// Claims in stores of different sizes, in turns.
    ClaimLatency { urls: Vec<String>, claims: usize },
}

/// The instructions of this process, if it was started as a worker.
pub(crate) fn instructions(line: impl Iterator<Item = OsString>) -> Option<String> {
    let line: Vec<OsString> = line.collect();
    match line.as_slice() {
        [_, name, instructions] if name == WORKER => Some(instructions.to_str()?.to_owned()),
        _ => None,
    }
}

/// Does the work and prints the result.
pub(crate) fn work(instructions: &str) -> Result<(), BenchError> {
    let work = serde_json::from_str(instructions).map_err(|_| BenchError::Worker {
        said: instructions.to_owned(),
        expected: "instructions",
    })?;
    match work {
        Work::Duel { url, baseline, rounds, span_ms } => {
            answer(&pair::duel(&url, &baseline, rounds, span_ms)?)
        }
        Work::EtcdDuel { url, hosts, rounds, span_ms } => {
            answer(&etcd::duel(&url, &hosts, rounds, span_ms)?)
        }
        Work::Pairs { url, lock, span_ms } => answer(&pair::pairs(&url, &lock, span_ms)?),
        Work::BaselinePairs { baseline, name, span_ms } => {
            answer(&pair::baseline_pairs(&baseline, &name, span_ms)?)
        }
        Work::Breaks { url, lock, span_ms } => answer(&fairness::breaks(&url, &lock, span_ms)?),
        Work::BaselineBreaks { baseline, name, span_ms } => {
            answer(&fairness::baseline_breaks(&baseline, &name, span_ms)?)
        }
        Work::Contend { url, lock, contenders, hold_ms, span_ms } => {
            answer(&handoff::contend(&url, &lock, contenders, hold_ms, span_ms)?)
        }
        Work::TaskDuel { url, baseline, rounds, span_ms } => {
            answer(&tasks::duel(&url, &baseline, rounds, span_ms)?)
        }
        Work::TaskPairs { url, batch, span_ms } => answer(&tasks::pairs(&url, batch, span_ms)?),
        Work::BaselineCommits { baseline, name, span_ms } => {
            answer(&tasks::baseline_commits(&baseline, &name, span_ms)?)
        }
        Work::ServedClaims { url, connections, span_ms } => {
            answer(&serve::claims(&url, connections, span_ms)?)
        }
        Work::ClaimLatency { urls, claims } => answer(&tasks::latencies(&urls, claims)?),
    }
}

/// Reports that the worker is ready, and waits for the order to begin.
pub(crate) fn ready() -> Result<(), BenchError> {
    say(READY)?;
    let mut order = String::new();
    let read = std::io::stdin().lock().read_line(&mut order);
    read.map_err(lost_touch)?;
    match order.trim_end() {
        GO => Ok(()),
        said => Err(BenchError::Worker { said: said.to_owned(), expected: GO }),
    }
}

/// Prints a word for the parent process.
pub(crate) fn say(word: &str) -> Result<(), BenchError> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{word}").and_then(|()| stdout.flush()).map_err(lost_touch)
}

fn answer<T: Serialize>(result: &T) -> Result<(), BenchError> {
    say(&serde_json::to_string(result).expect("plain records always serialise"))
}

fn lost_touch(source: std::io::Error) -> BenchError {
    BenchError::Process { program: "the bench".to_owned(), source }
}
