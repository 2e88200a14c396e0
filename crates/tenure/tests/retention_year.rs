//! How large a store becomes in a year of many tasks a day, with the usual limits. Not part of the usual
//! tests: it takes minutes. `docs/performance.md` has its figures.
//!
//! ```console
//! $ RETENTION_DAYS=365 cargo test --release -p tenure --test retention_year -- --ignored --nocapture
//! ```
//!
//! Every task is added, claimed and completed by the rules that clients use, in batches, on a clock that
//! is moved by hand. What is removed is removed by the turns that follow these changes.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::Proof;
use tenure::core::rules::tasks::{FinishAsk, NewTask};
use tenure::store::{FileOptions, FileStore, SqliteOptions, SqliteStore, Store};
use tenure::world::ManualClock;
use tenure::{ClaimRequest, Claims, Client, Finish};

const TASKS_PER_DAY: usize = 10_000;
const BATCH: usize = 500;

#[expect(clippy::disallowed_methods, reason = "a setting of this measurement, not of tenure")]
fn days() -> usize {
    std::env::var("RETENTION_DAYS").ok().and_then(|days| days.parse().ok()).unwrap_or(30)
}

fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: &Path| {
        if path.is_dir() { bytes(path) } else { path.metadata().map_or(0, |m| m.len()) }
    };
    entries.map(|entry| size(&entry.path())).sum()
}

async fn do_batch(client: &Client, first: usize) {
    let task = |number: usize| NewTask {
        payload: Some(format!("{{\"prompt\":\"{}\"}}", "p".repeat(200))),
        ..NewTask::new(
            format!("task-{number:08}").parse().unwrap(),
            format!("Task number {number}"),
        )
    };
    let tasks = client.tasks();
    tasks.add((first..first + BATCH).map(task).collect()).await.unwrap();
    let request = ClaimRequest { count: BATCH, ..ClaimRequest::default() };
    let Claims::Claimed { tasks: claimed, .. } = tasks.claim(&request).await.unwrap() else {
        panic!("there are tasks to claim");
    };
    assert_eq!(claimed.len(), BATCH);
    let finish = |claimed: &tenure::core::rules::tasks::Claimed| FinishAsk {
        task: claimed.task.id.clone(),
        proof: Proof::Grant(claimed.grant),
        token: Some(claimed.token),
        runner: None,
        finish: Finish::Complete { result: Some(format!("{{\"text\":\"{}\"}}", "r".repeat(200))) },
    };
    tasks.finish_all(&claimed.iter().map(finish).collect::<Vec<_>>()).await.unwrap();
}

async fn run(name: &str, store: Arc<dyn Store>, clock: &ManualClock, folder: &Path) {
    // One shot: turns are taken at once, so that the run does not outpace them.
    let client = Client::builder().one_shot().label("year").with_store(store).unwrap();
    let begun = Instant::now();
    for day in 1..=days() {
        for batch in 0..TASKS_PER_DAY / BATCH {
            do_batch(&client, (day - 1) * TASKS_PER_DAY + batch * BATCH).await;
            clock.advance(Duration::from_secs(24 * 3600) / (TASKS_PER_DAY / BATCH) as u32);
        }
        if day <= 3 || day % 5 == 0 || day == days() {
            let kept: u64 =
                client.tasks().tallies().await.unwrap().iter().map(|one| one.count).sum();
            println!(
                "{name} day {day}: {} tasks done, {kept} kept, {:.1} MB, {:.0?}",
                day * TASKS_PER_DAY,
                bytes(folder) as f64 / 1e6,
                begun.elapsed()
            );
        }
    }
    let size = bytes(folder);
    assert!(size < 1_000_000_000, "{name}: {size} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; run by hand for the figures"]
async fn a_year_of_tasks_stays_below_a_gigabyte() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new());
    let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&folder.path().join("store.db"), options).unwrap();
    run("sqlite", Arc::new(store), &clock, folder.path()).await;
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new());
    let options = FileOptions { clock: clock.clone(), ..FileOptions::default() };
    let store = FileStore::open_with(folder.path(), options).unwrap();
    run("file", Arc::new(store), &clock, folder.path()).await;
}
