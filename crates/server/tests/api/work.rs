//! Claiming tasks and saying what came of them.

use crate::kit::Server;
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn a_task_is_claimed_worked_on_and_completed() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A", "section": "S" })).await;
    let claimed = server.claim(json!({ "as": "alice", "ttl_ms": 5_000 })).await;
    assert_eq!(
        (&claimed["status"], &claimed["claimed_by"]),
        (&json!("in_progress"), &json!("alice"))
    );
    assert!(claimed["expires_at"].is_string() && claimed["token"].is_u64(), "{claimed}");
    let own = json!({ "grant": claimed["grant"], "token": claimed["token"] });

    let started = server.post("/v1/tasks/a/start", own.clone()).await.good();
    assert!(started["task"]["started_at"].is_string());
    let beat = server.post("/v1/tasks/a/heartbeat", own.clone()).await.good();
    assert_eq!((&beat["ttl_ms"], &beat["section_renewed"]), (&json!(5_000), &json!(true)));
    let mut done = own;
    done["result"] = json!({ "lines": 3 });
    let done = server.post("/v1/tasks/a/complete", done).await.good();
    assert_eq!(done["task"]["status"], "completed");
    assert_eq!(done["task"]["result"], json!({ "lines": 3 }));
    assert_eq!(
        server.get("/v1/locks").await.good()["locks"],
        json!([]),
        "the section went with it"
    );
}

#[tokio::test]
async fn a_late_finish_is_refused_and_changes_nothing() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A" })).await;
    let first = server.claim(json!({ "as": "slow", "ttl_ms": 100 })).await;
    // The next claim takes the task back from whoever fell silent.
    let second = server.claim(json!({ "as": "quick", "wait_ms": 60_000 })).await;
    assert!(second["token"].as_u64() > first["token"].as_u64());
    let reasons = (&first["reason"], &second["reason"]);
    assert_eq!(reasons, (&json!("acquired_new"), &json!("claimed_expired")));

    let late = json!({ "grant": first["grant"], "token": first["token"], "result": "late" });
    let problem = server.post("/v1/tasks/a/complete", late).await.refused(409, "TOKEN_REFUSED");
    assert_eq!(problem["details"]["lockedBy"], "quick");
    let own = json!({ "grant": first["grant"] });
    for verb in ["start", "heartbeat", "complete", "fail", "review", "release"] {
        let path = format!("/v1/tasks/a/{verb}");
        server.post(&path, own.clone()).await.refused(409, "LEASE_LOST");
    }
    let put_off = json!({ "grant": first["grant"], "pause_ms": 1 });
    server.post("/v1/tasks/a/snooze", put_off).await.refused(409, "LEASE_LOST");
    let by_label = json!({ "as": "slow" });
    server.post("/v1/tasks/a/complete", by_label).await.refused(409, "LEASE_LOST");
    let task = &server.get("/v1/tasks/a").await.good()["task"];
    assert_eq!((&task["status"], &task["claimed_by"]), (&json!("in_progress"), &json!("quick")));
    assert_eq!(task["result"], Value::Null);
}

#[tokio::test]
async fn a_token_tells_two_claims_of_one_label_apart() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A" })).await;
    let first = server.claim(json!({ "as": "alice" })).await;
    server.post("/v1/tasks/a/release", json!({ "as": "alice" })).await.good();
    server.claim(json!({ "as": "alice" })).await;
    let late = json!({ "as": "alice", "token": first["token"], "pause_ms": 1 });
    let own = json!({ "as": "alice", "token": first["token"] });
    for verb in ["start", "heartbeat", "complete", "fail", "review", "release"] {
        let path = format!("/v1/tasks/a/{verb}");
        server.post(&path, own.clone()).await.refused(409, "TOKEN_REFUSED");
    }
    server.post("/v1/tasks/a/snooze", late).await.refused(409, "TOKEN_REFUSED");
    assert_eq!(server.get("/v1/tasks/a").await.good()["task"]["status"], "in_progress");
}

