//! What happened, and waiting for what happens.

use crate::kit::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure::Client;
use tenure::store::{SqliteOptions, SqliteStore};
use tenure::world::ManualClock;

#[tokio::test]
async fn events_are_told_in_pages() {
    let server = Server::new().await;
    let empty = server.get("/v1/events").await.good();
    assert_eq!((&empty["events"], &empty["revision"]), (&json!([]), &json!(0)));
    let held = server.acquire("a", json!({ "as": "alice", "operation": "x" })).await;
    server.post("/v1/locks/release", json!({ "grant": held["grant"] })).await.good();
    let first = server.get("/v1/events?limit=1").await.good();
    assert_eq!(first["events"][0]["event"], "acquired");
    assert_eq!(first["events"][0]["operation"], "x");
    let next = server.get(&format!("/v1/events?after={}", first["revision"])).await.good();
    let words: Vec<&Value> =
        next["events"].as_array().unwrap().iter().map(|event| &event["event"]).collect();
    assert_eq!(words, [&json!("released")]);
    let end = server.get(&format!("/v1/events?after={}&wait_ms=1", next["revision"])).await.good();
    assert_eq!((&end["events"], &end["revision"]), (&json!([]), &next["revision"]));
}

#[tokio::test]
async fn a_long_poll_answers_when_something_happens() {
    let server = Arc::new(Server::new().await);
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.get("/v1/events?wait_ms=60000").await.good() }
    });
    server.acquire("a", json!({})).await;
    assert_eq!(waiting.await.unwrap()["events"][0]["resource"], "a");
}

/// A reboot of the machine makes the numbers of the default store jump, as other stores may at any time.
#[tokio::test]
async fn the_newest_events_are_told_across_a_gap_in_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.db");
    let clock = Arc::new(ManualClock::new());
    let open = || {
        let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() };
        let store = SqliteStore::open_with(&path, options).unwrap();
        Client::builder().with_store(Arc::new(store)).unwrap()
    };
    open().acquire("before").await.unwrap().release().await.unwrap();
    clock.reboot("another boot");
    let server = Server::over(open(), folder);
    server.acquire("after", json!({})).await;

    let told = async |query: &str| -> Vec<(String, u64)> {
        let answer = server.get(&format!("/v1/events?{query}")).await.good();
        let events = answer["events"].as_array().unwrap().iter();
        let told: Vec<(String, u64)> = events
            .map(|event| {
                (event["event"].as_str().unwrap().to_owned(), event["revision"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(answer["revision"].as_u64(), told.last().map(|(_, revision)| *revision));
        told
    };
    let all = told("").await;
    let words: Vec<&str> = all.iter().map(|(word, _)| word.as_str()).collect();
    assert_eq!(words, ["acquired", "released", "rebooted", "acquired"]);
    assert!(all[2].1 - all[1].1 > 1000, "the numbers jump: {all:?}");
    assert_eq!(told("last=4").await, all);
    assert_eq!(told("last=3&limit=1").await, all[1..]);
    assert_eq!(told(&format!("last=10000&after={}", all[2].1)).await, all[3..]);
}
