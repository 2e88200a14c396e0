//! Measures the duration of a claim in small and very large stores, where most tasks are completed.

use super::task_supply::{self, fill, sync_all};
use crate::processes::Processes;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::{now, quantile};
use crate::worker::{self, Work};
use crate::{BenchError, BenchSetup};
use std::time::Instant;
use tenure::blocking::Client;
use tenure::core::Retention;

/// The target: a claim in the largest store compared with one in the smallest.
const WANTED_RATIO: f64 = 1.3;

/// Claims that are not counted: the first ones read pages from disk.
pub(crate) const WARM_UP: usize = 20;

pub(super) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let sizes: [usize; 3] = setup.scale([200, 400, 800], [1_000, 100_000, 1_000_000]);
    let claims = setup.scale(40, 360);
    let pending = WARM_UP + claims;
    let prepare = |url: &str, size: usize| -> Result<(usize, f64), BenchError> {
        let client = keeping_all(url)?;
        let begun = Instant::now();
        let added = fill(&client, size, pending)?;
        Ok((added, begun.elapsed().as_secs_f64()))
    };
    let found: Vec<Vec<f64>>;
    let mut last = (0, 0.0);
    match setup.given_store() {
        // The named store grows from size to size.
        Some(url) => {
            let mut all = Vec::new();
            for size in sizes {
                last = prepare(url, size)?;
                let work = Work::ClaimLatency { urls: vec![url.to_owned()], claims };
                all.append(&mut Processes::run([work])?.remove(0));
            }
            found = all;
        }
        // One store of each size, in turns, so that noise affects all.
        None => {
            let urls = sizes.map(|size| setup.store(&format!("tasks-{size}")));
            for (url, size) in urls.iter().zip(sizes) {
                last = prepare(url, size)?;
            }
            let work = Work::ClaimLatency { urls: urls.to_vec(), claims };
            found = Processes::run([work])?.remove(0);
        }
    }
    let fewest = quantile(&found[0], 0.5);
    for (size, latencies) in sizes.iter().zip(&found) {
        let figure = |statistic, share: f64| Figure {
            measurement: "tasks",
            case: format!("claim among {size} tasks"),
            statistic,
            value: quantile(latencies, share),
            unit: Unit::Seconds,
            beside: None,
            wanted: None,
        };
        let mut p50 = figure("p50", 0.5);
        if *size != sizes[0] {
            p50.beside = Some(Beside::new("among the fewest", p50.value, fewest));
            p50.wanted = Some(Wanted::RatioAtMost(WANTED_RATIO));
        }
        report.add(p50);
        report.add(figure("p99", 0.99));
    }
    report.add(Figure {
        measurement: "tasks",
        case: format!("up to {} tasks", sizes[2]),
        statistic: "added",
        value: last.0 as f64 / last.1,
        unit: Unit::PerSecond,
        beside: None,
        wanted: None,
    });
    Ok(())
}

/// A client that removes no history: this measures claims in a store that has very much of it.
fn keeping_all(url: &str) -> Result<Client, tenure::Error> {
    Client::open_with(tenure::Client::builder().retention(Retention::ALL), url)
}

/// In a worker: the duration of each claim in seconds, for each store. Each task is completed
/// before the next claim; that time is not counted.
pub(crate) fn latencies(urls: &[String], claims: usize) -> Result<Vec<Vec<f64>>, BenchError> {
    let clients = urls.iter().map(|url| keeping_all(url));
    let clients: Vec<Client> = clients.collect::<Result<_, _>>()?;
    // The added tasks must be on disk before the measurement starts.
    sync_all();
    worker::ready()?;
    for client in &clients {
        (0..WARM_UP).try_for_each(|_| claim_timed(client).map(|_| ()))?;
    }
    let mut found = vec![Vec::new(); clients.len()];
    for _ in 0..claims {
        for (client, found) in clients.iter().zip(&mut found) {
            found.push(claim_timed(client)?);
        }
    }
    for client in &clients {
        let left = task_supply::counts(client)?.in_progress;
        if left > 0 {
            return Err(BenchError::Miscounted { what: "in progress", store: left, workers: 0 });
        }
    }
    Ok(found)
}

fn claim_timed(client: &Client) -> Result<f64, BenchError> {
    let begun = now();
    let claimed = super::rate::claim(client, 1)?;
    let took = (now() - begun).as_secs_f64();
    if claimed.is_empty() {
        return Err(BenchError::Worker { said: "no task".to_owned(), expected: "a task" });
    }
    super::rate::complete(client, &claimed)?;
    Ok(took)
}
