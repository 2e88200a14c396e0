//! What makes no sense is refused, with what is wrong.

use crate::kit::{Server, request};
use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use tenure_server::caller::Caller;

async fn raw(server: &Server, path: &str, kind: Option<&str>, body: &str) -> crate::kit::Answer {
    let mut request = Request::builder().method(Method::POST).uri(path);
    if let Some(kind) = kind {
        request = request.header("content-type", kind);
    }
    server.send(request.body(Body::from(body.to_owned())).unwrap(), Caller::local()).await
}

#[tokio::test]
async fn a_body_must_be_json_and_say_so() {
    let server = Server::new().await;
    let (path, good) = ("/v1/locks/acquire", r#"{"resources":["a"]}"#);
    for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("")] {
        raw(&server, path, kind, good).await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    let positions = r#"[["a"],null,null,null,null,null,null,[]]"#;
    raw(&server, path, Some("application/json"), positions).await.refused(400, "USAGE");
    for bad in ["", "{", "[]", "null", "{\"resources\":[\"a\"]} x", "\u{0}", "{\"resources\":1}"] {
        raw(&server, path, Some("application/json"), bad).await.refused(400, "USAGE");
    }
    raw(&server, path, Some("Application/JSON; charset=utf-8"), good).await.good();
    let huge = format!("{{\"resources\":[\"{}\"]}}", "a".repeat(3 << 20));
    raw(&server, path, Some("application/json"), &huge).await.refused(413, "TOO_LARGE");
}

#[tokio::test]
async fn values_out_of_bounds_are_refused() {
    let server = Server::new().await;
    let name = "x".repeat(1025);
    let acquire = [
        json!({ "resources": [] }),
        json!({ "resources": vec!["a"; 101] }),
        json!({ "resources": [""] }),
        json!({ "resources": [name] }),
        json!({ "resources": ["a\nb"] }),
        json!({ "resources": ["path:../x"] }),
        json!({ "resources": ["a"], "mode": "slot:0" }),
        json!({ "resources": ["a"], "mode": "slot:+1" }),
        json!({ "resources": ["a"], "mode": "none" }),
        json!({ "resources": ["a"], "ttl_ms": 99 }),
        json!({ "resources": ["a"], "ttl_ms": 31_622_400_001_u64 }),
        json!({ "resources": ["a"], "ttl_ms": -1 }),
        json!({ "resources": ["a"], "ttl_ms": "1s" }),
        json!({ "resources": ["a"], "wait_ms": 60_001 }),
        json!({ "resources": ["a"], "as": "" }),
        json!({ "resources": ["a"], "as": "a\u{7}" }),
        json!({ "resources": ["a"], "as": "ä".repeat(200) }),
        json!({ "resources": ["a"], "operation": "" }),
        json!({ "resources": ["a"], "grant": "secret" }),
        json!({ "resources": ["a"], "grant": "0123456789abcdef0123456789abcdef" }),
        json!({ "resources": ["a"], "keeps": ["secret"] }),
        json!({ "resources": ["a"], "unknown": 1 }),
    ];
    refuse_all(&server, "/v1/locks/acquire", acquire).await;
    let tasks = |task: Value| json!({ "tasks": [task] });
    let add = [
        json!({ "tasks": [] }),
        tasks(json!({})),
        tasks(json!({ "title": "" })),
        tasks(json!({ "title": " " })),
        tasks(json!({ "title": "x", "priority": 101 })),
        tasks(json!({ "title": "x", "position": 1.5 })),
        tasks(json!({ "title": "x", "max_attempts": 0 })),
        tasks(json!({ "title": "x", "timeout_ms": 0 })),
        tasks(json!({ "title": "x", "not_before": "tomorrow" })),
        tasks(json!({ "title": "x", "files": ["../x"] })),
        tasks(json!({ "title": "x", "labels": [""] })),
        tasks(json!({ "title": "x", "status": "completed" })),
        tasks(json!(["id", "title"])),
    ];
    refuse_all(&server, "/v1/tasks", add).await;
    let claim = [json!({ "count": 0 }), json!({ "count": 1001 }), json!({ "section": " x" })];
    refuse_all(&server, "/v1/tasks/claim", claim).await;
    server.post("/v1/tasks/a/snooze", json!({ "as": "x" })).await.refused(400, "USAGE");
    assert_eq!(server.get("/v1/events").await.good()["events"], json!([]), "nothing was done");
}

async fn refuse_all(server: &Server, path: &str, bodies: impl IntoIterator<Item = Value>) {
    for body in bodies {
        let answer = server.post(path, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.kind, "application/problem+json");
        assert!(["USAGE", "TASK_REFUSED"].contains(&answer.json()["code"].as_str().unwrap()));
    }
}

#[tokio::test]
async fn a_whole_number_may_be_written_with_a_point() {
    let server = Server::new().await;
    let body = r#"{"resources":["a"],"ttl_ms":5e3}"#;
    let held = raw(&server, "/v1/locks/acquire", Some("application/json"), body).await.good();
    assert_eq!(held["ttl_ms"], 5000);
    for body in [r#"{"resources":["b"],"ttl_ms":500.5}"#, r#"{"resources":["b"],"ttl_ms":1e300}"#] {
        raw(&server, "/v1/locks/acquire", Some("application/json"), body)
            .await
            .refused(400, "USAGE");
    }
}

#[tokio::test]
async fn queries_are_checked() {
    let server = Server::new().await;
    for path in [
        "/v1/locks?kind=",
        "/v1/locks?unknown=1",
        "/v1/locks/show",
        "/v1/locks/show?resource=",
        "/v1/locks/show?resource=%00",
        "/v1/locks/verify?resource=a",
        "/v1/locks/verify?resource=a&token=-1",
        "/v1/locks/verify?resource=a&token=99999999999999999999",
        "/v1/locks/wait?resource=a&wait_ms=60001",
        "/v1/tasks?limit=0",
        "/v1/tasks?limit=1&limit=2",
        "/v1/tasks?status=done",
        "/v1/tasks?after_age=x",
        "/v1/tasks/%00",
        "/v1/tasks/%ff",
        "/v1/tasks/%20x",
        "/v1/events?limit=1001",
        "/v1/events?after=9007199254740992",
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        answer.refused(400, "USAGE");
    }
}

#[tokio::test]
async fn a_body_that_may_be_left_out_is_checked_if_it_is_there() {
    let server = Server::new().await;
    for path in ["/v1/locks/cleanup", "/v1/sections/*/pause", "/v1/tasks/a/cancel"] {
        raw(&server, path, Some("application/json"), "{").await.refused(400, "USAGE");
        raw(&server, path, None, "{}").await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
        server.post(path, json!({ "unknown": 1 })).await.refused(400, "USAGE");
    }
    let none = request(Method::POST, "/v1/sections/*/pause", None);
    server.send(none, Caller::local()).await.good();
}

#[tokio::test]
async fn a_mistake_is_named_in_plain_words() {
    let server = Server::new().await;
    let add = |task: Value| ("/v1/tasks", json!({ "tasks": [task] }));
    let acquire = |body: Value| ("/v1/locks/acquire", body);
    for ((path, body), detail) in [
        (
            add(json!({ "title": "x", "priority": "high" })),
            "priority of tasks[0] must be a whole number, not \"high\"",
        ),
        (
            add(json!({ "title": "x", "priority": 101 })),
            "priority of tasks[0] must be a number from 0 to 100, not 101",
        ),
        (add(json!({})), "title of tasks[0] is missing"),
        (acquire(json!({ "resources": "deploy" })), "resources must be a list, not \"deploy\""),
        (acquire(json!({ "resources": [7] })), "resources[0] must be a string, not 7"),
        (acquire(json!({})), "resources is missing"),
        (
            acquire(json!({ "resources": ["a"], "wait": 5 })),
            "unknown field \"wait\"; did you mean \"wait_ms\"?",
        ),
    ] {
        let answer = server.post(path, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.json()["detail"], detail, "{body}");
    }
    for (path, detail) in [
        ("/v1/locks/show", "resource is missing"),
        ("/v1/tasks?limit=x", "limit must be a whole number"),
        ("/v1/tasks?sections=x", "unknown field \"sections\"; did you mean \"section\"?"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.json()["detail"], detail, "{path}");
    }
}