#[tokio::test]
async fn there_is_nothing_to_be_had_for_a_reason() {
    let server = Server::new().await;
    let claim = async |body: Value| server.post("/v1/tasks/claim", body).await;
    let none = claim(json!({})).await.good();
    assert_eq!((&none["tasks"], &none["why"]["code"]), (&json!([]), &json!("NOTHING_READY")));
    claim(json!({ "task": "none" })).await.refused(404, "TASK_NOT_FOUND");
    server.add(json!({ "id": "a", "title": "A", "section": "S" })).await;
    server.add(json!({ "id": "b", "title": "B", "section": "S" })).await;
    server.add(json!({ "id": "c", "title": "C", "depends_on": ["a"] })).await;
    server.claim(json!({ "task": "a", "as": "alice" })).await;
    let busy = claim(json!({ "section": "S" })).await.good();
    assert_eq!(busy["why"]["code"], "SECTION_LOCKED");
    assert_eq!(busy["why"]["details"]["lockedBy"], "alice");
    let waits = claim(json!({ "task": "c" })).await.good();
    assert_eq!(waits["why"]["code"], "NOT_READY");
    let why = "it waits for a (\"A\"), which is in_progress";
    assert_eq!(waits["why"]["details"]["why"], json!([why]), "{waits}");
    let named = server.get("/v1/tasks/c/why").await.good();
    assert!(named.to_string().contains("which is in_progress"), "{named}");
    server.post("/v1/tasks/b/cancel", json!({})).await.good();
    let left = claim(json!({})).await.good();
    assert_eq!(left["why"]["code"], "NOT_READY");
    let expected = json!(["1 is in progress (alice)", "1 waits for other tasks"]);
    assert_eq!(left["why"]["details"]["why"], expected, "{left}");
}

#[tokio::test]
async fn a_claim_that_lost_a_part_is_lost() {
    let runner = "01234567-89ab-cdef-0123-456789abcdef";
    for part in ["task:a", "path:src/**", "section:S"] {
        let server = Server::new().await;
        server.add(json!({ "id": "a", "title": "A", "section": "S", "files": ["src/**"] })).await;
        let claimed = server.claim(json!({ "as": "alice", "runner": runner })).await;
        let body = json!({ "resource": part, "token": claimed["token"], "reason": "test" });
        server.post("/v1/locks/break", body).await.good();
        let own = json!({ "grant": claimed["grant"], "runner": runner });
        for verb in ["start", "heartbeat", "complete", "fail", "review", "release"] {
            let path = format!("/v1/tasks/a/{verb}");
            server.post(&path, own.clone()).await.refused(409, "LEASE_LOST");
        }
        let task = &server.get("/v1/tasks/a").await.good()["task"];
        assert_eq!((&task["status"], &task["attempts"]), (&json!("pending"), &json!(1)), "{part}");
        assert_eq!(server.get("/v1/locks").await.good()["locks"], json!([]), "{part}");
    }
}

#[tokio::test]
async fn a_finish_may_be_said_again() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A" })).await;
    let claimed = server.claim(json!({ "as": "alice" })).await;
    let own = json!({ "grant": claimed["grant"], "token": claimed["token"] });
    let done = server.post("/v1/tasks/a/complete", own.clone()).await.good();
    assert_eq!(done["repeated"], false);
    let again = server.post("/v1/tasks/a/complete", own.clone()).await.good();
    assert_eq!((&again["repeated"], &again["task"]), (&json!(true), &done["task"]));
    server.post("/v1/tasks/a/fail", own).await.refused(409, "LEASE_LOST");
    server.post("/v1/tasks/a/complete", json!({ "as": "bob" })).await.refused(409, "LEASE_LOST");
}

#[tokio::test]
async fn several_are_claimed_at_once_by_what_they_are() {
    let server = Server::new().await;
    for (id, label) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")] {
        server.add(json!({ "id": id, "title": id, "labels": [label] })).await;
    }
    let body = json!({ "count": 2, "labels": ["x"], "as": "alice" });
    let claimed = server.post("/v1/tasks/claim", body).await.good();
    let ids: Vec<&Value> =
        claimed["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!("c")]);
    let (one, other) = (&claimed["tasks"][0], &claimed["tasks"][1]);
    assert_ne!(one["grant"], other["grant"], "each is given back by itself");
}

#[tokio::test]
async fn a_claim_waits_for_a_task() {
    let server = Arc::new(Server::new().await);
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.claim(json!({ "wait_ms": 60_000 })).await }
    });
    server.add(json!({ "id": "a", "title": "A" })).await;
    assert_eq!(waiting.await.unwrap()["id"], "a");
}

