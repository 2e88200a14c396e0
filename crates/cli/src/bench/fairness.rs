//! The longest wait of any of eight processes that make durable changes at once.
//!
//! What is durable without tasks is to break a hold: each process takes its own lock, which is not,
//! then breaks it, which is. Bare SQLite does the same to rows, with its own busy handler.

use super::crew::Crew;
use super::floor::Floor;
use super::report::{Beside, Figure, Report, Unit, Wanted};
use super::sample::{longest, now, quantile};
use super::worker::{self, Work};
use super::{BenchError, Ground};
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use tenure::blocking::Client;
use tenure::{LeaseAttempt, Wait};

const PROCESSES: usize = 8;

/// No change may take longer than this.
const WANTED_SECONDS: f64 = 0.1;

pub(super) fn measure(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    // Alone there is nobody to be fair to: so long do the disk and the machine keep one waiting.
    let alone = Contest::hold(ground, 1, ground.scale(500, 2000))?;
    alone.report(report, "longest wait", Unit::Seconds, None, |waits| longest(&waits.all));

    let together = Contest::hold(ground, PROCESSES, ground.scale(1000, 4000))?;
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

/// The same changes by so many processes: in the store, then on the floor, and again.
struct Contest {
    case: String,
    store: Waits,
    floor: Waits,
    seconds: f64,
}

/// How long each transaction took in seconds, and how many each process made.
struct Waits {
    all: Vec<f64>,
    shares: Vec<usize>,
}

impl Contest {
    fn hold(ground: &Ground, processes: usize, span_ms: u64) -> Result<Contest, BenchError> {
        let floor = ground.file(&format!("fairness-{processes}-floor.db"));
        Floor::create(&floor)?;
        let url = ground.store(&format!("fairness-{processes}"));
        Client::open(&url)?;
        let rounds = ground.scale(1, 3);
        let mut contest = Contest {
            case: format!("{processes} process{}", if processes == 1 { "" } else { "es" }),
            store: Waits::of(processes),
            floor: Waits::of(processes),
            seconds: (rounds * span_ms) as f64 / 1000.0,
        };
        for _ in 0..rounds {
            contest.store.add(Crew::run((0..processes).map(|process| Work::Breaks {
                url: url.clone(),
                lock: format!("lock-{process}"),
                span_ms,
            }))?);
            contest.floor.add(Crew::run((0..processes).map(|process| Work::FloorBreaks {
                floor: floor.clone(),
                name: format!("row-{process}"),
                span_ms,
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
        let (value, floor) = (judge(&self.store), judge(&self.floor));
        report.add(Figure {
            measurement: "fairness",
            case: self.case.clone(),
            statistic,
            value,
            unit,
            beside: Some(Beside::new("bare SQLite", value, floor)),
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

/// In a worker: takes and breaks; how long each took, in seconds.
pub(super) fn breaks(url: &str, lock: &str, span_ms: u64) -> Result<Vec<f64>, BenchError> {
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

/// In a worker: the same on the floor.
pub(super) fn floor_breaks(floor: &Path, name: &str, span_ms: u64) -> Result<Vec<f64>, BenchError> {
    let floor = Floor::open(floor, name)?;
    worker::ready()?;
    waits(span_ms, || Ok(floor.insert()?), || Ok(floor.delete_durably()?))
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
