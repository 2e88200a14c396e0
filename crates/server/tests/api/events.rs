//! What happened, and waiting for what happens.

use crate::kit::Server;
use serde_json::{Value, json};
use std::sync::Arc;

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
