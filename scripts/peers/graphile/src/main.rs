//! Adds jobs to graphile_worker and runs them all; prints jobs a second.
//!
//! Usage: peer-graphile URL JOBS CONCURRENCY

use graphile_worker::{IntoTaskHandlerResult, TaskHandler, WorkerContext, WorkerOptions};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

static DONE: AtomicU64 = AtomicU64::new(0);

#[derive(Serialize, Deserialize)]
struct Job {
    number: u64,
}

impl TaskHandler for Job {
    const IDENTIFIER: &'static str = "job";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        DONE.fetch_add(1, Ordering::Relaxed);
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, jobs, concurrency] = arguments.as_slice() else {
        return Err("usage: peer-graphile URL JOBS CONCURRENCY".into());
    };
    let jobs: u64 = jobs.parse()?;
    let worker = WorkerOptions::default()
        .concurrency(concurrency.parse()?)
        .schema("tenure_bench_graphile")
        .database_url(url)
        .define_job::<Job>()
        .init()
        .await?;
    let utils = worker.create_utils();
    for number in 0..jobs {
        utils.add_job(Job { number }, Default::default()).await?;
    }
    let begun = Instant::now();
    worker.run_once().await?;
    let seconds = begun.elapsed().as_secs_f64();
    let done = DONE.load(Ordering::Relaxed);
    if done != jobs {
        return Err(format!("{done} of {jobs} jobs were run").into());
    }
    println!("{:.0}", done as f64 / seconds);
    Ok(())
}
