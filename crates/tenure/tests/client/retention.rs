//! Clients that write keep a store within its limits, without being asked.

use crate::{PATIENCE, Stores};
use std::sync::Arc;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{EventKind, Keep, Retention, Revision};
use tenure::store::{StoreExt, TaskFilter, Trim};
use tenure::{Client, Status};

const KEPT: u64 = 20;

fn limits() -> Retention {
    Retention { events: Keep::newest(100), tasks: Keep::newest(KEPT), failed: Keep::ALL }
}

async fn add_completed(client: &Client, from: usize, count: usize) {
    let task = |number: usize| NewTask {
        status: Status::Completed,
        ..NewTask::new(format!("t{number:05}").parse().unwrap(), "a task")
    };
    client.tasks().add((from..from + count).map(task).collect()).await.unwrap();
}

async fn completed(client: &Client) -> u64 {
    client.tasks().tallies().await.unwrap().iter().map(|tally| tally.count).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_lives_long_removes_what_is_too_much_beside_its_work() {
    for stores in [Stores::memory(), Stores::sqlite()] {
        let client = Client::builder().retention(limits()).with_store(stores.handle()).unwrap();
        // A change of so many events is always followed by a turn.
        add_completed(&client, 0, 300).await;
        let begun = std::time::Instant::now();
        while completed(&client).await > KEPT {
            assert!(begun.elapsed() < PATIENCE, "{} are left", completed(&client).await);
            tokio::task::yield_now().await;
        }
        let kept = client.tasks().list(&TaskFilter::default()).await.unwrap();
        let names: Vec<&str> = kept.iter().map(|task| task.id.as_str()).collect();
        let newest: Vec<String> = (280..300).map(|number| format!("t{number:05}")).collect();
        assert_eq!(names, newest);
    }
}

/// A follower is told that events are missing if it fell behind, and only then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_fell_behind_is_told() {
    for stores in [Stores::memory(), Stores::sqlite()] {
        let client = stores.client("writer");
        add_completed(&client, 0, 5).await;
        let heard = client.events(Revision::default(), 1).await.unwrap()[0].revision;
        assert!(!client.may_lack_events_after(heard).await.unwrap());
        add_completed(&client, 5, 30).await;
        assert!(!client.may_lack_events_after(heard).await.unwrap(), "all are there");
        let trim = Trim { keep: Keep::newest(10), limit: u32::MAX, dry_run: false };
        stores.handle().trim(trim).await.unwrap();
        assert!(client.may_lack_events_after(heard).await.unwrap());
        let kept = client.events(Revision::default(), 1).await.unwrap()[0].revision;
        assert!(!client.may_lack_events_after(kept).await.unwrap());
        assert!(!client.may_lack_events_after(Revision::default()).await.unwrap(), "it is new");
    }
}

/// What is done before it goes on bounds what one command costs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_shot_clients_do_a_bounded_part_each() {
    let stores = Stores::sqlite();
    let builder = || Client::builder().retention(limits()).one_shot();
    let unlimited = stores.client("filler");
    for from in (0..2_000).step_by(200) {
        add_completed(&unlimited, from, 200).await;
    }
    let before = completed(&unlimited).await;
    assert_eq!(before, 2_000);
    let client = builder().with_store(stores.handle()).unwrap();
    add_completed(&client, 2_000, 600).await;
    let after = completed(&unlimited).await;
    assert!(after < before + 600 && after >= before + 600 - 1_100, "a turn is bounded: {after}");
    // Claims never wait for it, and the changes of many short commands catch up.
    let mut number = 10_000;
    while completed(&unlimited).await > KEPT + 600 {
        let client = builder().with_store(stores.handle()).unwrap();
        add_completed(&client, number, 512).await;
        number += 512;
    }
    let told = unlimited.events(Revision(0), u32::MAX).await.unwrap();
    let deleted = told.iter().filter(|event| event.event.kind == EventKind::Deleted);
    assert!(deleted.clone().count() > 0);
    assert!(deleted.into_iter().all(|event| event.event.label == "retention"));
}

#[tokio::test]
async fn what_is_asked_for_is_done_at_once_and_a_dry_run_does_nothing() {
    let stores = Stores::memory();
    let filler = Client::builder().retention(Retention::ALL);
    let filler = filler.with_store(stores.handle()).unwrap();
    add_completed(&filler, 0, 100).await;
    let strict =
        Arc::new(Client::builder().retention(limits()).with_store(stores.handle()).unwrap());
    let would = strict.collect(true).await.unwrap();
    assert_eq!((would.tasks, completed(&filler).await), (100 - KEPT, 100));
    assert_eq!(strict.collect(false).await.unwrap().tasks, 100 - KEPT);
    assert_eq!(completed(&filler).await, KEPT);
    assert_eq!(strict.collect(false).await.unwrap().tasks, 0);
    assert_eq!(filler.collect(false).await.unwrap(), tenure::Collected::default());
    let kept = filler.events(Revision(0), u32::MAX).await.unwrap().len();
    assert!(kept <= 100, "{kept} events");
}
