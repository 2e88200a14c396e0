//! A request that is sent twice with one key is done once.

use crate::kit::{Answer, Server, caller, request, send};
use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_server::caller::{Caller, Role};

fn keyed(method: Method, path: &str, key: &str, body: Value) -> Request<Body> {
    let mut request = request(method, path, Some(body));
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    request
}

async fn post(server: &Server, path: &str, key: &str, body: Value) -> Answer {
    server.send(keyed(Method::POST, path, key, body), Caller::local()).await
}

#[tokio::test]
async fn the_same_key_gives_the_same_answer() {
    let server = Server::new().await;
    let body = json!({ "resources": ["db"] });
    let first = post(&server, "/v1/locks/acquire", "k1", body.clone()).await;
    let second = post(&server, "/v1/locks/acquire", "k1", body.clone()).await;
    assert!(!first.replayed && second.replayed);
    assert_eq!((&second.status, &second.kind), (&first.status, &first.kind));
    assert_eq!(first.good(), second.good(), "the grant too: it is the same caller");
    post(&server, "/v1/locks/acquire", "k2", body.clone()).await.refused(409, "LOCKED");

    // A refusal is an answer like any other.
    let grant = first.json()["grant"].clone();
    server.post("/v1/locks/release", json!({ "grant": grant })).await.good();
    let third = post(&server, "/v1/locks/acquire", "k2", body.clone()).await;
    third.refused(409, "LOCKED");
    assert!(third.replayed);
    post(&server, "/v1/locks/acquire", "k3", body).await.good();
}

#[tokio::test]
async fn a_key_is_for_one_request() {
    let server = Server::new().await;
    post(&server, "/v1/locks/acquire", "k", json!({ "resources": ["a"] })).await.good();
    let reused = "IDEMPOTENCY_KEY_REUSED";
    let other = post(&server, "/v1/locks/acquire", "k", json!({ "resources": ["b"] })).await;
    other.refused(422, reused);
    let path = post(&server, "/v1/locks/renew", "k", json!({ "resources": ["a"] })).await;
    path.refused(422, reused);
    let method = keyed(Method::PUT, "/v1/sections/S", "k", json!({ "resources": ["a"] }));
    server.send(method, Caller::local()).await.refused(422, reused);
}

#[tokio::test]
async fn a_key_is_one_callers() {
    let server = Server::new().await;
    let asked = || keyed(Method::POST, "/v1/locks/acquire", "k", json!({ "resources": ["a"] }));
    let first = server.send(asked(), caller(Role::Work)).await.good();
    let other = server.send(asked(), caller(Role::Admin)).await;
    other.refused(409, "LOCKED");
    assert!(!other.text.contains(first["grant"].as_str().unwrap()));
    assert_eq!(server.send(asked(), caller(Role::Work)).await.good(), first);
}

#[tokio::test]
async fn those_who_come_at_once_get_one_answer() {
    let server = Arc::new(Server::new().await);
    let asking = (0..20).map(|_| {
        let server = server.clone();
        let body = json!({ "tasks": [{ "title": "once" }] });
        tokio::spawn(async move { post(&server, "/v1/tasks", "k", body).await })
    });
    let asking: Vec<_> = asking.collect();
    let mut answers = Vec::new();
    for one in asking {
        answers.push(one.await.unwrap());
    }
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1);
    let texts: Vec<&str> = answers.iter().map(|answer| answer.text.as_str()).collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    assert_eq!(server.get("/v1/tasks").await.good()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_second_request_waits_for_the_first_even_if_that_one_hung_up() {
    let server = Arc::new(Server::new().await);
    let held = server.acquire("db", json!({})).await;
    let body = json!({ "resources": ["db"], "wait_ms": 60_000, "as": "bob" });
    let ask = || {
        let (server, body) = (server.clone(), body.clone());
        tokio::spawn(async move { post(&server, "/v1/locks/acquire", "k", body).await })
    };
    let first = ask();
    server.until_waiting(1).await;
    first.abort();
    assert!(first.await.is_err());
    let second = ask();
    server.post("/v1/locks/release", json!({ "grant": held["grant"] })).await.good();
    let second = second.await.unwrap();
    assert!(second.replayed);
    let locks = server.get("/v1/locks").await.good();
    assert_eq!(locks["locks"][0]["token"], second.good()["token"], "it was taken once");
}

#[tokio::test]
async fn failures_of_the_server_are_tried_again() {
    let server = Arc::new(Server::new().await);
    server.acquire("db", json!({})).await;
    server.app.stop();
    let body = json!({ "resources": ["db"], "wait_ms": 60_000 });
    for _ in 0..2 {
        let answer = post(&server, "/v1/locks/acquire", "k", body.clone()).await;
        answer.refused(503, "SHUTTING_DOWN");
        assert!(!answer.replayed);
    }
}

#[tokio::test]
async fn tasks_are_added_once_even_over_a_restart() {
    let server = Server::new().await;
    let body =
        json!({ "tasks": [{ "title": "a" }, { "title": "b", "key": "own" }, { "title": "c" }] });
    let first = post(&server, "/v1/tasks", "k", body.clone()).await.good();
    assert_eq!(
        (&first["tasks"][0]["key"], &first["tasks"][1]["key"]),
        (&json!("k/0"), &json!("own"))
    );
    let asked = keyed(Method::POST, "/v1/tasks", "k", body.clone());
    let again = send(server.restarted(), asked, Caller::local()).await;
    assert_eq!((again.status.as_u16(), again.replayed), (200, false));
    for index in 0..3 {
        assert_eq!(again.json()["tasks"][index]["id"], first["tasks"][index]["id"]);
        assert_eq!(again.json()["tasks"][index]["created"], false);
    }
    let asked = keyed(Method::POST, "/v1/tasks", "k", body);
    let other = send(server.restarted(), asked, caller(Role::Work)).await.good();
    assert_eq!(other["tasks"][0]["created"], true, "another caller's key is another key");
}

#[tokio::test]
async fn keys_are_checked() {
    let server = Server::new().await;
    let long = "x".repeat(256);
    for key in ["", "a b", "ä", &long] {
        let mut asked =
            request(Method::POST, "/v1/tasks", Some(json!({ "tasks": [{ "title": "a" }] })));
        let value = axum::http::HeaderValue::from_bytes(key.as_bytes()).unwrap();
        asked.headers_mut().insert("idempotency-key", value);
        server.send(asked, Caller::local()).await.refused(400, "USAGE");
    }
    post(&server, "/v1/tasks", &long[..255], json!({ "tasks": [{ "title": "a" }] })).await.good();
}

#[tokio::test]
async fn whoever_may_not_is_refused_before_a_key_is_used_up() {
    let server = Server::new().await;
    let asked = || keyed(Method::POST, "/v1/locks/cleanup", "k", json!({}));
    server.send(asked(), Caller::new(None, Role::Read)).await.refused(403, "FORBIDDEN");
}
