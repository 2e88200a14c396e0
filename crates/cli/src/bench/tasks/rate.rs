//! Claim and complete, one by one and in batches, beside two bare commits that are synced as well.

use super::super::crew::Crew;
use super::super::floor::Floor;
use super::super::pair::{Tally, floor_pair, tally, total};
use super::super::report::{Beside, Figure, Report, Unit, Wanted};
use super::super::sample::median;
use super::super::worker::{self, Work};
use super::super::{BenchError, Ground};
use super::BATCH;
use super::stock::{counts, stock_up, sync_all};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tenure::blocking::Client;
use tenure::core::Proof;
use tenure::core::rules::tasks::{Claimed, Finish, FinishAsk, Finished};
use tenure::{ClaimRequest, Claims};

const PROCESSES: usize = 8;

/// Rounds that are not counted: the disk settles after the tasks were added.
const WARM_UP: usize = 2;

/// One by one it is at least a third of the bare commits.
const WANTED_OF_FLOOR: f64 = 0.334;

/// In batches it is at least so many times as fast as one by one.
const WANTED_BY_BATCH: f64 = 10.0;

/// So many tasks are ready for each millisecond: more than anybody claims.
const STOCK_PER_MS: u64 = 10;
const STOCK_BY_BATCH_PER_MS: u64 = 40;

/// One by one, and on the floor.
type Round = (Tally, Tally);

/// What so many processes did.
#[derive(Default, Serialize, Deserialize)]
pub(in super::super) struct Rates {
    /// One by one beside the floor.
    rounds: Vec<Round>,
    by_batch: Vec<Tally>,
    /// How many tasks were completed in all, counted or not.
    done: u64,
}

pub(super) fn measure(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    let floor = ground.file("tasks-floor.db");
    Floor::create_worn_in(&floor)?;
    let url = ground.given_store().map_or_else(|| ground.store("tasks"), str::to_owned);
    let client = Client::open(&url)?;
    let before = counts(&client)?.completed;
    let span_ms = ground.scale(60, 300);

    let rounds = ground.scale(2, 10);
    let work = Work::TaskDuel { url: url.clone(), floor: floor.clone(), rounds, span_ms };
    let alone: Rates = Crew::run([work])?.remove(0);
    add(report, "1 process", &alone, Some(Wanted::RatioAtLeast(WANTED_OF_FLOOR)));

    let together = together(&client, &url, &floor, ground.scale(1, 4), span_ms)?;
    add(report, &format!("{PROCESSES} processes"), &together, None);
    count(report, &client, before, alone.done + together.done)
}

/// Several processes, all one by one, then all on the floor, and again; then in batches.
fn together(
    client: &Client,
    url: &str,
    floor: &Path,
    rounds: usize,
    span_ms: u64,
) -> Result<Rates, BenchError> {
    let mut rates = Rates::default();
    let mut pairs = |batch: usize| {
        let work = |_| Work::TaskPairs { url: url.to_owned(), batch, span_ms };
        let tallies: Vec<Tally> = Crew::run((0..PROCESSES).map(work))?;
        rates.done += tallies.iter().map(|tally| tally.count).sum::<u64>();
        Ok::<Tally, BenchError>(total(&tallies))
    };
    stock_up_and_settle(client, rounds as u64 * span_ms * STOCK_PER_MS)?;
    for _ in 0..rounds {
        let one = pairs(1)?;
        let bare: Vec<Tally> = Crew::run((0..PROCESSES).map(|process| Work::FloorCommits {
            floor: floor.to_owned(),
            name: format!("row-{process}"),
            span_ms,
        }))?;
        rates.rounds.push((one, total(&bare)));
    }
    stock_up_and_settle(client, rounds as u64 * span_ms * STOCK_BY_BATCH_PER_MS)?;
    for _ in 0..rounds {
        rates.by_batch.push(pairs(BATCH)?);
    }
    Ok(rates)
}

/// What was just written keeps a disk busy, and whoever syncs next would pay for it.
fn stock_up_and_settle(client: &Client, pending: u64) -> Result<(), BenchError> {
    stock_up(client, pending as usize)?;
    sync_all();
    Ok(())
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

fn add(report: &mut Report, who: &str, rates: &Rates, wanted: Option<Wanted>) {
    let all =
        |tallies: &mut dyn Iterator<Item = Tally>| tallies.map(Tally::rate).collect::<Vec<_>>();
    let one = all(&mut rates.rounds.iter().map(|(one, _)| *one));
    let floor = all(&mut rates.rounds.iter().map(|(_, floor)| *floor));
    let by_batch = median(&all(&mut rates.by_batch.iter().copied()));
    // Of each round by itself: what slowed one of the two slowed the other as well.
    let ratios: Vec<f64> = one.iter().zip(&floor).map(|(one, floor)| one / floor).collect();
    let figure = |how: &str, value, beside, wanted| Figure {
        measurement: "tasks",
        case: format!("{who}, {how}"),
        statistic: "claim+complete",
        value,
        unit: Unit::PerSecond,
        beside: Some(beside),
        wanted,
    };
    let floor = Beside { what: "two bare commits", value: median(&floor), ratio: median(&ratios) };
    report.add(figure("one by one", median(&one), floor, wanted));
    let singly = Beside::new("one by one", by_batch, median(&one));
    let wanted = wanted.map(|_| Wanted::RatioAtLeast(WANTED_BY_BATCH));
    report.add(figure(&format!("by {BATCH}"), by_batch, singly, wanted));
}

/// In a worker: one by one and the floor in turns, each first in every other round, with nothing
/// else written meanwhile; then in batches.
pub(in super::super) fn duel(
    url: &str,
    floor: &Path,
    rounds: usize,
    span_ms: u64,
) -> Result<Rates, BenchError> {
    let client = Client::open(url)?;
    let floor = Floor::open_durable(floor, "row")?;
    worker::ready()?;
    let mut rates = Rates::default();
    stock_up_and_settle(&client, (WARM_UP + rounds) as u64 * span_ms * STOCK_PER_MS)?;
    for number in 0..WARM_UP + rounds {
        let bare = || tally(span_ms, || floor_pair(&floor));
        let first = if number % 2 == 0 { Some(bare()?) } else { None };
        let one = tally(span_ms, || pair(&client, 1))?;
        let floor = first.map_or_else(bare, Ok)?;
        rates.done += one.count;
        if number >= WARM_UP {
            rates.rounds.push((one, floor));
        }
    }
    stock_up_and_settle(&client, (WARM_UP + rounds) as u64 * span_ms * STOCK_BY_BATCH_PER_MS)?;
    for number in 0..WARM_UP + rounds {
        let batch = tally(span_ms, || pair(&client, BATCH))?;
        rates.done += batch.count;
        if number >= WARM_UP {
            rates.by_batch.push(batch);
        }
    }
    Ok(rates)
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
