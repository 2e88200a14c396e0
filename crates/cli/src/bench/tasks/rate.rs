//! Claim and complete, one by one and in batches, beside two bare commits that are synced as well.

use super::super::crew::Crew;
use super::super::floor::Floor;
use super::super::pair::{Tally, floor_pair, tally, total};
use super::super::report::{Beside, Figure, Report, Unit, Wanted};
use super::super::sample::median;
use super::super::worker::{self, Work};
use super::super::{BenchError, Ground};
use super::BATCH;
use super::stock::{counts, stock_up};
use std::path::Path;
use tenure::blocking::Client;
use tenure::core::Proof;
use tenure::core::rules::tasks::{Claimed, Finish, FinishAsk, Finished};
use tenure::{ClaimRequest, Claims};

const PROCESSES: usize = 8;

/// One by one it is at least a third of the bare commits.
const WANTED_OF_FLOOR: f64 = 0.334;

/// In batches it is at least so many times as fast as one by one.
const WANTED_BY_BATCH: f64 = 10.0;

/// So many tasks are ready for each millisecond of a round: more than anybody claims.
const STOCK_PER_MS: u64 = 60;

/// One by one, in batches, and on the floor.
type Round = [Tally; 3];

pub(super) fn measure(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    let floor = ground.file("tasks-floor.db");
    Floor::create_worn_in(&floor)?;
    let url = ground.given_store().map_or_else(|| ground.store("tasks"), str::to_owned);
    let client = Client::open(&url)?;
    let before = counts(&client)?.completed;
    let span_ms = ground.scale(60, 300);

    let work = Work::TaskTrio {
        url: url.clone(),
        floor: floor.clone(),
        rounds: ground.scale(2, 10),
        span_ms,
    };
    let (warm_up, alone): (u64, Vec<Round>) = Crew::run([work])?.remove(0);
    add(report, "1 process", &alone, Some(Wanted::RatioAtLeast(WANTED_OF_FLOOR)));

    let mut together: Vec<Round> = Vec::new();
    let mut done =
        warm_up + alone.iter().map(|[one, batch, _]| one.count + batch.count).sum::<u64>();
    for _ in 0..ground.scale(1, 4) {
        let mut pairs = |batch: usize| {
            stock_up(&client, (span_ms * STOCK_PER_MS) as usize)?;
            let work = |_| Work::TaskPairs { url: url.clone(), batch, span_ms };
            let tallies: Vec<Tally> = Crew::run((0..PROCESSES).map(work))?;
            done += tallies.iter().map(|tally| tally.count).sum::<u64>();
            Ok::<Tally, BenchError>(total(&tallies))
        };
        let (one, batch) = (pairs(1)?, pairs(BATCH)?);
        let bare: Vec<Tally> = Crew::run((0..PROCESSES).map(|process| Work::FloorCommits {
            floor: floor.clone(),
            name: format!("row-{process}"),
            span_ms,
        }))?;
        together.push([one, batch, total(&bare)]);
    }
    add(report, &format!("{PROCESSES} processes"), &together, None);
    count(report, &client, before, done)
}

/// What the workers say they did must be what the store has.
fn count(report: &mut Report, client: &Client, before: usize, done: u64) -> Result<(), BenchError> {
    let counts = counts(client)?;
    let (store, workers) = (counts.completed - before, done as usize);
    if store != workers {
        return Err(BenchError::Miscounted { what: "completed", store, workers });
    }
    if counts.in_progress > 0 {
        let store = counts.in_progress;
        return Err(BenchError::Miscounted { what: "in progress", store, workers: 0 });
    }
    report.add(Figure {
        measurement: "tasks",
        case: "all of these".to_owned(),
        statistic: "completed",
        value: store as f64,
        unit: Unit::Count,
        beside: Some(Beside::new("by the workers' count", store as f64, done as f64)),
        wanted: None,
    });
    Ok(())
}

