//! All of a store reaches the other, and tokens rise.

use crate::source::{fill, fill_with_many};
use crate::support::StoreLocation;
use crate::{data, migrated, sqlite, with};
use serde_json::Value;
use tenure_testkit::{etcd, postgres};

/// What is compared by eye besides the checksums: each task in full, the sections, the history.
fn all(place: &StoreLocation, url: &str) -> (Value, Value, Vec<Value>) {
    let tasks = data(place, url, &["tasks", "list"]);
    let ids = tasks["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone());
    let shown = ids.map(|id| data(place, url, &["tasks", "show", id.as_str().unwrap()]));
    let mut events = data(place, url, &["events", "--last", "100000"])["events"].clone();
    let events = events.as_array_mut().unwrap();
    events.retain(|event| event["holder"] != "tenure migrate");
    for event in events.iter_mut() {
        event.as_object_mut().unwrap().remove("revision");
    }
    (shown.collect(), data(place, url, &["sections", "list"]), events.clone())
}

#[test]
fn a_round_trip_through_all_stores_ends_with_what_it_began_with() {
    let place = StoreLocation::new();
    let (first, last) = (sqlite(&place, "first.db"), sqlite(&place, "new/last.db"));
    let files = format!("file:{}", place.path("files").display());
    let [one_etcd, other_etcd] = [(); 2].map(|()| etcd::fresh_url());
    let stores = [first.clone(), one_etcd, postgres::fresh_url(), other_etcd, files, last.clone()];
    fill(&place, &first);
    let plan = data(&place, "memory:", &["migrate", "--from", &first, "--to", &last, "--dry-run"]);
    assert!(!place.path("new").exists(), "a dry run creates nothing");
    let before = all(&place, &first);
    for pair in stores.windows(2) {
        let moved = migrated(&place, &pair[0], &pair[1], &[]);
        for part in ["tasks", "sections", "events", "counts"] {
            assert_eq!(moved[part], plan[part], "{part} from {} to {}", pair[0], pair[1]);
        }
        let (tasks, sections, events) = all(&place, &pair[1]);
        assert_eq!(tasks, before.0, "tasks in {}", pair[1]);
        assert_eq!(sections, before.1, "sections in {}", pair[1]);
        assert_eq!(events, before.2, "history in {}", pair[1]);
        // The source is left as it was.
        assert_eq!(all(&place, &pair[0]), before, "{}", pair[0]);
    }
    let statuses: Vec<&str> = plan["counts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["status"].as_str().unwrap())
        .collect();
    for status in ["pending", "review", "completed", "failed", "cancelled", "blocked", "skipped"] {
        assert!(statuses.contains(&status), "{status} is not tried: {statuses:?}");
    }
    // It works on: what waited for nothing but time and others can be claimed in the last store.
    assert_eq!(with(&place, &last, &["tasks", "claim", "keyed", "--as", "w9", "-n"]).code, 0);
    assert_eq!(with(&place, &last, &["tasks", "add", "Again", "--key", "k1"]).code, 0);
    assert_eq!(data(&place, &last, &["tasks", "list"])["tasks"].as_array().unwrap().len(), 9);
}

#[test]
fn no_token_of_the_source_is_accepted_in_the_target() {
    let place = StoreLocation::new();
    let first = sqlite(&place, "first.db");
    assert_eq!(with(&place, &first, &["init"]).code, 0);
    let mut old = 0;
    for _ in 0..30 {
        old = data(&place, &first, &["acquire", "deploy", "--as", "a"])["token"].as_u64().unwrap();
        assert_eq!(with(&place, &first, &["release", "deploy", "--as", "a"]).code, 0);
    }
    let files = format!("file:{}", place.path("files").display());
    let mut from = first;
    let servers = [etcd::fresh_url(), postgres::fresh_url(), etcd::fresh_url()];
    for to in servers.into_iter().chain([files, sqlite(&place, "last.db")]) {
        let above = migrated(&place, &from, &to, &[])["numbers_above"].as_u64().unwrap();
        assert!(above >= old, "{above} is below {old}");
        let held = data(&place, &to, &["acquire", "deploy", "--as", "b"]);
        let new = held["token"].as_u64().unwrap();
        assert!(new > above, "token {new} in {to}, after {above} in {from}");
        let stale = ["verify", "deploy", "--token", &old.to_string()];
        assert_eq!(with(&place, &to, &stale).code, 8, "{to}");
        assert_eq!(with(&place, &to, &["release", "deploy", "--as", "b"]).code, 0);
        old = new;
        from = to;
    }
}

#[test]
fn twenty_thousand_tasks_are_moved() {
    moved_there_and_back(&postgres::fresh_url(), 20_000);
}

/// More than etcd takes in one change.
#[test]
fn thousands_of_tasks_are_moved_to_etcd() {
    moved_there_and_back(&etcd::fresh_url(), 6_000);
}

fn moved_there_and_back(target: &str, count: usize) {
    let place = StoreLocation::new();
    let (first, last) = (sqlite(&place, "first.db"), sqlite(&place, "last.db"));
    fill_with_many(&place, &first, count);
    let moved = migrated(&place, &first, target, &[]);
    assert_eq!(moved["tasks"]["count"], count);
    assert_eq!(migrated(&place, target, &last, &[])["tasks"], moved["tasks"]);
}

#[test]
fn an_empty_store_is_moved_too() {
    let place = StoreLocation::new();
    let (first, last) = (sqlite(&place, "first.db"), sqlite(&place, "last.db"));
    assert_eq!(with(&place, &first, &["init"]).code, 0);
    let moved = migrated(&place, &first, &last, &[]);
    assert_eq!((&moved["tasks"]["count"], &moved["equal"]), (&0.into(), &true.into()));
    assert_eq!(with(&place, &last, &["tasks", "add", "First"]).code, 0);
}
