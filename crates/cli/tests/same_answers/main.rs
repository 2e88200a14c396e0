//! The same random programs get the same answers from every store, up to the numbers that a store gives
//! out, and times and order where the contract leaves them open.
//!
//! `TENURE_TEST_SEEDS` says how many programs there are; a failure names its seed and its steps.

#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]

mod apply;
mod equal;
mod program;

use apply::Subject;
use axum::{Extension, Router};
use equal::{May, comparable, difference};
use program::{Program, Step};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tenure::Client;
use tenure::core::{Revision, Scope, TURN_TIMEOUT};
use tenure::store::{
    Answer, EventsAfter, FileOptions, FileStore, MemoryStore, Query, SqliteOptions, SqliteStore,
    Store, TaskFilter,
};
use tenure::world::ManualClock;
use tenure_server::api::store;
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tokio::net::TcpListener;

/// Steps of one program: enough for tasks to be claimed, lost, recovered and done.
const STEPS: usize = 120;

/// How many programs there are, unless the environment says otherwise.
fn seeds(usual: u64) -> std::ops::RangeInclusive<u64> {
    let asked = std::env::var("TENURE_TEST_SEEDS").ok();
    1..=asked.map_or(usual, |text| text.parse().expect("TENURE_TEST_SEEDS is a number"))
}

fn over(store: impl Store + 'static) -> Client {
    Client::builder().label("program").with_store(Arc::new(store)).unwrap()
}

fn memory() -> Subject {
    let clock = Arc::new(ManualClock::new());
    Subject::new("memory", over(MemoryStore::with_clock(clock.clone())), Some(clock))
}

fn sqlite(folder: &std::path::Path) -> Subject {
    let clock = Arc::new(ManualClock::new());
    let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&folder.join("tenure.db"), options).unwrap();
    Subject::new("sqlite", over(store), Some(clock))
}

fn files(folder: &std::path::Path) -> Subject {
    let clock = Arc::new(ManualClock::new());
    let options = FileOptions { clock: clock.clone(), ..FileOptions::default() };
    let store = FileStore::open_with(&folder.join("files"), options).unwrap();
    Subject::new("file", over(store), Some(clock))
}

/// A server over a memory store, and a client of it.
async fn server() -> Subject {
    let clock = Arc::new(ManualClock::new());
    let local = over(MemoryStore::with_clock(clock.clone()));
    let caller = Caller { name: None, role: Role::Admin, labels: Default::default() };
    let routes = store::routes(App::new(local)).into_router();
    let router: Router = routes.layer(Extension(caller));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = Client::builder().label("program").open(&url).await.unwrap();
    Subject::new("server", client, Some(clock))
}

/// All that a store shows in the end, beside its tasks and events.
async fn last_looks(subject: &Subject) -> Vec<Value> {
    let backend = subject.client().backend();
    let looks = [
        Query::Snapshot(Scope::Everything),
        Query::Tasks(TaskFilter::default()),
        Query::TaskCounts,
        Query::Events(EventsAfter { after: Revision(0), limit: 100_000 }),
    ];
    let mut seen = Vec::new();
    for look in looks {
        seen.push(json!(backend.query(look).await.expect("stores answer")));
    }
    seen
}

/// A waiter that was woken and does not come is passed over after a second, which ends in the middle of a
/// step for one store and after it for another. Waits until that second is over for all of them.
async fn keep_away_from_turn_timeouts(subject: &Subject) {
    let is_close = |woken_for: &Duration| {
        (TURN_TIMEOUT / 3..TURN_TIMEOUT + TURN_TIMEOUT / 3).contains(woken_for)
    };
    loop {
        let everything = Query::Snapshot(Scope::Everything);
        let answer = subject.client().backend().query(everything).await.expect("stores answer");
        let Answer::Snapshot(seen) = answer else { panic!("{answer:?}") };
        let close = seen.waiters.iter().filter_map(|seen| seen.woken_for).find(is_close);
        let Some(woken_for) = close else { return };
        tokio::time::sleep(TURN_TIMEOUT + TURN_TIMEOUT / 2 - woken_for).await;
    }
}

