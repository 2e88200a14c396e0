//! However many open it at once, there is one store.

use crate::{StoreLocation, all_events, everything, given_store, open_with, process, take};
use std::sync::{Arc, Barrier};
use tenure::core::EventKind;
use tenure::store::StoreError;
use tenure::world::SystemClock;

const MANY: usize = 16;

/// Each of those who opened took one token: all different, and in one store.
async fn ensure_one_store(place: &StoreLocation) {
    let store = open_with(&place.path(), Arc::new(SystemClock)).unwrap();
    let seen = everything(&store).await;
    let tokens: Vec<u64> = seen.holds.iter().map(|seen| seen.hold.token.0).collect();
    assert_eq!(tokens, (1..=MANY as u64).collect::<Vec<_>>());
    let events = all_events(&store).await;
    assert!(!events.contains(&EventKind::Rebooted), "no reboot happened: {events:?}");
    let left = std::fs::read_dir(place.folder.path().join("store.db.side")).unwrap();
    let drafts = left
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("draft"));
    assert_eq!(drafts.count(), 0, "drafts were left behind");
}

fn take_one(path: &std::path::Path, number: u128) {
    let store = open_with(path, Arc::new(SystemClock)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(take(&store, &format!("lock {number}"), number)).unwrap();
}

#[tokio::test]
async fn many_threads_that_open_at_once_make_one_store() {
    let place = StoreLocation::new();
    let start = Barrier::new(MANY);
    std::thread::scope(|scope| {
        for number in 0..MANY {
            let (start, path) = (&start, place.path());
            scope.spawn(move || {
                start.wait();
                take_one(&path, number as u128);
            });
        }
    });
    ensure_one_store(&place).await;
}

#[tokio::test]
async fn many_processes_that_open_at_once_make_one_store() {
    let place = StoreLocation::new();
    let children: Vec<_> = (0..MANY)
        .map(|_| {
            let mut command = process("opening::take_one_as_a_process", &place.path());
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    ensure_one_store(&place).await;
}

#[test]
#[ignore = "run as a process of its own by the test above"]
fn take_one_as_a_process() {
    take_one(&given_store(), u128::from(std::process::id()));
}

#[tokio::test]
async fn many_who_open_after_a_reboot_jump_once() {
    let place = StoreLocation::new();
    take(&place.open(), "a", 1).await.unwrap();
    place.clock.reboot("boot-2");
    let start = Barrier::new(MANY);
    std::thread::scope(|scope| {
        for _ in 0..MANY {
            scope.spawn(|| {
                start.wait();
                drop(place.open());
            });
        }
    });
    let events = all_events(&place.open()).await;
    assert_eq!(events[1..], [EventKind::Rebooted]);
}

#[tokio::test]
async fn a_store_that_is_in_use_is_not_written_to_after_it_became_newer() {
    let place = StoreLocation::new();
    let store = place.open();
    take(&store, "a", 1).await.unwrap();
    let plain = rusqlite::Connection::open(place.path()).unwrap();
    let version: i32 = plain.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    plain.pragma_update(None, "user_version", version + 1).unwrap();
    let error = take(&store, "b", 2).await.expect_err("it may mean something else by now");
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    plain.pragma_update(None, "user_version", version).unwrap();
    take(&store, "b", 2).await.unwrap();
}
