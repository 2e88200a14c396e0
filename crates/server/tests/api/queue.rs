//! Waiting: in order, woken when the turn comes, and with a place that is kept between requests.

use crate::kit::Server;
use serde_json::{Value, json};
use std::sync::Arc;

const GRANT: &str = "01234567-89ab-cdef-0123-456789abcdef";

#[tokio::test]
async fn a_long_poll_answers_when_the_turn_comes() {
    let server = Arc::new(Server::new().await);
    let first = server.acquire("db", json!({})).await;
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.acquire("db", json!({ "wait_ms": 60_000, "as": "bob" })).await }
    });
    server.until_waiting(1).await;
    let shown = server.get("/v1/locks").await.good();
    assert_eq!(shown["locks"][0]["waiters"][0]["holder"], "bob");
    assert_eq!(shown["locks"][0]["waiting"], 1);
    server.post("/v1/locks/release", json!({ "grant": first["grant"] })).await.good();
    let second = waiting.await.unwrap();
    assert!(second["token"].as_u64() > first["token"].as_u64());
}

#[tokio::test]
async fn a_wait_for_something_to_be_free_does_not_take_it() {
    let server = Arc::new(Server::new().await);
    let held = server.acquire("db", json!({})).await;
    server.get("/v1/locks/wait?resource=db&wait_ms=1").await.refused(409, "LOCKED");
    server.get("/v1/locks/wait?resource=db").await.refused(409, "LOCKED");
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.get("/v1/locks/wait?resource=db&wait_ms=60000").await }
    });
    server.post("/v1/locks/release", json!({ "grant": held["grant"] })).await.good();
    assert_eq!(waiting.await.unwrap().good()["free"], true);
    assert_eq!(server.get("/v1/locks").await.good()["locks"], json!([]));
}

#[tokio::test]
async fn whoever_asks_again_with_its_grant_keeps_its_place() {
    let server = Server::new().await;
    let held = server.acquire("db", json!({})).await;
    let mine = json!({ "resources": ["db"], "wait_ms": 1, "grant": GRANT, "as": "patient" });
    let problem = server.post("/v1/locks/acquire", mine.clone()).await.refused(409, "LOCKED");
    assert_eq!(problem["details"]["place"], 1);
    assert_eq!(problem["details"]["placeKeptMs"], 15_000);

    // Another comes later, and has to stay behind although it asks first when the lock is free.
    let other = json!({ "resources": ["db"], "wait_ms": 1 });
    server.post("/v1/locks/acquire", other.clone()).await.refused(409, "LOCKED");
    server.post("/v1/locks/release", json!({ "grant": held["grant"] })).await.good();
    server.post("/v1/locks/acquire", other).await.refused(409, "LOCKED");
    let mine_now = server.post("/v1/locks/acquire", mine.clone()).await.good();
    assert_eq!((&mine_now["grant"], &mine_now["holder"]), (&json!(GRANT), &json!("patient")));

    // With the same grant it is renewed.
    let again = server.post("/v1/locks/acquire", mine).await.good();
    assert_eq!((&again["reason"], &again["token"]), (&json!("already_owned"), &mine_now["token"]));
}

#[tokio::test]
async fn a_label_that_asks_again_goes_on_holding() {
    let server = Server::new().await;
    let first = server.acquire("db", json!({ "as": "alice", "ttl_ms": 60_000 })).await;
    let glob = server.acquire("path:src/**", json!({ "as": "alice" })).await;
    let again = json!({ "as": "alice", "ttl_ms": 90_000, "wait_ms": 60_000 });
    let again = server.acquire("db", again).await;
    assert_eq!((&again["reason"], &again["holder"]), (&json!("already_owned"), &json!("alice")));
    assert_eq!((&again["grant"], &again["token"]), (&first["grant"], &first["token"]));
    assert_eq!(again["ttl_ms"], 90_000);
    let file = server.acquire("path:src/a.rs", json!({ "as": "alice" })).await;
    assert_eq!((&file["reason"], &file["grant"]), (&json!("already_owned"), &glob["grant"]));
    for stranger in [json!({ "resources": ["db"] }), json!({ "resources": ["db"], "as": "bob" })] {
        server.post("/v1/locks/acquire", stranger).await.refused(409, "LOCKED");
    }
    // A task of its own is claimed beside what it holds.
    server.add(json!({ "id": "t", "title": "T", "files": ["src/a.rs"] })).await;
    let claim = json!({ "task": "t" });
    let none = server.post("/v1/tasks/claim", claim.clone()).await.good();
    assert_eq!(none["tasks"], json!([]), "{none}");
    let mut mine = claim;
    mine["as"] = json!("alice");
    let claimed = server.post("/v1/tasks/claim", mine).await.good();
    assert_eq!(claimed["tasks"][0]["id"], "t", "{claimed}");
}

