//! One worker process of a selftest. It gets its work as an argument, starts on order, and reports
//! each time that it enters and leaves.

use super::SelftestError;
use super::contender::{Contender, NoTurn};
use super::file_replacement::{self, Round};
use super::trial::Trial;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tenure::core::Retention;
use tenure::world::{Clock, SystemClock};

/// The order to start, followed by the end time in nanoseconds on the shared clock.
pub(super) const GO: &str = "go";

/// The order to keep the next turn until killed.
pub(super) const KEEP: &str = "keep";

/// The length of a turn, long enough for another process to intrude if it can.
const STAY: Duration = Duration::from_micros(300);

/// The least number of rounds of each worker: on a busy machine the time may be over before it
/// started.
const ROUNDS_AT_LEAST: u64 = 5;

/// The work of a worker process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(super) trial: Trial,
    /// The folder for its files.
    pub(super) folder: PathBuf,
    /// The URL of the scratch store.
    pub(super) url: String,
    /// It also ends after this many turns.
    pub(super) rounds_max: u64,
    pub(super) without_lock: bool,
    /// How long it pauses after each turn; a soak has hours and shares the machine.
    #[serde(default)]
    pub(super) pause_ms: u64,
    /// How much history is kept; as much as usual unless given.
    #[serde(default)]
    pub(super) retention: Retention,
}

/// A report of a worker, one per line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerMessage {
    /// It is ready to start.
    Ready,
    /// It holds, at the latest since this time.
    Entered {
        token: Option<u64>,
        at: u64,
        /// Whether it waits to be killed.
        keeps: bool,
    },
    /// It held at least until this time; `None` if it had lost the lease.
    Left { at: Option<u64> },
    /// The time is over.
    Done(Tally),
    /// The file system does not support the trial.
    Missing { why: String },
    /// Something is wrong.
    Wrong { sentence: String },
}

/// Counts of a trial without turns.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) rounds: u64,
    /// How often a file was missing.
    pub(super) gaps: u64,
}

/// Now, in nanoseconds on the clock that all processes share.
pub(super) fn ticks() -> u64 {
    SystemClock.now().as_nanos() as u64
}

/// Does the work and prints reports.
pub(crate) fn work(work: &Work) -> Result<(), SelftestError> {
    let outcome = Contender::new(work).map(|contender| (contender, Orders::listen()));
    say(&WorkerMessage::Ready)?;
    let ended = match outcome {
        Err(reason) => Err(reason),
        Ok((contender, orders)) => {
            let end = orders.await_go();
            match contender {
                Some(contender) => take_turns(work, contender, &orders, end)?,
                None => churn(work, end),
            }
        }
    };
    say(&match ended {
        Ok(tally) => WorkerMessage::Done(tally),
        Err(NoTurn::Missing(why)) => WorkerMessage::Missing { why: why.to_string() },
        Err(reason) => WorkerMessage::Wrong { sentence: reason.to_string() },
    })
}

/// Enters and leaves until the time is over.
fn take_turns(
    work: &Work,
    mut contender: Contender,
    orders: &Orders,
    end: u64,
) -> Result<Result<Tally, NoTurn>, SelftestError> {
    for round in 0..work.rounds_max {
        let is_over = || round >= ROUNDS_AT_LEAST && ticks() >= end;
        if is_over() {
            break;
        }
        let token = match contender.enter(is_over) {
            Ok(token) => token,
            Err(NoTurn::Over) => break,
            Err(reason) => return Ok(Err(reason)),
        };
        let (at, keeps) = (ticks(), orders.keep.load(Ordering::Relaxed));
        say(&WorkerMessage::Entered { token, at, keeps })?;
        if keeps {
            std::thread::sleep(super::contender::LIMIT);
        }
        std::thread::sleep(STAY);
        let at = ticks();
        say(&WorkerMessage::Left { at: contender.is_held().then_some(at) })?;
        if let Err(reason) = contender.leave() {
            return Ok(Err(reason));
        }
        std::thread::sleep(Duration::from_millis(work.pause_ms));
    }
    Ok(Ok(Tally::default()))
}

/// Replaces or swaps files until the time is over.
fn churn(work: &Work, end: u64) -> Result<Tally, NoTurn> {
    let mut tally = Tally::default();
    while tally.rounds < work.rounds_max && (tally.rounds < ROUNDS_AT_LEAST || ticks() < end) {
        match file_replacement::round(work.trial, &work.folder)? {
            Round::Fine => {}
            Round::Gap => tally.gaps += 1,
            Round::Wrong(sentence) => return Err(NoTurn::Wrong(sentence)),
        }
        tally.rounds += 1;
    }
    Ok(tally)
}

/// Orders from the parent process.
#[derive(Clone, Default)]
struct Orders {
    /// When to end; 0 before the order to start.
    end: Arc<AtomicU64>,
    keep: Arc<AtomicBool>,
}

impl Orders {
    /// Reads orders in a thread. When the input ends, the parent is gone and this worker exits.
    fn listen() -> Orders {
        let orders = Orders::default();
        let (heard, worker) = (orders.clone(), std::thread::current());
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                match line.split_once(' ').map(|(word, end)| (word, end.parse())) {
                    Some((GO, Ok(end))) => heard.end.store(end, Ordering::Relaxed),
                    _ if line == KEEP => heard.keep.store(true, Ordering::Relaxed),
                    _ => break,
                }
                worker.unpark();
            }
            crate::output::end(1);
        });
        orders
    }

    /// Waits for the order to start; returns the end time.
    fn await_go(&self) -> u64 {
        loop {
            match self.end.load(Ordering::Relaxed) {
                0 => std::thread::park(),
                end => return end,
            }
        }
    }
}

fn say(word: &WorkerMessage) -> Result<(), SelftestError> {
    let mut line = serde_json::to_string(word).expect("plain records always serialise");
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    let said = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    said.map_err(|source| SelftestError::Process { source })
}
