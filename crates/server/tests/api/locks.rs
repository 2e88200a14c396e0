//! Taking, renewing, releasing, breaking, and looking at it.

use crate::kit::{Server, caller, request};
use axum::http::Method;
use serde_json::{Value, json};
use tenure_server::caller::Role;

#[tokio::test]
async fn a_lock_is_taken_shown_renewed_and_released() {
    let server = Server::new().await;
    let held = server.acquire("deploy", json!({ "as": "alice", "operation": "release 1.2" })).await;
    assert_eq!((&held["holder"], &held["mode"]), (&json!("alice"), &json!("exclusive")));
    assert_eq!((&held["reason"], &held["ttl_ms"]), (&json!("acquired_new"), &json!(60_000)));

    let shown = server.get("/v1/locks/show?resource=deploy").await.good();
    assert_eq!((&shown["free"], &shown["waiters"]), (&json!(false), &json!([])));
    assert_eq!(shown["holds"][0]["operation"], "release 1.2");
    assert_eq!(shown["holds"][0]["token"], held["token"]);
    assert_eq!(shown["holds"][0]["pid"], Value::Null, "nothing is known of where it runs");

    let renewed =
        server.post("/v1/locks/renew", json!({ "grant": held["grant"], "ttl_ms": 90_000 }));
    let renewed = renewed.await.good();
    let one = json!({ "resource": "deploy", "token": held["token"], "ttl_ms": 90_000 });
    assert_eq!(renewed["renewed"], json!([one]));

    let released = server.post("/v1/locks/release", json!({ "grant": held["grant"] })).await.good();
    assert_eq!(released["released"], json!(["deploy"]));
    assert_eq!(server.get("/v1/locks").await.good()["locks"], json!([]));
}

#[tokio::test]
async fn what_is_held_is_refused_with_who_holds_it() {
    let server = Server::new().await;
    server.acquire("deploy", json!({ "as": "alice" })).await;
    server.acquire("section:Backend", json!({ "as": "alice" })).await;
    server.acquire("task:42", json!({ "as": "alice" })).await;
    for (resource, code) in
        [("deploy", "LOCKED"), ("section:Backend", "SECTION_LOCKED"), ("task:42", "TASK_LOCKED")]
    {
        let asked = server.post("/v1/locks/acquire", json!({ "resources": ["free", resource] }));
        let problem = asked.await.refused(409, code);
        assert_eq!(problem["details"]["lockedBy"], "alice");
        assert_eq!(problem["details"]["resource"], resource);
    }
    let free = server.get("/v1/locks/show?resource=free").await.good();
    assert_eq!(free["free"], true, "all or nothing");
}

#[tokio::test]
async fn modes_exclude_as_their_names_say() {
    let server = Server::new().await;
    let ask = async |resource: &str, mode: &str| {
        server.post("/v1/locks/acquire", json!({ "resources": [resource], "mode": mode })).await
    };
    ask("a", "shared").await.good();
    ask("a", "shared").await.good();
    ask("a", "exclusive").await.refused(409, "LOCKED");
    assert_eq!(ask("b", "slot:2").await.good()["mode"], "slot:2");
    ask("b", "slot:2").await.good();
    ask("b", "slot:2").await.refused(409, "LOCKED");
}

#[tokio::test]
async fn a_label_that_was_chosen_proves_and_one_that_was_made_up_does_not() {
    let server = Server::new().await;
    server.acquire("chosen", json!({ "as": "alice" })).await;
    let made_up = server.acquire("made-up", json!({})).await["holder"].clone();
    assert!(made_up.as_str().unwrap().starts_with("http-"), "{made_up}");
    let release = async |label: &Value, resource: &str| {
        server.post("/v1/locks/release", json!({ "as": label, "resources": [resource] })).await
    };
    release(&json!("bob"), "chosen").await.refused(403, "NOT_YOURS");
    release(&made_up, "made-up").await.refused(403, "NOT_YOURS");
    release(&json!("bob"), "nothing").await.refused(404, "NOT_HELD");
    server.post("/v1/locks/release", json!({ "as": "alice" })).await.refused(400, "USAGE");
    assert_eq!(release(&json!("alice"), "chosen").await.good()["released"], json!(["chosen"]));
    let renew = server.post("/v1/locks/renew", json!({ "as": "alice" }));
    renew.await.refused(404, "NOT_HELD");
}

#[tokio::test]
async fn a_label_without_a_name_is_made_of_the_tokens() {
    let server = Server::new().await;
    let body = json!({ "resources": ["a"] });
    let asked = request(Method::POST, "/v1/locks/acquire", Some(body));
    let held = server.send(asked, caller(Role::Work)).await.good();
    assert!(held["holder"].as_str().unwrap().starts_with("the-work-"), "{held}");
}