#[tokio::test]
async fn a_wait_without_a_grant_of_its_own_leaves_the_queue() {
    let server = Server::new().await;
    server.acquire("db", json!({})).await;
    let body = json!({ "resources": ["db"], "wait_ms": 1 });
    let problem = server.post("/v1/locks/acquire", body).await.refused(409, "LOCKED");
    assert_eq!(problem["details"].get("place"), None);
    assert!(server.client.look_everywhere().await.unwrap().waiters.is_empty());
}

#[tokio::test]
async fn one_grant_may_wait_for_one_thing_after_another() {
    let server = Server::new().await;
    server.acquire("a", json!({})).await;
    server.acquire("b", json!({})).await;
    for resource in ["a", "b", "a"] {
        let body = json!({ "resources": [resource], "wait_ms": 1, "grant": GRANT });
        server.post("/v1/locks/acquire", body).await.refused(409, "LOCKED");
    }
}

#[tokio::test]
async fn a_wait_that_would_never_end_is_refused() {
    let server = Arc::new(Server::new().await);
    let a = server.acquire("a", json!({ "as": "alice" })).await;
    let b = server.acquire("b", json!({ "as": "bob" })).await;
    let waiting = tokio::spawn({
        let (server, keeps) = (server.clone(), json!([a["grant"]]));
        let body = json!({ "resources": ["b"], "wait_ms": 60_000, "keeps": keeps, "as": "alice" });
        async move { server.post("/v1/locks/acquire", body).await }
    });
    server.until_waiting(1).await;
    let body = json!({ "resources": ["a"], "wait_ms": 60_000, "keeps": [b["grant"]], "as": "bob" });
    let problem = server.post("/v1/locks/acquire", body).await.refused(409, "DEADLOCK");
    assert_eq!(problem["details"]["cycle"].as_array().unwrap().len(), 2);
    server.post("/v1/locks/release", json!({ "grant": b["grant"] })).await.good();
    waiting.await.unwrap().good();
}

#[tokio::test]
async fn whoever_waits_is_told_when_the_server_stops() {
    let server = Arc::new(Server::new().await);
    server.acquire("db", json!({})).await;
    let ask = |path: &'static str, body: serde_json::Value| {
        let server = server.clone();
        tokio::spawn(async move { server.post(path, body).await })
    };
    let mine = json!({ "resources": ["db"], "wait_ms": 60_000, "grant": GRANT });
    let waiting = ask("/v1/locks/acquire", mine);
    let claiming = ask("/v1/tasks/claim", json!({ "wait_ms": 60_000 }));
    server.until_waiting(1).await;
    server.app.stop();
    waiting.await.unwrap().refused(503, "SHUTTING_DOWN");
    claiming.await.unwrap().refused(503, "SHUTTING_DOWN");
    let places = server.client.look_everywhere().await.unwrap().waiters;
    assert_eq!(places.len(), 1, "the place is there when it comes back");
}

#[tokio::test]
async fn whoever_claims_a_task_again_with_its_grant_keeps_its_place() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A" })).await;
    let held = server.claim(json!({ "task": "a", "as": "worker" })).await;
    let ask = async |body: &Value| server.post("/v1/tasks/claim", body.clone()).await.good();
    let mine = json!({ "task": "a", "wait_ms": 1, "grant": GRANT, "as": "patient" });
    assert_eq!(ask(&mine).await["tasks"], json!([]));
    server.until_waiting(1).await;

    // Another comes later, and has to stay behind although it asks first when the task is free.
    let other = json!({ "task": "a", "wait_ms": 1, "as": "hasty" });
    assert_eq!(ask(&other).await["tasks"], json!([]));
    server.until_waiting(1).await;
    server.post("/v1/tasks/a/release", json!({ "grant": held["grant"] })).await.good();
    assert_eq!(ask(&other).await["tasks"], json!([]));
    let mine_now = ask(&mine).await["tasks"][0].clone();
    assert_eq!((&mine_now["grant"], &mine_now["claimed_by"]), (&json!(GRANT), &json!("patient")));
    server.until_waiting(0).await;

    // With the same grant it is the same claim.
    let again = ask(&mine).await["tasks"][0].clone();
    assert_eq!((&again["reason"], &again["token"]), (&json!("already_owned"), &mine_now["token"]));
    let unnamed = json!({ "grant": GRANT });
    server.post("/v1/tasks/claim", unnamed).await.refused(400, "USAGE");
}
