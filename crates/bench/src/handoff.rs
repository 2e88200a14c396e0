//! Measures how soon the next waiter obtains a released lock.
//!
//! A fixed number of contenders wait at all times, spread over a few processes. The one that gets
//! the lock records the time, records it again, releases, and queues again. All processes share one
//! clock, and tokens give the order.

use crate::processes::Processes;
use crate::report::{Figure, Report, Unit, Wanted};
use crate::sample::{now, quantile};
use crate::worker::{self, Work};
use crate::{BenchError, BenchSetup};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tenure::{Attempt, Client, Wait, blocking};

/// The number of waiters and of processes, and whether the targets apply.
const CASES: [(usize, usize, bool); 4] =
    [(2, 2, true), (16, 8, true), (128, 8, true), (1000, 8, false)];

const LOCK: &str = "baton";

/// What a worker prints when all its contenders wait.
const QUEUED: &str = "queued";

/// A wait longer than this is an error.
const LIMIT: Duration = Duration::from_secs(60);

/// One contender's turn. Times are nanoseconds on the shared clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    token: u64,
    asked: u64,
    /// When it learned that it has to wait; 0 if it did not have to.
    queued: u64,
    acquired: u64,
    released: u64,
}

pub(crate) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    for (waiters, processes, judged) in CASES {
        let mut turns = contest(setup, waiters, processes)?;
        turns.sort_by_key(|turn| turn.token);
        let latencies = latencies(&turns)?;
        let figure = |statistic, value, unit, wanted: Wanted| Figure {
            measurement: "handoff",
            case: format!("{waiters} waiters"),
            statistic,
            value,
            unit,
            beside: None,
            wanted: (judged || unit == Unit::Count).then_some(wanted),
        };
        let (p50, p99) = (quantile(&latencies, 0.5), quantile(&latencies, 0.99));
        report.add(figure("p50", p50, Unit::Seconds, Wanted::AtMost(0.001)));
        report.add(figure("p99", p99, Unit::Seconds, Wanted::AtMost(0.01)));
        let overtaken = overtaken(&turns) as f64;
        report.add(figure("overtaken", overtaken, Unit::Count, Wanted::AtMost(0.0)));
    }
    Ok(())
}

/// Lets contenders queue behind a hold of this process, then releases.
fn contest(setup: &BenchSetup, waiters: usize, processes: usize) -> Result<Vec<Turn>, BenchError> {
    let url = setup.store(&format!("handoff-{waiters}"));
    contest_at(&url, waiters, processes, 0, setup.scale(700, 4000))
}

/// Seconds from each release to the next grant, with so many waiters in this store. Each holds the lock for
/// this long.
pub(crate) fn latencies_at(
    url: &str,
    waiters: usize,
    hold_ms: u64,
    span_ms: u64,
) -> Result<Vec<f64>, BenchError> {
    let mut turns = contest_at(url, waiters, waiters.min(8), hold_ms, span_ms)?;
    turns.sort_by_key(|turn| turn.token);
    latencies(&turns)
}

fn contest_at(
    url: &str,
    waiters: usize,
    processes: usize,
    hold_ms: u64,
    span_ms: u64,
) -> Result<Vec<Turn>, BenchError> {
    let client = blocking::Client::open(url)?;
    let guard = client.acquire(LOCK)?;
    let mut processes = Processes::start((0..processes).map(|process| Work::Contend {
        url: url.to_owned(),
        lock: LOCK.to_owned(),
        // One more than should wait, because one of them holds.
        contenders: waiters / processes + usize::from(process == 0),
        hold_ms,
        span_ms,
    }))?;
    processes.go()?;
    processes.hear(QUEUED)?;
    guard.release()?;
    Ok(processes.results::<Vec<Turn>>()?.into_iter().flatten().collect())
}

/// Seconds from each release to the next grant, if the next contender was already waiting.
fn latencies(turns: &[Turn]) -> Result<Vec<f64>, BenchError> {
    let mut latencies = Vec::new();
    for pair in turns.windows(2) {
        let [earlier, later] = pair else { continue };
        if later.acquired < earlier.released {
            let (earlier, later) = (earlier.token, later.token);
            return Err(BenchError::NotExclusive { earlier, later });
        }
        if later.queued > 0 && later.queued < earlier.released {
            latencies.push((later.acquired - earlier.released) as f64 / 1e9);
        }
    }
    Ok(latencies)
}

/// How many were served before a contender that had waited since before they asked.
fn overtaken(turns: &[Turn]) -> usize {
    let mut first_queued_of_later = u64::MAX;
    let mut count = 0;
    for turn in turns.iter().rev() {
        count += usize::from(first_queued_of_later < turn.asked);
        if turn.queued > 0 {
            first_queued_of_later = first_queued_of_later.min(turn.queued);
        }
    }
    count
}

