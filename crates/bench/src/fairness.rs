//! Measures the longest wait of eight processes that make durable changes at once.
//!
//! Without tasks, breaking a hold is durable: each process takes its own lock, which is not, then
//! breaks it, which is. Bare SQLite does the same to rows, with its own busy handler.

use crate::processes::Processes;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::{longest, now, quantile};
use crate::sqlite_baseline::SqliteBaseline;
use crate::worker::{self, Work};
use crate::{BenchError, BenchSetup};
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use tenure::blocking::Client;
use tenure::{LeaseAttempt, Wait};

const PROCESSES: usize = 8;

/// The longest wait that a change may have.
const WANTED_SECONDS: f64 = 0.1;

pub(crate) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    // One process alone: how long the disk and the machine delay it.
    let alone = Contest::hold(setup, 1, setup.scale(500, 2000))?;
    alone.report(report, "longest wait", Unit::Seconds, None, |waits| longest(&waits.all));

    let together = Contest::hold(setup, PROCESSES, setup.scale(1000, 4000))?;
    let wanted = Some(Wanted::AtMost(WANTED_SECONDS));
    together.report(report, "longest wait", Unit::Seconds, wanted, |waits| longest(&waits.all));
    let p99 = |waits: &Waits| quantile(&waits.all, 0.99);
    together.report(report, "p99 wait", Unit::Seconds, None, p99);
    let seconds = together.seconds;
    let rate = |waits: &Waits| waits.all.len() as f64 / 2.0 / seconds;
    together.report(report, "take+break", Unit::PerSecond, None, rate);
    let uneven = |waits: &Waits| uneven(&waits.shares);
    together.report(report, "largest share by smallest", Unit::Times, None, uneven);
    Ok(())
}

/// The same changes by this many processes: in the store, then in bare SQLite, in turns.
struct Contest {
    case: String,
    store: Waits,
    baseline: Waits,
    seconds: f64,
}

/// The duration of each transaction in seconds, and the number of each process.
struct Waits {
    all: Vec<f64>,
    shares: Vec<usize>,
}

impl Contest {
    fn hold(setup: &BenchSetup, processes: usize, span_ms: u64) -> Result<Contest, BenchError> {
        let baseline = setup.file(&format!("fairness-{processes}-baseline.db"));
        SqliteBaseline::create(&baseline)?;
        let url = setup.store(&format!("fairness-{processes}"));
        Client::open(&url)?;
        let rounds = setup.scale(1, 3);
        let mut contest = Contest {
            case: format!("{processes} process{}", if processes == 1 { "" } else { "es" }),
            store: Waits::of(processes),
            baseline: Waits::of(processes),
            seconds: (rounds * span_ms) as f64 / 1000.0,
        };
        for _ in 0..rounds {
            contest.store.add(Processes::run((0..processes).map(|process| Work::Breaks {
                url: url.clone(),
                lock: format!("lock-{process}"),
                span_ms,
            }))?);
            contest.baseline.add(Processes::run((0..processes).map(|process| {
                Work::BaselineBreaks {
                    baseline: baseline.clone(),
                    name: format!("row-{process}"),
                    span_ms,
                }
            }))?);
        }
        Ok(contest)
    }

    fn report(
        &self,
        report: &mut Report,
        statistic: &'static str,
        unit: Unit,
        wanted: Option<Wanted>,
        judge: impl Fn(&Waits) -> f64,
    ) {
        let (value, baseline) = (judge(&self.store), judge(&self.baseline));
        report.add(Figure {
            measurement: "fairness",
            case: self.case.clone(),
            statistic,
            value,
            unit,
            beside: Some(Beside::new("bare SQLite", value, baseline)),
            wanted,
        });
    }
}

impl Waits {
    fn of(processes: usize) -> Waits {
        Waits { all: vec![], shares: vec![0; processes] }
    }

    fn add(&mut self, found: Vec<Vec<f64>>) {
        for (share, waits) in self.shares.iter_mut().zip(found) {
            *share += waits.len();
            self.all.extend(waits);
        }
    }
}

fn uneven(shares: &[usize]) -> f64 {
    let largest = shares.iter().max().copied().unwrap_or(0);
    let smallest = shares.iter().min().copied().unwrap_or(0);
    largest as f64 / smallest.max(1) as f64
}

/// In a worker: takes and breaks; returns the duration of each, in seconds.
pub(crate) fn breaks(url: &str, lock: &str, span_ms: u64) -> Result<Vec<f64>, BenchError> {
    let client = Client::open(url)?;
    worker::ready()?;
    let token = Cell::new(None);
    let take = || {
        let lease = client.run(client.request(lock).wait(Wait::No).lease())?;
        let LeaseAttempt::Held(lease) = lease else {
            return Err(BenchError::Worker { said: "busy".to_owned(), expected: "a free lock" });
        };
        token.set(Some(lease.token));
        Ok(())
    };
    let end = || {
        let token = token.take().expect("it was taken just before");
        client.run(client.asynchronous().break_hold(lock, token, "bench"))?;
        Ok(())
    };
    waits(span_ms, take, end)
}

/// In a worker: the same in bare SQLite.
pub(crate) fn baseline_breaks(
    baseline: &Path,
    name: &str,
    span_ms: u64,
) -> Result<Vec<f64>, BenchError> {
    let baseline = SqliteBaseline::open(baseline, name)?;
    worker::ready()?;
    waits(span_ms, || Ok(baseline.insert()?), || Ok(baseline.delete_durably()?))
}

fn waits(
    span_ms: u64,
    take: impl Fn() -> Result<(), BenchError>,
    end: impl Fn() -> Result<(), BenchError>,
) -> Result<Vec<f64>, BenchError> {
    let ends_at = now() + Duration::from_millis(span_ms);
    let mut waits = Vec::new();
    while now() < ends_at {
        for act in [&take as &dyn Fn() -> _, &end] {
            let begun = now();
            act()?;
            waits.push((now() - begun).as_secs_f64());
        }
    }
    Ok(waits)
}
