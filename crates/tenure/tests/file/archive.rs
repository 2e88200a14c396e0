//! Completed tasks leave the journal with its generation, and are still there for all who ask.

use crate::{StoreLocation, is_in_order};
use tenure::Client;
use tenure::core::rules::tasks::{Added, NewTask};
use tenure::core::{Status, TaskId};
use tenure::store::{StoreError, StoreExt, TaskCounts, TaskFilter};

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

/// A completed task of many bytes, with a key.
fn done(name: &str) -> NewTask {
    NewTask {
        status: Status::Completed,
        section: Some("s".to_owned()),
        payload: Some(format!("\"{}\"", "x".repeat(20_000))),
        key: Some(format!("key of {name}")),
        ..NewTask::new(id(name), name)
    }
}

async fn add(client: &Client, task: NewTask) -> Added {
    client.tasks().add(vec![task]).await.unwrap().remove(0)
}

/// Adds completed tasks until a new generation has begun; says how many.
async fn fill(place: &StoreLocation, client: &Client, prefix: &str) -> u64 {
    let before = place.newest();
    let mut count = 0;
    while place.newest() == before {
        add(client, done(&format!("{prefix}{count}"))).await;
        count += 1;
    }
    count
}

async fn completed(client: &Client) -> u64 {
    let tallies = client.tasks().tallies().await.unwrap();
    let completed = tallies.iter().filter(|tally| tally.status == Status::Completed);
    completed.map(|tally| tally.count).sum()
}

#[tokio::test]
async fn archived_tasks_are_found_by_id_and_key_and_met_by_those_after_them() {
    let place = StoreLocation::new();
    let client = place.client();
    let count = fill(&place, &client, "a").await;
    assert!(place.path("done").is_dir());
    for client in [client, place.client()] {
        let tasks = client.tasks();
        assert_eq!(tasks.get(&id("a0")).await.unwrap().unwrap().status, Status::Completed);
        assert_eq!(
            add(&client, NewTask { id: id("other"), ..done("a1") }).await,
            Added::Existing(id("a1"))
        );
        assert!(tasks.add(vec![NewTask::new(id("a2"), "again")]).await.is_err(), "its id is taken");
        assert_eq!(tasks.list(&TaskFilter::default()).await.unwrap().len() as u64, count);
        assert_eq!(completed(&client).await, count);
    }
    let client = place.client();
    let after = NewTask { depends_on: vec![id("a0")], ..NewTask::new(id("after"), "after") };
    add(&client, after).await;
    assert_eq!(client.tasks().get(&id("after")).await.unwrap().unwrap().unmet, 0);
    is_in_order(&place.open()).await;
}

#[tokio::test]
async fn an_archived_task_can_be_deleted_and_added_again() {
    let place = StoreLocation::new();
    let client = place.client();
    let mut count = fill(&place, &client, "a").await;
    client.tasks().delete(&id("a0")).await.unwrap();
    for other in [&client, &place.client()] {
        assert_eq!(other.tasks().get(&id("a0")).await.unwrap(), None);
        assert_eq!(completed(other).await, count - 1);
    }
    count += fill(&place, &client, "b").await - 1;
    for other in [&client, &place.client()] {
        assert_eq!(other.tasks().get(&id("a0")).await.unwrap(), None);
        assert_eq!(completed(other).await, count);
    }
    assert_eq!(add(&place.client(), done("a0")).await, Added::New(id("a0")));
    count += 1 + fill(&place, &client, "c").await;
    for other in [&client, &place.client()] {
        assert!(other.tasks().get(&id("a0")).await.unwrap().is_some());
        assert_eq!(completed(other).await, count);
        assert_eq!(other.tasks().list(&TaskFilter::default()).await.unwrap().len() as u64, count);
    }
}

#[tokio::test]
async fn whoever_never_looked_at_tasks_counts_them_right_when_it_does() {
    let place = StoreLocation::new();
    let client = place.client();
    let mut count = fill(&place, &client, "a").await;
    let idle = place.client();
    drop(idle.acquire("x").await.unwrap());
    count += fill(&place, &client, "b").await;
    count += fill(&place, &client, "c").await;
    drop(idle.acquire("x").await.unwrap());
    assert_eq!(completed(&idle).await, count);
    assert_eq!(completed(&client).await, count);
}

#[tokio::test]
async fn a_missing_or_damaged_file_of_tasks_is_refused_and_locks_still_work() {
    let place = StoreLocation::new();
    let client = place.client();
    for number in 0..3 {
        add(&client, NewTask::new(id(&format!("open{number}")), "open")).await;
    }
    fill(&place, &client, "a").await;
    let path = place.path(&format!("journal/{:08}.tasks", place.newest()));
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[30] ^= 4;
    for damaged in [None, Some(&whole[1..]), Some(&flipped)] {
        match damaged {
            None => std::fs::remove_file(&path).unwrap(),
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
        }
        let store = place.open();
        let error = store.read(TaskCounts).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        assert!(store.check().await.unwrap().iter().any(|finding| !finding.ok));
        crate::take(&store, &format!("lock {}", damaged.map_or(0, <[u8]>::len))).await.unwrap();
    }
    std::fs::write(&path, whole).unwrap();
    is_in_order(&place.open()).await;
}

#[tokio::test]
async fn a_damaged_archive_is_reported_and_never_taken_for_an_absent_task() {
    let place = StoreLocation::new();
    let client = place.client();
    fill(&place, &client, "a").await;
    let wanted = b"\"id\":\"a0\"";
    let files = crate::files(&place.path("done")).into_iter();
    let mut files = files.filter(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(wanted.len()).any(|window| window == wanted)
            && !path.file_name().unwrap().to_string_lossy().starts_with("keys")
    });
    let path = files.next().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let error = client.tasks().get(&id("a0")).await.unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(client.tasks().add(vec![NewTask::new(id("a0"), "again")]).await.is_err());
    assert!(place.open().check().await.unwrap().iter().any(|finding| !finding.ok));
}
