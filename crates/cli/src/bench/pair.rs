//! Acquire and release, uncontended, beside the bare insert and delete of a row.

use super::crew::Crew;
use super::floor::Floor;
use super::links::Links;
use super::report::{Beside, Figure, Report, Unit, Wanted};
use super::sample::{median, now};
use super::worker::{self, Work};
use super::{BenchError, Ground, soft_lock};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::blocking::Client;

const PROCESSES: usize = 8;

/// How often something was done, in how long.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) seconds: f64,
}

impl Tally {
    pub(super) fn rate(self) -> f64 {
        self.count as f64 / self.seconds
    }
}

pub(super) fn measure(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    alone(ground, report)?;
    if ground.has_files() {
        beside_soft_lock(ground, report)?;
    }
    together(ground, report, "own locks", |process| format!("lock-{process}"))?;
    together(ground, report, "one lock", |_| "lock".to_owned())
}

/// One process, store and floor in turns, so that noise meets both.
fn alone(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    let floor = make_floor(ground, "pair")?;
    let url = ground.store("pair");
    let work =
        Work::Duel { url, floor, rounds: ground.scale(6, 20), span_ms: ground.scale(60, 250) };
    let rounds: Vec<(Tally, Tally)> = Crew::run([work])?.remove(0);
    let least = if ground.has_files() { 1.0 / 3.0 } else { 0.5 };
    report.add(figure(ground, "1 process", &rounds, Some(Wanted::RatioAtLeast(least))));
    Ok(())
}

/// One process beside another tool that makes lock files.
fn beside_soft_lock(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    let Some(theirs) = soft_lock::rate(ground, &ground.file("soft.lock")) else {
        report.note("There is no python3 with filelock here (`pip install filelock`): SoftFileLock was skipped");
        return Ok(());
    };
    let url = ground.store("pair");
    let work = Work::Pairs { url, lock: "lock".to_owned(), span_ms: ground.scale(400, 3000) };
    let ours = Crew::run::<Tally>([work])?.remove(0).rate();
    report.add(Figure {
        measurement: "pair",
        case: "1 process, beside Python".to_owned(),
        statistic: "acquire+release",
        value: ours,
        unit: Unit::PerSecond,
        beside: Some(Beside::new("SoftFileLock", ours, theirs)),
        wanted: Some(Wanted::RatioAtLeast(3.0)),
    });
    Ok(())
}

/// Where something bare does the same: a table, or a folder.
fn make_floor(ground: &Ground, name: &str) -> Result<PathBuf, BenchError> {
    if ground.has_files() {
        return Ok(ground.file(&format!("{name}-floor")));
    }
    let floor = ground.file(&format!("{name}-floor.db"));
    Floor::create(&floor)?;
    Ok(floor)
}

/// What does the same with nothing around it.
enum Bare {
    Row(Floor),
    File(Links),
}

impl Bare {
    /// By a table if that was made, else by files in a folder.
    fn open(floor: &Path, name: &str) -> Result<Bare, BenchError> {
        match floor.is_file() {
            true => Ok(Bare::Row(Floor::open(floor, name)?)),
            false => Ok(Bare::File(Links::open(floor, name)?)),
        }
    }

    fn pair(&self) -> Result<(), BenchError> {
        match self {
            Bare::Row(row) => Ok(row.insert().and_then(|()| row.delete())?),
            Bare::File(file) => Ok(file.pair()?),
        }
    }
}

/// Several processes, all on the store, then all on the floor, and again.
fn together(
    ground: &Ground,
    report: &mut Report,
    which: &str,
    lock: impl Fn(usize) -> String,
) -> Result<(), BenchError> {
    let floor = make_floor(ground, &format!("pair-{which}"))?;
    let url = ground.store(&format!("pair-{which}"));
    Client::open(&url)?;
    let span_ms = ground.scale(250, 1000);
    let mut rounds = Vec::new();
    for _ in 0..ground.scale(1, 3) {
        let store = Crew::run((0..PROCESSES).map(|process| Work::Pairs {
            url: url.clone(),
            lock: lock(process),
            span_ms,
        }))?;
        let bare = Crew::run((0..PROCESSES).map(|process| Work::FloorPairs {
            floor: floor.clone(),
            // Bare rows know no waiting, so each process has its own.
            name: format!("row-{process}"),
            span_ms,
        }))?;
        rounds.push((total(&store), total(&bare)));
    }
    report.add(figure(ground, &format!("{PROCESSES} processes, {which}"), &rounds, None));
    Ok(())
}

/// What all did together.
pub(super) fn total(tallies: &[Tally]) -> Tally {
    let rate: f64 = tallies.iter().map(|tally| tally.rate()).sum();
    Tally { count: rate.round() as u64, seconds: 1.0 }
}

fn figure(
    ground: &Ground,
    case: &str,
    rounds: &[(Tally, Tally)],
    wanted: Option<Wanted>,
) -> Figure {
    let store: Vec<f64> = rounds.iter().map(|(store, _)| store.rate()).collect();
    let floor: Vec<f64> = rounds.iter().map(|(_, floor)| floor.rate()).collect();
    let ratios: Vec<f64> = store.iter().zip(&floor).map(|(store, floor)| store / floor).collect();
    Figure {
        measurement: "pair",
        case: case.to_owned(),
        statistic: "acquire+release",
        value: median(&store),
        unit: Unit::PerSecond,
        beside: Some(Beside {
            what: if ground.has_files() { "temp+link+unlink" } else { "bare SQLite" },
            value: median(&floor),
            // Of each round by itself: what slowed one of the two slowed the other as well.
            ratio: median(&ratios),
        }),
        wanted,
    }
}

/// In a worker: the two in turns, each first in every other round.
pub(super) fn duel(
    url: &str,
    floor: &Path,
    rounds: u32,
    span_ms: u64,
) -> Result<Vec<(Tally, Tally)>, BenchError> {
    let client = Client::open(url)?;
    let floor = Bare::open(floor, "row")?;
    worker::ready()?;
    let store = || tally(span_ms, || pair(&client, "lock"));
    let bare = || tally(span_ms, || floor.pair().map(|()| 1));
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
pub(super) fn pairs(url: &str, lock: &str, span_ms: u64) -> Result<Tally, BenchError> {
    let client = Client::open(url)?;
    worker::ready()?;
    tally(span_ms, || pair(&client, lock))
}

fn pair(client: &Client, lock: &str) -> Result<u64, BenchError> {
    drop(client.acquire(lock)?);
    Ok(1)
}

/// In a worker: the same on the floor.
pub(super) fn floor_pairs(floor: &Path, name: &str, span_ms: u64) -> Result<Tally, BenchError> {
    let floor = Bare::open(floor, name)?;
    worker::ready()?;
    tally(span_ms, || floor.pair().map(|()| 1))
}

/// Two commits on the floor, which count as one.
pub(super) fn floor_pair(floor: &Floor) -> Result<u64, BenchError> {
    floor.insert()?;
    floor.delete()?;
    Ok(1)
}

/// Acts again and again for this long; each act says how much it did, and ends it with nothing.
pub(super) fn tally(
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
