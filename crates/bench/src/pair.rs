//! Measures uncontended acquire and release, next to inserting and deleting a bare row.

use crate::file_baseline::FileBaseline;
use crate::processes::Processes;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::{median, now};
use crate::sqlite_baseline::SqliteBaseline;
use crate::worker::{self, Work};
use crate::{BenchError, BenchSetup, soft_lock};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::blocking::Client;

const PROCESSES: usize = 8;

/// How often something was done, in which time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

impl Tally {
    pub(crate) fn rate(self) -> f64 {
        self.count as f64 / self.seconds
    }
}

pub(crate) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    alone(setup, report)?;
    if setup.has_files() {
        beside_soft_lock(setup, report)?;
    }
    together(setup, report, "own locks", |process| format!("lock-{process}"))?;
    together(setup, report, "one lock", |_| "lock".to_owned())
}

/// One process, store and baseline in turns, so that noise affects both.
fn alone(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let baseline = make_baseline(setup, "pair")?;
    let url = setup.store("pair");
    let work =
        Work::Duel { url, baseline, rounds: setup.scale(6, 20), span_ms: setup.scale(60, 250) };
    let rounds: Vec<(Tally, Tally)> = Processes::run([work])?.remove(0);
    let least = if setup.has_files() { 1.0 / 3.0 } else { 0.5 };
    report.add(figure(setup, "1 process", &rounds, Some(Wanted::RatioAtLeast(least))));
    Ok(())
}

/// One process next to another tool that creates lock files.
fn beside_soft_lock(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let Some(theirs) = soft_lock::rate(setup, &setup.file("soft.lock")) else {
        report.note("python3 with filelock is not installed (`pip install filelock`): SoftFileLock was skipped");
        return Ok(());
    };
    let url = setup.store("pair");
    let work = Work::Pairs { url, lock: "lock".to_owned(), span_ms: setup.scale(400, 3000) };
    let ours = Processes::run::<Tally>([work])?.remove(0).rate();
    report.add(Figure {
        measurement: "pair",
        case: "1 process, next to Python".to_owned(),
        statistic: "acquire+release",
        value: ours,
        unit: Unit::PerSecond,
        beside: Some(Beside::new("SoftFileLock", ours, theirs)),
        wanted: Some(Wanted::RatioAtLeast(3.0)),
    });
    Ok(())
}

/// Creates the baseline: a table, or a folder.
fn make_baseline(setup: &BenchSetup, name: &str) -> Result<PathBuf, BenchError> {
    if setup.has_files() {
        return Ok(setup.file(&format!("{name}-baseline")));
    }
    let baseline = setup.file(&format!("{name}-baseline.db"));
    SqliteBaseline::create(&baseline)?;
    Ok(baseline)
}

/// The baseline: the same work without tenure.
enum Bare {
    Row(SqliteBaseline),
    File(FileBaseline),
}

impl Bare {
    /// Opens the table if there is one, else the folder.
    fn open(baseline: &Path, name: &str) -> Result<Bare, BenchError> {
        match baseline.is_file() {
            true => Ok(Bare::Row(SqliteBaseline::open(baseline, name)?)),
            false => Ok(Bare::File(FileBaseline::open(baseline, name)?)),
        }
    }

    fn pair(&self) -> Result<(), BenchError> {
        match self {
            Bare::Row(row) => Ok(row.insert().and_then(|()| row.delete())?),
            Bare::File(file) => Ok(file.pair()?),
        }
    }
}

/// Several processes, all on the store, then all on the baseline, in turns.
fn together(
    setup: &BenchSetup,
    report: &mut Report,
    which: &str,
    lock: impl Fn(usize) -> String,
) -> Result<(), BenchError> {
    let baseline = make_baseline(setup, &format!("pair-{which}"))?;
    let url = setup.store(&format!("pair-{which}"));
    Client::open(&url)?;
    let span_ms = setup.scale(250, 1000);
    let mut rounds = Vec::new();
    for _ in 0..setup.scale(1, 3) {
        let store = Processes::run((0..PROCESSES).map(|process| Work::Pairs {
            url: url.clone(),
            lock: lock(process),
            span_ms,
        }))?;
        let bare = Processes::run((0..PROCESSES).map(|process| Work::BaselinePairs {
            baseline: baseline.clone(),
            // Bare rows cannot be waited for, so each process has its own.
            name: format!("row-{process}"),
            span_ms,
        }))?;
        rounds.push((total(&store), total(&bare)));
    }
    report.add(figure(setup, &format!("{PROCESSES} processes, {which}"), &rounds, None));
    Ok(())
}

