//! What is beyond the limits leaves the journal and the archive, and the files become smaller.

use crate::{StoreLocation, begin_next_generation, files, is_in_order};
use std::sync::Arc;
use std::time::Duration;
use tenure::Client;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{Keep, Retention, Revision, Status, TaskId};
use tenure::store::{StoreExt, Trim};

fn id(number: u64) -> TaskId {
    format!("t{number}").parse().unwrap()
}

/// A completed task of many bytes, with a key.
fn done(number: u64) -> NewTask {
    NewTask {
        status: Status::Completed,
        payload: Some(format!("\"{}\"", "x".repeat(10_000))),
        key: Some(format!("key of {number}")),
        ..NewTask::new(id(number), format!("task {number}"))
    }
}

fn client(place: &StoreLocation, newest: u64) -> Client {
    let retention = Retention { tasks: Keep::newest(newest), ..Retention::ALL };
    Client::builder().retention(retention).with_store(Arc::new(place.open())).unwrap()
}

fn archive_bytes(place: &StoreLocation) -> u64 {
    files(&place.path("done")).iter().map(|path| path.metadata().unwrap().len()).sum()
}

/// Adds tasks until a generation has ended, so that all but a few are archived; says how many.
async fn fill(place: &StoreLocation, client: &Client, from: u64) -> u64 {
    let before = place.newest();
    let mut number = from;
    while place.newest() < before + 2 {
        place.clock.advance(Duration::from_secs(1));
        client.tasks().add(vec![done(number)]).await.unwrap();
        number += 1;
    }
    number
}

#[tokio::test]
async fn archived_tasks_go_oldest_first_and_their_files_shrink() {
    let place = StoreLocation::new();
    let unlimited = client(&place, u64::MAX);
    let added = fill(&place, &unlimited, 0).await;
    let before = archive_bytes(&place);
    assert!(before > 100_000, "{before}");
    let strict = client(&place, 5);
    let would = strict.collect(true).await.unwrap();
    assert_eq!((would.tasks, archive_bytes(&place)), (added - 5, before));
    assert_eq!(strict.collect(false).await.unwrap(), would);
    // What was deleted leaves the files when the generation has ended and they are compacted.
    begin_next_generation(&place, &place.open()).await;
    strict.collect(false).await.unwrap();
    let after = archive_bytes(&place);
    assert!(after * 4 < before, "{before} bytes became {after}");
    for client in [strict, place.client()] {
        let tasks = client.tasks();
        for number in 0..added {
            let found = tasks.get(&id(number)).await.unwrap();
            assert_eq!(found.is_some(), number >= added - 5, "task {number} of {added}");
        }
        let count: u64 = tasks.tallies().await.unwrap().iter().map(|tally| tally.count).sum();
        assert_eq!(count, 5);
    }
    // A key that is kept is still known, and one that went with its task is free.
    let again = place.client().tasks().add(vec![done(added - 1)]).await.unwrap();
    assert!(matches!(again[0], tenure::core::rules::tasks::Added::Existing(_)), "{again:?}");
    let again = place.client().tasks().add(vec![done(0)]).await.unwrap();
    assert!(!matches!(again[0], tenure::core::rules::tasks::Added::Existing(_)), "{again:?}");
    is_in_order(&place.open()).await;
}

#[tokio::test]
async fn old_generations_go_by_number_and_by_age() {
    let place = StoreLocation::new();
    let store = place.open();
    for _ in 0..4 {
        begin_next_generation(&place, &store).await;
        place.clock.advance(Duration::from_secs(3600));
    }
    let all = store.events(Revision(0), u32::MAX).await.unwrap();
    let generations = || files(&place.path("journal")).len();
    let before = generations();
    let trim = |keep: Keep| Trim { keep, limit: u32::MAX, dry_run: false };
    assert_eq!(store.trim(trim(Keep::newest(all.len() as u64))).await.unwrap(), 0);
    let by_age = Keep { newest: None, age: Some(Duration::from_secs(3600 * 3 + 60)) };
    let removed = store.trim(trim(by_age)).await.unwrap();
    assert_eq!(generations(), before - 1, "the oldest generation is older than that");
    let rest = store.events(Revision(0), u32::MAX).await.unwrap();
    assert_eq!(rest[..], all[removed as usize..]);
    store.trim(trim(Keep::newest(1))).await.unwrap();
    let rest = place.open().events(Revision(0), u32::MAX).await.unwrap();
    assert_eq!(rest.last(), all.last(), "the newest event stays");
    assert!(generations() < before - 1);
    is_in_order(&place.open()).await;
}