#[tokio::test]
async fn what_was_lost_is_said_of_each_resource() {
    let server = Server::new().await;
    let held = server.acquire("a", json!({})).await;
    let body = json!({ "grant": held["grant"], "resources": ["a", "b"] });
    let problem = server.post("/v1/locks/renew", body.clone()).await.refused(409, "LEASE_LOST");
    assert_eq!(problem["details"]["lost"], json!(["b"]));
    assert_eq!(problem["details"]["renewed"][0]["resource"], "a");
    let problem = server.post("/v1/locks/release", body).await.refused(409, "LEASE_LOST");
    assert_eq!(problem["details"], json!({ "released": ["a"], "lost": ["b"] }));
    let again = json!({ "grant": held["grant"] });
    server.post("/v1/locks/release", again.clone()).await.refused(409, "LEASE_LOST");
    server.post("/v1/locks/renew", again).await.refused(409, "LEASE_LOST");
}

#[tokio::test]
async fn a_proof_is_needed() {
    let server = Server::new().await;
    for path in ["/v1/locks/renew", "/v1/locks/release", "/v1/tasks/a/complete"] {
        server.post(path, json!({})).await.refused(400, "USAGE");
        server.post(path, json!({ "grant": null })).await.refused(400, "USAGE");
    }
    let held = server.acquire("a", json!({ "as": "alice" })).await;
    let both = json!({ "grant": held["grant"], "as": "somebody else" });
    server.post("/v1/locks/release", both).await.good();
}

#[tokio::test]
async fn a_break_ends_the_named_hold_and_leaves_a_successor_alone() {
    let server = Server::new().await;
    let first = server.acquire("db", json!({ "as": "alice" })).await;
    let body =
        json!({ "resource": "db", "token": first["token"], "reason": "its machine is gone" });
    let asked = request(Method::POST, "/v1/locks/break", Some(body.clone()));
    let broken = server.send(asked, caller(Role::Admin)).await.good();
    assert_eq!(broken["broken"]["holder"], "alice");
    assert_eq!((&broken["by"], &broken["reason"]), (&json!("token the-admin"), &body["reason"]));

    let second = server.acquire("db", json!({ "as": "bob" })).await;
    server.post("/v1/locks/break", body).await.refused(404, "NOT_HELD");
    let shown = server.get("/v1/locks/show?resource=db").await.good();
    assert_eq!(shown["holds"][0]["token"], second["token"]);

    let events = server.get("/v1/events").await.good();
    let event = events["events"].as_array().unwrap().iter().find(|one| one["event"] == "broken");
    let event = event.expect("the audit log has it");
    assert_eq!((&event["by"], &event["holder"]), (&json!("token the-admin"), &json!("alice")));
    let lost = json!({ "grant": first["grant"] });
    server.post("/v1/locks/renew", lost).await.refused(409, "LEASE_LOST");
}

#[tokio::test]
async fn a_break_needs_a_reason_and_names_whoever_says_its_name() {
    let server = Server::new().await;
    let token = server.acquire("db", json!({})).await["token"].clone();
    for reason in [json!(""), json!("  "), Value::Null] {
        let body = json!({ "resource": "db", "token": token, "reason": reason });
        server.post("/v1/locks/break", body).await.refused(400, "USAGE");
    }
    let body = json!({ "resource": "db", "token": token, "reason": "why", "as": "x".repeat(250) });
    let asked = request(Method::POST, "/v1/locks/break", Some(body));
    let by = server.send(asked, caller(Role::Admin)).await.good()["by"].clone();
    assert!(by.as_str().unwrap().ends_with("xxx (token the-admin)"), "{by}");
}

#[tokio::test]
async fn a_token_is_verified() {
    let server = Server::new().await;
    let token = server.acquire("db", json!({})).await["token"].as_u64().unwrap();
    let verify =
        async |token: u64| server.get(&format!("/v1/locks/verify?resource=db&token={token}")).await;
    assert_eq!(verify(token).await.good()["valid"], true);
    let problem = verify(token - 1).await.refused(409, "TOKEN_REFUSED");
    assert_eq!(problem["details"]["currentToken"], token);
}

#[tokio::test]
async fn what_lapsed_is_taken_over_or_cleaned_up() {
    let server = Server::new().await;
    let old = server.acquire("a", json!({ "ttl_ms": 100, "as": "alice" })).await;
    server.acquire("b", json!({ "ttl_ms": 100 })).await;
    server.get("/v1/locks/wait?resource=a&wait_ms=60000").await.good();
    server.get("/v1/locks/wait?resource=b&wait_ms=60000").await.good();
    let new = server.acquire("a", json!({})).await;
    assert_eq!(new["reason"], "claimed_expired");
    assert_eq!(new["took_over"][0]["holder"], "alice");
    let says_why = |text: &Value| text.as_str().unwrap().starts_with("its lease ended ");
    assert!(says_why(&new["took_over"][0]["reason"]), "{new}");
    let events = server.get("/v1/events").await.good();
    let lapsed = events["events"].as_array().unwrap().iter().find(|one| one["event"] == "lapsed");
    assert!(says_why(&lapsed.unwrap()["reason"]), "{events}");
    assert!(new["token"].as_u64() > old["token"].as_u64());
    let kind = json!({ "kind": "task" });
    assert_eq!(server.post("/v1/locks/cleanup", kind).await.good()["removed"], json!([]));
    let cleaned =
        server.send(request(Method::POST, "/v1/locks/cleanup", None), caller(Role::Admin));
    let cleaned = cleaned.await.good();
    assert_eq!(cleaned["removed"].as_array().unwrap().len(), 1, "{cleaned}");
    assert_eq!(cleaned["removed"][0]["resource"], "b");
}