/// The sum of all processes.
pub(crate) fn total(tallies: &[Tally]) -> Tally {
    let rate: f64 = tallies.iter().map(|tally| tally.rate()).sum();
    Tally { count: rate.round() as u64, seconds: 1.0 }
}

fn figure(
    setup: &BenchSetup,
    case: &str,
    rounds: &[(Tally, Tally)],
    wanted: Option<Wanted>,
) -> Figure {
    let store: Vec<f64> = rounds.iter().map(|(store, _)| store.rate()).collect();
    let baseline: Vec<f64> = rounds.iter().map(|(_, baseline)| baseline.rate()).collect();
    let ratios: Vec<f64> =
        store.iter().zip(&baseline).map(|(store, baseline)| store / baseline).collect();
    Figure {
        measurement: "pair",
        case: case.to_owned(),
        statistic: "acquire+release",
        value: median(&store),
        unit: Unit::PerSecond,
        beside: Some(Beside {
            what: if setup.has_files() { "temp+link+unlink" } else { "bare SQLite" },
            value: median(&baseline),
            // The ratio of each round: what slows one of the two slows the other as well.
            ratio: median(&ratios),
        }),
        wanted,
    }
}

/// In a worker: store and baseline in turns, each first in every other round.
pub(crate) fn duel(
    url: &str,
    baseline: &Path,
    rounds: u32,
    span_ms: u64,
) -> Result<Vec<(Tally, Tally)>, BenchError> {
    let client = Client::open(url)?;
    let baseline = Bare::open(baseline, "row")?;
    worker::ready()?;
    let store = || tally(span_ms, || pair(&client, "lock"));
    let bare = || tally(span_ms, || baseline.pair().map(|()| 1));
    // The first round fills caches and is not counted.
    let (_, _) = (store()?, bare()?);
    let round = |number: u32| {
        Ok(match number % 2 {
            0 => (store()?, bare()?),
            _ => {
                let bare = bare()?;
                (store()?, bare)
            }
        })
    };
    (0..rounds).map(round).collect()
}

/// In a worker: acquire and release.
pub(crate) fn pairs(url: &str, lock: &str, span_ms: u64) -> Result<Tally, BenchError> {
    let client = Client::open(url)?;
    worker::ready()?;
    tally(span_ms, || pair(&client, lock))
}

fn pair(client: &Client, lock: &str) -> Result<u64, BenchError> {
    drop(client.acquire(lock)?);
    Ok(1)
}

/// In a worker: the same on the baseline.
pub(crate) fn baseline_pairs(
    baseline: &Path,
    name: &str,
    span_ms: u64,
) -> Result<Tally, BenchError> {
    let baseline = Bare::open(baseline, name)?;
    worker::ready()?;
    tally(span_ms, || baseline.pair().map(|()| 1))
}

/// Two commits on the baseline, counted as one.
pub(crate) fn baseline_pair(baseline: &SqliteBaseline) -> Result<u64, BenchError> {
    baseline.insert()?;
    baseline.delete()?;
    Ok(1)
}

/// Repeats `act` for this long. `act` returns how much it did; zero ends the measurement.
pub(crate) fn tally(
    span_ms: u64,
    mut act: impl FnMut() -> Result<u64, BenchError>,
) -> Result<Tally, BenchError> {
    let begun = now();
    let span = Duration::from_millis(span_ms);
    let mut count = 0;
    loop {
        let done = act()?;
        count += done;
        let elapsed = now() - begun;
        if elapsed >= span || done == 0 {
            return Ok(Tally { count, seconds: elapsed.as_secs_f64() });
        }
    }
}