/// Runs the program of a seed on all of these, step by step, and compares each with the first. Tells the
/// first difference.
async fn compare(seed: u64, mut subjects: Vec<Subject>, may: May) -> Result<(), String> {
    let mut program = Program::new(seed, may == May::DifferInNumbers);
    let mut done: Vec<Step> = Vec::new();
    for number in 0..STEPS {
        if may == May::DifferInTimesAndOrder {
            keep_away_from_turn_timeouts(&subjects[0]).await;
        }
        let (step, twice) = program.next();
        done.push(step.clone());
        let mut expected: Option<Vec<Value>> = None;
        for subject in &mut subjects {
            let answers = subject.apply(&step, twice).await;
            let answers: Vec<Value> = answers.iter().map(|one| comparable(one, may)).collect();
            if let [first, again] = answers.as_slice() {
                let name = subject.name;
                assert_eq!(first, again, "seed {seed}, {name}, step {number} sent twice: {step:?}");
            }
            let expected = expected.get_or_insert_with(|| answers.clone());
            same(seed, subject.name, &done, expected, &answers)?;
        }
    }
    let mut expected: Option<Vec<Value>> = None;
    for subject in &subjects {
        let seen = last_looks(subject).await;
        let seen: Vec<Value> = seen.iter().map(|one| comparable(one, may)).collect();
        let expected = expected.get_or_insert_with(|| seen.clone());
        same(seed, subject.name, &done, expected, &seen)?;
    }
    Ok(())
}

fn same(
    seed: u64,
    name: &str,
    done: &[Step],
    expected: &[Value],
    got: &[Value],
) -> Result<(), String> {
    if expected == got {
        return Ok(());
    }
    let before: Vec<String> = done.iter().map(|step| format!("{step:?}")).collect();
    let before = before[before.len().saturating_sub(25)..].join("\n");
    let difference = difference("", &json!(expected), &json!(got)).unwrap_or_default();
    let (expected, got) = (json!(expected), json!(got));
    Err(format!(
        "seed {seed}: {name} answers otherwise than memory after\n{before}\n{difference}\n\
         memory: {expected}\n{name}: {got}"
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_stores_and_a_server_answer_alike() {
    for seed in seeds(60) {
        let folder = tempfile::tempdir().unwrap();
        let subjects = vec![memory(), sqlite(folder.path()), files(folder.path()), server().await];
        compare(seed, subjects, May::DifferInNumbers).await.unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Time passes by itself here, and not at the same moment in each store. No lease of a program ends while
/// it runs; what differs by time nevertheless does not differ twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_elsewhere_answer_as_memory_does() {
    for seed in seeds(12) {
        let mut differed = 0;
        while let Err(why) = compare(seed, engines().await, May::DifferInTimesAndOrder).await {
            differed += 1;
            eprintln!("{why}");
            assert!(differed < 2, "{why}");
        }
    }
}

/// Stores that keep time by themselves.
async fn engines() -> Vec<Subject> {
    let mut subjects = vec![Subject::new("memory", over(MemoryStore::new()), None)];
    for (name, url) in [
        ("postgres", tenure_testkit::postgres::fresh_url()),
        ("etcd", tenure_testkit::etcd::fresh_url()),
    ] {
        let client = Client::builder().label("program").open(&url).await.unwrap();
        subjects.push(Subject::new(name, client, None));
    }
    subjects
}

/// A step whose answer differs is found: the comparison is not blind.
#[tokio::test]
#[should_panic(expected = "answers otherwise than memory")]
async fn a_store_that_answers_otherwise_is_noticed() {
    let ahead = memory();
    ahead.client().acquire("a").await.unwrap().release().await.unwrap();
    ahead.client().request("a").ttl(Duration::from_secs(60)).detached().lease().await.unwrap();
    for seed in seeds(20) {
        let other = Subject::new("another", ahead.client().clone(), None);
        let compared = compare(seed, vec![memory(), other], May::DifferInNumbers).await;
        compared.unwrap_or_else(|why| panic!("{why}"));
    }
}