fn add(report: &mut Report, who: &str, rounds: &[Round], wanted: Option<Wanted>) {
    let rates = |which: usize| rounds.iter().map(|round| round[which].rate()).collect::<Vec<_>>();
    let (one, batch, floor) = (rates(0), rates(1), rates(2));
    // Of each round by itself: what slowed one of them slowed the others as well.
    let ratio = |ours: &[f64], theirs: &[f64]| {
        median(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
    };
    let figure = |how: &str, ours: &[f64], what, theirs: &[f64], wanted| Figure {
        measurement: "tasks",
        case: format!("{who}, {how}"),
        statistic: "claim+complete",
        value: median(ours),
        unit: Unit::PerSecond,
        beside: Some(Beside { what, value: median(theirs), ratio: ratio(ours, theirs) }),
        wanted,
    };
    report.add(figure("one by one", &one, "two bare commits", &floor, wanted));
    let by_batch = wanted.map(|_| Wanted::RatioAtLeast(WANTED_BY_BATCH));
    report.add(figure(&format!("by {BATCH}"), &batch, "one by one", &one, by_batch));
}

/// In a worker: the three in turns, each first in every third round; and how many tasks were
/// completed before the count began.
pub(in super::super) fn trio(
    url: &str,
    floor: &Path,
    rounds: usize,
    span_ms: u64,
) -> Result<(u64, Vec<Round>), BenchError> {
    let client = Client::open(url)?;
    let floor = Floor::open_durable(floor, "row")?;
    worker::ready()?;
    let turn = |which: usize| {
        stock_up(&client, (span_ms * STOCK_PER_MS) as usize)?;
        match which {
            0 => tally(span_ms, || pair(&client, 1)),
            1 => tally(span_ms, || pair(&client, BATCH)),
            _ => tally(span_ms, || floor_pair(&floor)),
        }
    };
    let round = |number: usize| {
        let mut round = [Tally::default(); 3];
        for which in (0..3).map(|step| (number + step) % 3) {
            round[which] = turn(which)?;
        }
        Ok::<Round, BenchError>(round)
    };
    let [one, batch, _] = round(0)?;
    let rounds = (0..rounds).map(round).collect::<Result<_, _>>()?;
    Ok((one.count + batch.count, rounds))
}

/// In a worker: claim and complete, so many at once.
pub(in super::super) fn pairs(url: &str, batch: usize, span_ms: u64) -> Result<Tally, BenchError> {
    let client = Client::open(url)?;
    worker::ready()?;
    tally(span_ms, || pair(&client, batch))
}

/// In a worker: the two commits of the floor.
pub(in super::super) fn floor_commits(
    floor: &Path,
    name: &str,
    span_ms: u64,
) -> Result<Tally, BenchError> {
    let floor = Floor::open_durable(floor, name)?;
    worker::ready()?;
    tally(span_ms, || floor_pair(&floor))
}

/// Claims up to so many and completes them; how many there were.
fn pair(client: &Client, batch: usize) -> Result<u64, BenchError> {
    let claimed = claim(client, batch)?;
    complete(client, &claimed)?;
    Ok(claimed.len() as u64)
}

/// The next tasks, as far as there are any.
pub(super) fn claim(client: &Client, count: usize) -> Result<Vec<Claimed>, BenchError> {
    let request = ClaimRequest { count, ..ClaimRequest::default() };
    match client.run(client.asynchronous().tasks().claim(&request))? {
        Claims::Claimed { tasks, .. } => Ok(tasks),
        Claims::None(_) => Ok(vec![]),
    }
}

/// Completes all of these in one change.
pub(super) fn complete(client: &Client, claimed: &[Claimed]) -> Result<(), BenchError> {
    let ask = |claimed: &Claimed| FinishAsk {
        task: claimed.task.id.clone(),
        proof: Proof::Grant(claimed.grant),
        token: Some(claimed.token),
        runner: None,
        finish: Finish::Complete { result: None },
    };
    let asks: Vec<FinishAsk> = claimed.iter().map(ask).collect();
    let finished = client.run(client.asynchronous().tasks().finish_all(&asks))?;
    match finished.iter().find(|finished| !matches!(finished, Finished::Done { .. })) {
        None => Ok(()),
        Some(other) => {
            Err(BenchError::Worker { said: format!("{other:?}"), expected: "a completed task" })
        }
    }
}
