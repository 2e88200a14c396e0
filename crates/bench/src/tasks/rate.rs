//! Measures claim and complete, one by one and in batches, next to two bare synced commits.

use super::BATCH;
use super::task_supply::{counts, stock_up, sync_all};
use crate::pair::{Tally, baseline_pair, tally, total};
use crate::processes::Processes;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::median;
use crate::sqlite_baseline::SqliteBaseline;
use crate::worker::{self, Work};
use crate::{BenchError, BenchSetup};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tenure::blocking::Client;
use tenure::core::Proof;
use tenure::core::rules::tasks::{Claimed, Finish, FinishAsk, Finished};
use tenure::{ClaimRequest, Claims};

const PROCESSES: usize = 8;

/// Rounds that are not counted: the disk settles after the tasks were added.
const WARM_UP: usize = 2;

/// The target: one by one, compared with the bare commits.
const WANTED_OF_BASELINE: f64 = 0.334;

/// The target: in batches, compared with one by one.
const WANTED_BY_BATCH: f64 = 10.0;

/// How many tasks are ready for each millisecond, more than are claimed.
const STOCK_PER_MS: u64 = 10;
const STOCK_BY_BATCH_PER_MS: u64 = 40;

/// One by one, and the baseline.
type Round = (Tally, Tally);

/// The results of this many processes.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Rates {
    /// One by one, next to the baseline.
    rounds: Vec<Round>,
    by_batch: Vec<Tally>,
    /// How many tasks were completed in all, measured or not.
    done: u64,
}

pub(super) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let baseline = setup.file("tasks-baseline.db");
    SqliteBaseline::create_worn_in(&baseline)?;
    let url = setup.given_store().map_or_else(|| setup.store("tasks"), str::to_owned);
    let client = Client::open(&url)?;
    let before = counts(&client)?.completed;
    let span_ms = setup.scale(60, 300);

    let rounds = setup.scale(2, 10);
    let work = Work::TaskDuel { url: url.clone(), baseline: baseline.clone(), rounds, span_ms };
    let alone: Rates = Processes::run([work])?.remove(0);
    add(report, "1 process", &alone, Some(Wanted::RatioAtLeast(WANTED_OF_BASELINE)));

    let together = together(&client, &url, &baseline, setup.scale(1, 4), span_ms)?;
    add(report, &format!("{PROCESSES} processes"), &together, None);
    count(report, &client, before, alone.done + together.done)
}

/// Several processes, all one by one, then all on the baseline, in turns; then in batches.
fn together(
    client: &Client,
    url: &str,
    baseline: &Path,
    rounds: usize,
    span_ms: u64,
) -> Result<Rates, BenchError> {
    let mut rates = Rates::default();
    let mut pairs = |batch: usize| {
        let work = |_| Work::TaskPairs { url: url.to_owned(), batch, span_ms };
        let tallies: Vec<Tally> = Processes::run((0..PROCESSES).map(work))?;
        rates.done += tallies.iter().map(|tally| tally.count).sum::<u64>();
        Ok::<Tally, BenchError>(total(&tallies))
    };
    stock_up_and_settle(client, rounds as u64 * span_ms * STOCK_PER_MS)?;
    for _ in 0..rounds {
        let one = pairs(1)?;
        let bare: Vec<Tally> =
            Processes::run((0..PROCESSES).map(|process| Work::BaselineCommits {
                baseline: baseline.to_owned(),
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

/// Adds tasks and waits until they are on disk: otherwise the next sync would pay for them.
fn stock_up_and_settle(client: &Client, pending: u64) -> Result<(), BenchError> {
    stock_up(client, pending as usize)?;
    sync_all();
    Ok(())
}

/// Checks that the store has as many completed tasks as the workers reported.
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
    let baseline = all(&mut rates.rounds.iter().map(|(_, baseline)| *baseline));
    let by_batch = median(&all(&mut rates.by_batch.iter().copied()));
    // The ratio of each round: what slows one of the two slows the other as well.
    let ratios: Vec<f64> =
        one.iter().zip(&baseline).map(|(one, baseline)| one / baseline).collect();
    let figure = |how: &str, value, beside, wanted| Figure {
        measurement: "tasks",
        case: format!("{who}, {how}"),
        statistic: "claim+complete",
        value,
        unit: Unit::PerSecond,
        beside: Some(beside),
        wanted,
    };
    let baseline =
        Beside { what: "two bare commits", value: median(&baseline), ratio: median(&ratios) };
    report.add(figure("one by one", median(&one), baseline, wanted));
    let singly = Beside::new("one by one", by_batch, median(&one));
    let wanted = wanted.map(|_| Wanted::RatioAtLeast(WANTED_BY_BATCH));
    report.add(figure(&format!("by {BATCH}"), by_batch, singly, wanted));
}

/// In a worker: one by one and the baseline in turns, each first in every other round, without
/// other writes; then in batches.
pub(crate) fn duel(
    url: &str,
    baseline: &Path,
    rounds: usize,
    span_ms: u64,
) -> Result<Rates, BenchError> {
    let client = Client::open(url)?;
    let baseline = SqliteBaseline::open_durable(baseline, "row")?;
    worker::ready()?;
    let mut rates = Rates::default();
    stock_up_and_settle(&client, (WARM_UP + rounds) as u64 * span_ms * STOCK_PER_MS)?;
    for number in 0..WARM_UP + rounds {
        let bare = || tally(span_ms, || baseline_pair(&baseline));
        let first = if number % 2 == 0 { Some(bare()?) } else { None };
        let one = tally(span_ms, || pair(&client, 1))?;
        let baseline = first.map_or_else(bare, Ok)?;
        rates.done += one.count;
        if number >= WARM_UP {
            rates.rounds.push((one, baseline));
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

/// In a worker: claim and complete, this many at once.
pub(crate) fn pairs(url: &str, batch: usize, span_ms: u64) -> Result<Tally, BenchError> {
    let client = Client::open(url)?;
    worker::ready()?;
    tally(span_ms, || pair(&client, batch))
}

/// In a worker: the two commits of the baseline.
pub(crate) fn baseline_commits(
    baseline: &Path,
    name: &str,
    span_ms: u64,
) -> Result<Tally, BenchError> {
    let baseline = SqliteBaseline::open_durable(baseline, name)?;
    worker::ready()?;
    tally(span_ms, || baseline_pair(&baseline))
}

/// Claims up to `batch` tasks and completes them; returns how many.
fn pair(client: &Client, batch: usize) -> Result<u64, BenchError> {
    let claimed = claim(client, batch)?;
    complete(client, &claimed)?;
    Ok(claimed.len() as u64)
}

/// Claims the next tasks, up to `count`.
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