#[tokio::test]
async fn a_runner_keeps_its_section_until_nothing_is_left_in_it() {
    let server = Server::new().await;
    let runner = "01234567-89ab-cdef-0123-456789abcdef";
    for id in ["a", "b"] {
        server.add(json!({ "id": id, "title": id, "section": "S" })).await;
    }
    let claim = json!({ "runner": runner, "as": "alice" });
    let first = server.claim(claim.clone()).await;
    let own = |claimed: &Value| json!({ "grant": claimed["grant"], "runner": runner });
    let beat = server.post("/v1/tasks/a/heartbeat", own(&first)).await.good();
    assert_eq!(beat["section_renewed"], true);
    let done = server.post("/v1/tasks/a/complete", own(&first)).await.good();
    assert_eq!(done["gave_up_section"], false);
    let others = server.post("/v1/tasks/claim", json!({ "as": "bob" })).await.good();
    assert_eq!(others["why"]["code"], "SECTION_LOCKED");
    let second = server.claim(claim).await;
    let done = server.post("/v1/tasks/b/complete", own(&second)).await.good();
    assert_eq!(done["gave_up_section"], true);
}

#[tokio::test]
async fn every_way_to_end() {
    let server = Server::new().await;
    let end = async |verb: &str, more: Value| {
        let id = server.add(json!({ "title": verb })).await;
        server.claim(json!({ "task": id, "as": "alice" })).await;
        let mut body = json!({ "as": "alice" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post(&format!("/v1/tasks/{id}/{verb}"), body).await.good()["task"].clone()
    };
    let task = end("fail", json!({ "reason": "no disk" })).await;
    assert_eq!((&task["status"], &task["error"]), (&json!("pending"), &json!("no disk")));
    assert!(task["not_before"].is_string(), "it is tried again after a pause");
    let task = end("fail", json!({ "retry": false })).await;
    assert_eq!((&task["status"], &task["error"]), (&json!("failed"), &json!("no reason given")));
    let task = end("snooze", json!({ "pause_ms": 3_600_000 })).await;
    assert_eq!((&task["status"], &task["attempts"]), (&json!("pending"), &json!(0)));
    let task = end("release", json!({})).await;
    assert_eq!((&task["status"], &task["not_before"]), (&json!("pending"), &Value::Null));
    let task = end("review", json!({ "result": "please look" })).await;
    assert_eq!((&task["status"], &task["result"]), (&json!("review"), &json!("please look")));
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    let again =
        server.post(&format!("{path}/reject"), json!({ "feedback": "not yet" })).await.good();
    assert_eq!(again["task"]["feedback"], "not yet");
    server.claim(json!({ "task": task["id"], "as": "alice" })).await;
    server.post(&format!("{path}/review"), json!({ "as": "alice" })).await.good();
    let done = server.post(&format!("{path}/approve"), json!({})).await.good();
    assert_eq!(done["task"]["status"], "completed");
}

#[tokio::test]
async fn a_cancelled_task_is_lost_to_its_worker() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A" })).await;
    let claimed = server.claim(json!({})).await;
    server.post("/v1/tasks/a/cancel", json!({})).await.good();
    let own = json!({ "grant": claimed["grant"], "token": claimed["token"] });
    let problem = server.post("/v1/tasks/a/complete", own.clone()).await.refused(409, "LEASE_LOST");
    assert_eq!(problem["details"]["status"], "cancelled");
    server.post("/v1/tasks/none/complete", own).await.refused(404, "TASK_NOT_FOUND");
}

#[tokio::test]
async fn who_works_is_shown() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "Paint it" })).await;
    server.claim(json!({ "as": "alice" })).await;
    server.acquire("deploy", json!({ "as": "alice" })).await;
    let workers = server.get("/v1/workers").await.good();
    assert_eq!(workers["workers"].as_array().unwrap().len(), 1, "{workers}");
    let worker = &workers["workers"][0];
    assert_eq!((&worker["holder"], &worker["alive"]), (&json!("alice"), &json!("unknown")));
    assert_eq!(worker["locks"], json!(["deploy"]));
    assert_eq!(worker["tasks"][0]["id"], "a");
}