/// In a worker: this many contenders, each queueing again after its turn until the time is over.
pub(crate) fn contend(
    url: &str,
    lock: &str,
    contenders: usize,
    hold_ms: u64,
    span_ms: u64,
) -> Result<Vec<Turn>, BenchError> {
    let client = blocking::Client::open(url)?;
    worker::ready()?;
    let contest = Arc::new(Contest {
        client: client.asynchronous().clone(),
        lock: lock.to_owned(),
        hold: Duration::from_millis(hold_ms),
        span_ns: Duration::from_millis(span_ms).as_nanos() as u64,
        not_yet_queued: AtomicUsize::new(contenders),
        ends_at: AtomicU64::new(u64::MAX),
    });
    client.run(async {
        let mut contenders: tokio::task::JoinSet<_> =
            (0..contenders).map(|_| contest.clone().take_turns()).collect();
        let mut turns = Vec::new();
        while let Some(taken) = contenders.join_next().await {
            let panicked = |error: tokio::task::JoinError| BenchError::Worker {
                said: error.to_string(),
                expected: "turns",
            };
            turns.extend(taken.map_err(panicked)??);
        }
        Ok(turns)
    })
}

struct Contest {
    client: Client,
    lock: String,
    /// How long each contender holds the lock.
    hold: Duration,
    span_ns: u64,
    not_yet_queued: AtomicUsize,
    /// Set at the first turn of this process.
    ends_at: AtomicU64,
}

impl Contest {
    async fn take_turns(self: Arc<Contest>) -> Result<Vec<Turn>, BenchError> {
        let mut turns = Vec::new();
        loop {
            let turn = self.take_turn(turns.is_empty()).await?;
            self.ends_at.fetch_min(turn.acquired + self.span_ns, Ordering::Relaxed);
            let over = turn.released >= self.ends_at.load(Ordering::Relaxed);
            turns.push(turn);
            if over {
                return Ok(turns);
            }
        }
    }

    async fn take_turn(self: &Arc<Contest>, first: bool) -> Result<Turn, BenchError> {
        let queued = Arc::new(AtomicU64::new(0));
        let (contest, noted) = (self.clone(), queued.clone());
        let note = move |_: &tenure::Waiting| {
            let new = noted.compare_exchange(0, ticks(), Ordering::Relaxed, Ordering::Relaxed);
            if first && new.is_ok() && contest.not_yet_queued.fetch_sub(1, Ordering::Relaxed) == 1 {
                // If this fails the parent is gone, and this worker will be soon.
                let _ = worker::say(QUEUED);
            }
        };
        let asked = ticks();
        let request = self.client.request(self.lock.as_str()).wait(Wait::UpTo(LIMIT)).on_wait(note);
        let Attempt::Held(guard) = request.hold().await? else {
            return Err(BenchError::TooSlow { what: "a hand-off", seconds: LIMIT.as_secs() });
        };
        let acquired = ticks();
        let token = guard.token().0;
        if !self.hold.is_zero() {
            tokio::time::sleep(self.hold).await;
        }
        let released = ticks();
        guard.release().await?;
        Ok(Turn { token, asked, queued: queued.load(Ordering::Relaxed), acquired, released })
    }
}

fn ticks() -> u64 {
    now().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(token: u64, asked: u64, queued: u64, acquired: u64, released: u64) -> Turn {
        Turn { token, asked, queued, acquired, released }
    }

    #[test]
    fn only_those_who_waited_were_handed_anything() {
        let turns = [turn(1, 0, 0, 1, 10), turn(2, 3, 4, 12, 20), turn(3, 25, 0, 26, 30)];
        assert_eq!(latencies(&turns).unwrap(), [2e-9]);
        assert_eq!(overtaken(&turns), 0);
    }

    #[test]
    fn an_overlap_is_an_error() {
        let turns = [turn(1, 0, 0, 1, 10), turn(2, 3, 4, 9, 20)];
        assert!(matches!(latencies(&turns), Err(BenchError::NotExclusive { .. })));
    }

    #[test]
    fn whoever_asked_after_another_waited_must_not_go_first() {
        let turns = [turn(1, 5, 6, 10, 11), turn(2, 1, 2, 12, 13)];
        assert_eq!(overtaken(&turns), 1);
        // Two that asked at the same time have no order.
        let turns = [turn(1, 2, 6, 10, 11), turn(2, 1, 3, 12, 13)];
        assert_eq!(overtaken(&turns), 0);
    }
}
