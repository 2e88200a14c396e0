//! Labels belong to tokens: a token that is limited to labels acts under those alone, and every event
//! says through which token its change came.

use crate::kit::{Server, request};
use axum::http::Method;
use serde_json::{Value, json};
use tenure::core::LabelPatterns;
use tenure_server::caller::{Caller, Role};

/// A token with this name, limited to these labels.
fn token(name: &str, role: Role, labels: &[&str]) -> Caller {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    Caller { labels: LabelPatterns::new(labels).unwrap(), ..Caller::new(Some(name), role) }
}

async fn post(server: &Server, path: &str, body: Value, caller: &Caller) -> crate::kit::Answer {
    server.send(request(Method::POST, path, Some(body)), caller.clone()).await
}

async fn history(server: &Server, query: &str) -> Vec<(String, String, Option<String>)> {
    let events = server.get(&format!("/v1/events?{query}")).await.good();
    let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let one = |event: &Value| {
        let actor = event.get("actor").map(|actor| actor.as_str().unwrap().to_owned());
        (text(event, "event"), text(event, "holder"), actor)
    };
    events["events"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_cannot_release_or_complete_what_another_holds_under_its_label() {
    let server = Server::new().await;
    let alice = token("alice", Role::Work, &["alice"]);
    let bob = token("bob", Role::Work, &["bob", "ci-*"]);
    let id = server.add(json!({ "title": "build" })).await;
    let lock = json!({ "resources": ["deploy"], "as": "alice" });
    post(&server, "/v1/locks/acquire", lock.clone(), &alice).await.good();
    post(&server, "/v1/tasks/claim", json!({ "as": "alice" }), &alice).await.good();
    let before = server.client.look_everywhere().await.unwrap();

    let refused = post(&server, "/v1/locks/acquire", lock.clone(), &bob).await;
    let problem = refused.refused(403, "FORBIDDEN");
    assert!(problem["detail"].as_str().unwrap().contains("\"alice\""), "{problem}");
    assert!(problem["hint"].as_str().unwrap().contains("bob, ci-*"), "{problem}");
    let own = json!({ "resources": ["deploy"], "as": "alice" });
    post(&server, "/v1/locks/release", own.clone(), &bob).await.refused(403, "FORBIDDEN");
    post(&server, "/v1/locks/renew", own.clone(), &bob).await.refused(403, "FORBIDDEN");
    let done = json!({ "as": "alice" });
    for verb in ["start", "heartbeat", "complete", "release"] {
        let path = format!("/v1/tasks/{id}/{verb}");
        post(&server, &path, done.clone(), &bob).await.refused(403, "FORBIDDEN");
    }
    let note = json!({ "text": "hello", "as": "alice" });
    post(&server, &format!("/v1/tasks/{id}/notes"), note, &bob).await.refused(403, "FORBIDDEN");
    let after = server.client.look_everywhere().await.unwrap();
    assert_eq!(after.revision, before.revision, "nothing was changed");
    assert_eq!(after.holds.len(), before.holds.len());

    post(&server, &format!("/v1/tasks/{id}/complete"), done, &alice).await.good();
    post(&server, "/v1/locks/release", own, &alice).await.good();
    let found = history(&server, "resource=deploy").await;
    let by_alice = |kind: &str| (kind.to_owned(), "alice".to_owned(), Some("alice".to_owned()));
    assert_eq!(found, [by_alice("acquired"), by_alice("released")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_limits_acts_under_every_label_and_is_named() {
    let server = Server::new().await;
    let ci = Caller::new(Some("ci"), Role::Work);
    let lock = json!({ "resources": ["deploy"], "as": "alice" });
    post(&server, "/v1/locks/acquire", lock.clone(), &ci).await.good();
    server.post("/v1/locks/release", lock).await.good();
    let of =
        |kind: &str, actor: &str| (kind.to_owned(), "alice".to_owned(), Some(actor.to_owned()));
    let all = history(&server, "resource=deploy").await;
    assert_eq!(all, [of("acquired", "ci"), of("released", "local")]);
    assert_eq!(history(&server, "actor=ci").await, [of("acquired", "ci")]);
    assert_eq!(history(&server, "kind=released,died&by=alice").await, [of("released", "local")]);
    assert_eq!(history(&server, "by=bob").await, []);
    assert_eq!(history(&server, "resource=deploy&last=1").await, [of("released", "local")]);
    assert_eq!(history(&server, "until=2020-01-01T00:00:00Z").await, []);
    server.get("/v1/events?kind=exploded").await.refused(400, "USAGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_label_of_a_token_is_its_default() {
    let server = Server::new().await;
    let lock = json!({ "resources": ["deploy"] });
    let several = token("bob", Role::Work, &["bob", "ci-*"]);
    let refused = post(&server, "/v1/locks/acquire", lock.clone(), &several).await;
    let problem = refused.refused(403, "FORBIDDEN");
    assert!(problem["hint"].as_str().unwrap().contains("bob, ci-*"), "{problem}");
    let alice = token("alice", Role::Work, &["alice"]);
    let held = post(&server, "/v1/locks/acquire", lock, &alice).await.good();
    assert_eq!(held["holder"], "alice", "{held}");
    let workers = json!({ "resources": ["other"], "as": "alice/2" });
    post(&server, "/v1/locks/acquire", workers, &alice).await.good();
}
