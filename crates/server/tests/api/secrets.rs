//! A grant is in the answer to whoever obtained it, and nowhere else.

use crate::kit::{Server, request};
use axum::http::Method;
use serde_json::json;
use tenure_server::caller::Caller;

#[tokio::test]
async fn no_other_answer_has_a_grant_in_it() {
    let server = Server::new().await;
    let mut secrets = Vec::new();
    let mut secret = |grant: &serde_json::Value| secrets.push(grant.as_str().unwrap().to_owned());
    secret(&server.acquire("db", json!({ "as": "alice", "operation": "x" })).await["grant"]);
    secret(&server.acquire("path:src/**", json!({ "mode": "shared" })).await["grant"]);
    server.add(json!({ "id": "none", "title": "A", "section": "S", "files": ["docs/**"] })).await;
    let runner = "11111111-2222-3333-4444-555555555555";
    secret(&server.claim(json!({ "runner": runner, "as": "alice" })).await["grant"]);
    secret(&json!(runner));
    let waiter = "99999999-8888-7777-6666-555555555555";
    let wait = json!({ "resources": ["db"], "wait_ms": 1, "grant": waiter });
    let mut answers = vec![server.post("/v1/locks/acquire", wait).await];
    secret(&json!(waiter));

    let document = server.get("/v1/openapi.json").await.good();
    for (path, item) in document["paths"].as_object().unwrap() {
        if item.get("get").is_none() || path == "/v1/stream" {
            continue;
        }
        let path = path.replace("{id}", "none");
        let query = match path.as_str() {
            "/v1/locks/show" | "/v1/locks/wait" => "?resource=db",
            "/v1/locks/verify" => "?resource=db&token=1",
            _ => "",
        };
        let answer = server.get(&format!("{path}{query}")).await;
        assert_ne!(answer.status, 400, "{path}: {answer:?}");
        answers.push(answer);
    }
    assert!(answers.len() > 12, "the document has lost its paths");

    // What changes things for others, or refuses.
    let refused = json!({ "resources": ["db"] });
    answers.push(server.post("/v1/locks/acquire", refused).await);
    answers.push(server.post("/v1/tasks/claim", json!({ "section": "S" })).await);
    answers.push(server.post("/v1/tasks/none/complete", json!({ "as": "bob" })).await);
    answers.push(server.patch("/v1/tasks/none", json!({ "priority": 3 })).await);
    answers.push(server.post("/v1/tasks/none/heartbeat", json!({ "as": "alice" })).await);
    answers.push(server.post("/v1/locks/renew", json!({ "as": "alice" })).await);
    let token = server.get("/v1/locks/show?resource=db").await.good()["holds"][0]["token"].clone();
    let broken = json!({ "resource": "db", "token": token, "reason": "test" });
    answers.push(server.post("/v1/locks/break", broken).await);
    answers.push(server.post("/v1/tasks/none/cancel", json!({})).await);
    let cleanup = request(Method::POST, "/v1/locks/cleanup", None);
    answers.push(server.send(cleanup, Caller::local()).await);
    answers.push(server.get("/v1/events").await);
    for answer in answers {
        for secret in &secrets {
            assert!(!answer.text.contains(secret), "{secret} in {answer:?}");
        }
    }
}