#[tokio::test]
async fn locks_are_listed_by_kind() {
    let server = Server::new().await;
    server.acquire("a", json!({})).await;
    server.acquire("path:src/**", json!({})).await;
    assert_eq!(server.get("/v1/locks").await.good()["locks"].as_array().unwrap().len(), 2);
    let paths = server.get("/v1/locks?kind=path").await.good();
    assert_eq!(paths["locks"][0]["name"], "src/**");
    let overlapping = server.get("/v1/locks/show?resource=path:src/a.rs").await.good();
    assert_eq!(overlapping["holds"][0]["resource"], "path:src/**");
    server.get("/v1/locks?kind=none").await.refused(400, "USAGE");
}

#[tokio::test]
async fn a_task_is_named_by_the_beginning_of_its_id_or_by_its_title() {
    let server = Server::new().await;
    server.add(json!({ "id": "a1b2c3d4", "title": "Fix bug" })).await;
    server.add(json!({ "id": "a1ffffff", "title": "Write docs" })).await;
    let token = server.claim(json!({ "task": "a1b2c3d4", "as": "alice" })).await["token"].clone();
    for name in ["task:a1b2", "task:Fix%20bug"] {
        let shown = server.get(&format!("/v1/locks/show?resource={name}")).await.good();
        assert_eq!((&shown["free"], &shown["resource"]), (&json!(false), &json!("task:a1b2c3d4")));
        let path = format!("/v1/locks/verify?resource={name}&token={token}");
        assert_eq!(server.get(&path).await.good()["valid"], true);
        server.get(&format!("/v1/locks/wait?resource={name}")).await.refused(409, "TASK_LOCKED");
    }
    let ask = async |name: &str| {
        server.post("/v1/locks/acquire", json!({ "resources": [name], "as": "bob" })).await
    };
    ask("task:Fix bug").await.refused(409, "TASK_LOCKED");
    ask("task:typo").await.refused(404, "TASK_NOT_FOUND");
    ask("task:a1").await.refused(400, "TASK_AMBIGUOUS");
    assert_eq!(ask("task:Write docs").await.good()["resources"], json!(["task:a1ffffff"]));
    let body = json!({ "as": "bob", "resources": ["task:a1f"] });
    let released = server.post("/v1/locks/release", body).await.good();
    assert_eq!(released["released"], json!(["task:a1ffffff"]));
    server.get("/v1/locks/show?resource=task:typo").await.refused(404, "TASK_NOT_FOUND");
}

#[tokio::test]
async fn slots_have_numbers_and_holders_that_disagree_on_them_are_named() {
    let server = Server::new().await;
    let ask = async |mode: &str| {
        server.post("/v1/locks/acquire", json!({ "resources": ["gpu"], "mode": mode })).await
    };
    assert_eq!(ask("slot:2").await.good()["slots"], json!([0]));
    assert_eq!(ask("slot:2").await.good()["slots"], json!([1]));
    let problem = ask("slot:3").await.refused(409, "LOCKED");
    let message = problem["detail"].as_str().unwrap();
    assert!(
        message.contains("you asked for one of 3 slots, its holders for one of 2"),
        "{message}"
    );
    assert_eq!(server.get("/v1/locks").await.good()["locks"][1]["slot"], 1);
}

/// A name without a kind would be a lock beside the path.
#[tokio::test]
async fn a_name_that_looks_like_a_path_is_refused_with_the_two_spellings() {
    let server = Server::new().await;
    server.acquire("path:src/**", json!({ "as": "alice" })).await;
    let name = "src/auth/login.rs";
    let asked = server.post("/v1/locks/acquire", json!({ "resources": [name] })).await;
    let message = asked.refused(400, "USAGE")["detail"].clone();
    let message = message.as_str().unwrap_or_default();
    assert!(message.contains("path:src/auth/login.rs for these files"), "{message}");
    assert!(message.contains("lock:src/auth/login.rs for a lock"), "{message}");
    for path in ["show?", "wait?", "verify?token=1&"] {
        let path = format!("/v1/locks/{path}resource={name}");
        server.get(&path).await.refused(400, "USAGE");
    }
    let other = server.post("/v1/locks/acquire", json!({ "resources": ["PATH:src/a.rs"] }));
    other.await.refused(409, "LOCKED");

    // What is held under such a name stays visible, and can be given up.
    let held = server.acquire(&format!("lock:{name}"), json!({ "as": "bob" })).await;
    assert_eq!(held["resources"], json!([format!("lock:{name}")]));
    let shown = server.get(&format!("/v1/locks/show?resource={name}")).await.good();
    assert_eq!(shown["holds"][0]["holder"], "bob");
    let renewed = server.post("/v1/locks/renew", json!({ "as": "bob", "resources": [name] }));
    renewed.await.good();
    let released = server.post("/v1/locks/release", json!({ "as": "bob", "resources": [name] }));
    released.await.good();
}
