//! A migration that is killed goes on when it is started again, and ends with the same result.

use crate::source::fill_with_many;
use crate::support::{Signal, StoreLocation, until};
use crate::{data, migrated, sqlite, start, with};
use std::time::Duration;
use tenure_testkit::{etcd, postgres};

/// Whether a migration into this store is unfinished.
fn is_unfinished(place: &StoreLocation, url: &str) -> bool {
    with(place, url, &["tasks", "show", "tenure-migration"]).code == 0
}

/// Whether all claims of this store are paused.
fn is_paused(place: &StoreLocation, url: &str) -> bool {
    let listed = with(place, url, &["tasks", "claim", "--as", "probe", "-n", "--json"]);
    assert_ne!(listed.code, 0, "{listed:?}");
    listed.text().contains("paused")
}

fn killed_and_resumed(target: impl Fn(&StoreLocation) -> String) {
    let place = StoreLocation::new();
    let (first, target) = (sqlite(&place, "first.db"), target(&place));
    fill_with_many(&place, &first, 3_000);
    // The first run is killed as soon as it has begun.
    let mut running = start(&place, &first, &target, &[]);
    until("a migration that has begun", || is_unfinished(&place, &target).then_some(()));
    assert_eq!(running.kill().code, 137);
    let mut kills = 1;
    let mut patience = Duration::from_millis(20);
    let moved = loop {
        // Each run gets a little further before it is killed.
        running = start(&place, &first, &target, &[]);
        std::thread::sleep(patience);
        let ended = running.kill();
        if ended.code != 137 {
            assert_eq!(ended.code, 0, "{ended:?}");
            break ended.json()["data"].clone();
        }
        kills += 1;
        patience = patience * 5 / 4;
    };
    assert!(kills >= 4, "only {kills} kills hit a migration under way");
    assert_eq!(moved["resumed"], true);
    let fresh = migrated(&place, &first, &sqlite(&place, "fresh.db"), &[]);
    for part in ["tasks", "sections", "events", "counts"] {
        assert_eq!(moved[part], fresh[part], "{part}, after {kills} kills");
    }
    assert!(!is_unfinished(&place, &target));
    for url in [&first, &target] {
        assert_eq!(with(&place, url, &["tasks", "claim", "--as", "w", "-n"]).code, 0, "{url}");
    }
}

#[test]
fn a_run_after_one_that_was_killed_when_all_was_done_says_that_it_is_done() {
    let place = StoreLocation::new();
    let (first, last) = (sqlite(&place, "first.db"), sqlite(&place, "last.db"));
    fill_with_many(&place, &first, 30);
    // A run whose answer was not seen.
    let done = migrated(&place, &first, &last, &[]);
    let again = migrated(&place, &first, &last, &[]);
    assert_eq!((&done["resumed"], &again["resumed"]), (&false.into(), &true.into()));
    for part in ["tasks", "sections", "events", "counts"] {
        assert_eq!(again[part], done[part], "{part}");
    }
    assert!(again["numbers_above"].as_u64() >= done["numbers_above"].as_u64(), "{again}");
    // Once the target has gone on, it is in use.
    assert_eq!(with(&place, &last, &["tasks", "add", "--id", "new", "New"]).code, 0);
    let refused = start(&place, &first, &last, &[]).end();
    assert_eq!(refused.json()["error"]["code"], "TARGET_NOT_EMPTY", "{refused:?}");
}

#[test]
fn killed_on_the_way_to_postgresql() {
    killed_and_resumed(|_| postgres::fresh_url());
}

#[test]
fn killed_on_the_way_to_etcd() {
    killed_and_resumed(|_| etcd::fresh_url());
}

#[test]
fn killed_on_the_way_to_files() {
    killed_and_resumed(|place| format!("file:{}", place.path("files").display()));
}

#[test]
fn killed_on_the_way_to_sqlite() {
    killed_and_resumed(|place| sqlite(place, "last.db"));
}

#[test]
fn a_source_that_changes_meanwhile_is_noticed() {
    let place = StoreLocation::new();
    let (first, last) = (sqlite(&place, "first.db"), sqlite(&place, "last.db"));
    fill_with_many(&place, &first, 3_000);
    let running = start(&place, &first, &last, &[]);
    until("a migration that has begun", || is_unfinished(&place, &last).then_some(()));
    until("a paused source", || is_paused(&place, &first).then_some(()));
    running.signal(Signal::STOP);
    assert_eq!(with(&place, &first, &["tasks", "add", "--id", "late", "Late"]).code, 0);
    running.signal(Signal::CONT);
    let ended = running.end();
    assert_eq!(ended.code, 1, "{ended:?}");
    let error = &ended.json()["error"];
    assert_eq!(error["code"], "SOURCE_CHANGED", "{ended:?}");
    assert!(error["message"].as_str().unwrap().contains("task:late added"), "{ended:?}");
    // Nothing is lost: workers of the source go on, and so does the migration.
    assert_eq!(with(&place, &first, &["tasks", "claim", "late", "--as", "w", "-n"]).code, 0);
    assert_eq!(with(&place, &first, &["tasks", "complete", "late", "--as", "w"]).code, 0);
    let moved = migrated(&place, &first, &last, &[]);
    assert_eq!((&moved["resumed"], &moved["tasks"]["count"]), (&true.into(), &3_001.into()));
    assert_eq!(data(&place, &last, &["tasks", "show", "late"])["task"]["status"], "completed");
}

#[test]
fn a_signal_ends_it_and_the_source_goes_on() {
    let place = StoreLocation::new();
    let (first, last) = (sqlite(&place, "first.db"), sqlite(&place, "last.db"));
    fill_with_many(&place, &first, 3_000);
    let running = start(&place, &first, &last, &[]);
    until("a migration that has begun", || is_unfinished(&place, &last).then_some(()));
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, 143);
    assert!(is_unfinished(&place, &last));
    assert_eq!(with(&place, &first, &["tasks", "claim", "t1", "--as", "w", "-n"]).code, 0);
    assert_eq!(with(&place, &first, &["tasks", "release", "t1", "--as", "w"]).code, 0);
    assert_eq!(migrated(&place, &first, &last, &[])["resumed"], true);
}
