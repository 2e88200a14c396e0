//! Requests that stand alone, each with a caller that may do more or less.

use super::*;
use crate::app::App;
use crate::caller::{Caller, Role};
use crate::mcp::routes;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::{Extension, Router};
use http_body_util::BodyExt;
use tower::ServiceExt;

fn caller(name: &str, role: Role) -> Caller {
    Caller::new(Some(name), role)
}

/// What the tool answers to this caller, and whether that is an error.
async fn ask(
    router: &Router,
    caller: Option<Caller>,
    tool: &str,
    arguments: Value,
) -> (Value, bool) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "http", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Request::post("/mcp")
        .header("host", "example.org")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(Body::from(body.to_string()))
        .unwrap();
    let router = match caller {
        Some(caller) => router.clone().layer(Extension(caller)),
        None => router.clone(),
    };
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(status, StatusCode::OK, "{text}");
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let data: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
    let result = &data.last().unwrap_or_else(|| panic!("{text}"))["result"];
    (result["structuredContent"].clone(), result["isError"] == true)
}

#[tokio::test]
async fn looking_needs_read_and_the_rest_needs_work() {
    let (client, _) = store().await;
    let router = routes(App::new(client)).into_router();
    let looking = ["get_task", "get_status", "get_all_tasks", "get_results", "who_holds"];
    for tool in &*crate::mcp::tools::SESSIONLESS {
        let reader = Some(caller("eve", Role::Read));
        let (answer, _) = ask(&router, reader, &tool.name, json!({})).await;
        let may = answer["code"] != "FORBIDDEN";
        assert_eq!(may, looking.contains(&&*tool.name), "{}: {answer}", tool.name);
        let (answer, refused) = ask(&router, None, &tool.name, json!({})).await;
        assert!(refused && answer["code"] == "UNAUTHORIZED", "{}: {answer}", tool.name);
    }
    let new = json!({ "description": "Do it" });
    let (answer, refused) = ask(&router, Some(caller("bob", Role::Work)), "create_task", new).await;
    assert!(!refused, "{answer}");
}

#[tokio::test]
async fn a_session_is_passed_on_by_its_name_and_only_by_its_owner() {
    let (client, _) = store().await;
    let router = routes(App::new(client)).into_router();
    let bob = || Some(caller("bob", Role::Work));
    let lock = json!({ "resources": ["deploy"] });
    let (held, _) = ask(&router, bob(), "acquire_lock", lock.clone()).await;
    let session = held["session"].as_str().unwrap_or_else(|| panic!("{held}"));
    // Without its name, it is another session.
    let (denied, _) = ask(&router, bob(), "acquire_lock", lock).await;
    assert_eq!((&denied["success"], denied.get("session")), (&json!(false), None), "{denied}");
    let with_session = json!({ "session": session });
    let eve = || Some(caller("eve", Role::Admin));
    let (answer, refused) = ask(&router, eve(), "release_lock", with_session.clone()).await;
    assert!(refused && answer["code"] == "NO_SESSION", "{answer}");
    let (answer, _) = ask(&router, bob(), "heartbeat", with_session.clone()).await;
    assert_eq!(answer["holding"][0]["resource"], "deploy", "{answer}");
    // Nothing that others see is a way in.
    let (seen, _) = ask(&router, eve(), "who_holds", json!({})).await;
    assert!(!seen.to_string().contains(session), "{seen}");
    let (answer, _) = ask(&router, bob(), "release_lock", with_session).await;
    assert_eq!(answer["released"], json!(["deploy"]), "{answer}");
    let unknown = json!({ "session": "no-such" });
    let (answer, refused) = ask(&router, bob(), "heartbeat", unknown).await;
    assert!(refused && answer["code"] == "NO_SESSION", "{answer}");
}

#[tokio::test]
async fn a_named_session_outlives_its_server() {
    let (client, clock) = store().await;
    let before = routes(App::new(client.clone())).into_router();
    let bob = || Some(caller("bob", Role::Work));
    let new = json!({ "id": "build", "description": "Build it", "section": "s" });
    ask(&before, bob(), "create_task", new).await;
    let (claimed, _) = ask(&before, bob(), "claim_task", json!({})).await;
    let session = claimed["session"].clone();
    let lock = json!({ "resources": ["deploy", "path:src/**"], "session": session });
    ask(&before, bob(), "acquire_lock", lock).await;
    let brief = json!({ "resources": ["brief"], "ttl_seconds": 60, "session": session });
    ask(&before, bob(), "acquire_lock", brief).await;
    drop(before);
    clock.advance(Duration::from_secs(5 * 60));

    let after = routes(App::new(client.clone())).into_router();
    let with_session = json!({ "session": session });
    let eve = Some(caller("eve", Role::Admin));
    let (answer, _) = ask(&after, eve, "heartbeat", with_session.clone()).await;
    assert_eq!(answer["code"], "NO_SESSION", "{answer}");
    let (answer, _) = ask(&after, bob(), "heartbeat", with_session.clone()).await;
    let mut still: Vec<&str> =
        answer["still_yours"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    still.sort_unstable();
    assert_eq!(still, ["deploy", "path:src/**", "task:build"], "{answer}");
    assert_eq!(answer["lost"], json!(["brief"]), "{answer}");
    assert_eq!(answer["holding"].as_array().unwrap().len(), 3, "{answer}");
    // It is told once; and what is found is held for as long as before.
    let (answer, _) = ask(&after, bob(), "heartbeat", with_session.clone()).await;
    assert_eq!(answer.get("still_yours"), None, "{answer}");
    clock.advance(Duration::from_secs(8 * 60));
    let done = json!({ "task_id": "build", "session": session });
    let (answer, refused) = ask(&after, bob(), "complete_task", done).await;
    assert!(!refused, "{answer}");
    let (answer, _) = ask(&after, bob(), "release_lock", with_session.clone()).await;
    let released = answer["released"].as_array().unwrap().len();
    assert_eq!(released, 2, "{answer}");
    let seen = client.look_everywhere().await.unwrap();
    assert!(seen.holds.iter().all(|seen| seen.lapsed()), "{:?}", seen.holds);
    // Nothing is left of it.
    let (answer, _) =
        ask(&routes(App::new(client)).into_router(), bob(), "heartbeat", with_session).await;
    assert_eq!(answer["code"], "NO_SESSION", "{answer}");
}

/// Sends a message of the protocol as it was when it had sessions; returns the session's id and the
/// answer.
async fn send(router: &Router, session: Option<&str>, message: Value) -> (Option<String>, String) {
    let mut request = Request::post("/mcp")
        .header("host", "example.org")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let request = request.body(Body::from(message.to_string())).unwrap();
    let router = router.clone().layer(Extension(caller("bob", Role::Work)));
    let response = router.oneshot(request).await.unwrap();
    let id = response.headers().get("mcp-session-id");
    let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (id, String::from_utf8(bytes.to_vec()).unwrap())
}

/// A router in which a session of the protocol holds `deploy`; returns the session's id too.
async fn holding(app: &App) -> (Router, String) {
    let router = routes(app.clone()).into_router();
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "http", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let (session, answer) = send(&router, None, hello).await;
    let session = session.unwrap_or_else(|| panic!("{answer}"));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    send(&router, Some(&session), ready).await;
    let answer = acquire(&router, &session).await;
    assert!(answer.contains("acquired_new"), "{answer}");
    (router, session)
}

async fn acquire(router: &Router, session: &str) -> String {
    let params = json!({ "name": "acquire_lock", "arguments": { "resources": ["deploy"] } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    send(router, Some(session), call).await.1
}

#[tokio::test]
async fn a_session_goes_on_with_another_server_until_it_is_closed() {
    let (client, _) = store().await;
    let (_, session) = holding(&App::new(client.clone())).await;
    let after = routes(App::new(client.clone())).into_router();
    let answer = acquire(&after, &session).await;
    assert!(answer.contains("already_owned") && answer.contains("still_yours"), "{answer}");
    let answer = acquire(&after, "made-up").await;
    assert!(answer.contains("not found"), "{answer}");
    let close = Request::delete("/mcp").header("mcp-session-id", &session);
    let close = close.header("host", "example.org").body(Body::empty()).unwrap();
    let bob = Extension(caller("bob", Role::Work));
    let closed = after.layer(bob).oneshot(close).await.unwrap();
    assert_eq!(closed.status(), StatusCode::OK);
    let freed = async {
        while !client.look_everywhere().await.unwrap().holds.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.expect("what it held is free");
}

#[tokio::test]
async fn a_reader_does_not_prolong_what_a_session_of_its_token_held() {
    let (client, clock) = store().await;
    let router = routes(App::new(client)).into_router();
    let lock = json!({ "resources": ["deploy"] });
    let (held, _) = ask(&router, Some(caller("bob", Role::Work)), "acquire_lock", lock).await;
    let session = json!({ "session": held["session"] });
    let reader = || Some(caller("bob", Role::Read));
    clock.advance(Duration::from_secs(6 * 60));
    ask(&router, reader(), "get_status", session.clone()).await;
    clock.advance(Duration::from_secs(6 * 60));
    let (seen, _) = ask(&router, reader(), "who_holds", session).await;
    assert_eq!(seen["holds"], json!([]), "{seen}");
}

async fn delete(router: &Router, session: Option<&str>) -> StatusCode {
    delete_as(router, caller("bob", Role::Work), session).await
}

async fn delete_as(router: &Router, caller: Caller, session: Option<&str>) -> StatusCode {
    let mut close = Request::delete("/mcp").header("host", "example.org");
    if let Some(session) = session {
        close = close.header("mcp-session-id", session);
    }
    let close = close.body(Body::empty()).unwrap();
    router.clone().layer(Extension(caller)).oneshot(close).await.unwrap().status()
}

#[tokio::test]
async fn a_session_is_closed_and_used_by_the_token_that_opened_it_alone() {
    let (client, _) = store().await;
    let app = App::new(client.clone());
    let (router, session) = holding(&app).await;
    for role in [Role::Read, Role::Admin] {
        let eve = || caller("eve", role);
        assert_eq!(delete_as(&router, eve(), Some(&session)).await, StatusCode::NOT_FOUND);
        // Nor with another server, which the session may go on with.
        let after = routes(app.clone()).into_router();
        assert_eq!(delete_as(&after, eve(), Some(&session)).await, StatusCode::NOT_FOUND);
    }
    assert!(acquire(&router, &session).await.contains("already_owned"));
    // When it is closed, what it held is free at once, and its id is known no more.
    assert_eq!(delete(&router, Some(&session)).await, StatusCode::OK);
    assert!(client.look_everywhere().await.unwrap().holds.is_empty());
    let answer = acquire(&router, &session).await;
    assert!(answer.contains("-32001"), "{answer}");
    assert_eq!(client.look_everywhere().await.unwrap().holds.len(), 0, "nothing is taken for it");
}

#[tokio::test]
async fn a_session_id_that_nobody_was_given_is_answered_with_404() {
    let (client, _) = store().await;
    let router = routes(App::new(client)).into_router();
    for id in [uuid::Uuid::new_v4().to_string(), "made-up".to_owned(), String::new()] {
        for method in ["POST", "GET", "DELETE"] {
            let request = Request::builder()
                .method(method)
                .uri("/mcp")
                .header("host", "example.org")
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-session-id", &id)
                .body(Body::from(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#))
                .unwrap();
            let bob = Extension(caller("bob", Role::Work));
            let answer = router.clone().layer(bob).oneshot(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{method} {id:?}");
        }
    }
}

/// Opens a session of the protocol; returns its id, or the status of the refusal.
async fn open(router: &Router, caller: Caller) -> Result<String, StatusCode> {
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "http", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let request = Request::post("/mcp")
        .header("host", "example.org")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from(hello.to_string()))
        .unwrap();
    let response = router.clone().layer(Extension(caller)).oneshot(request).await.unwrap();
    let id = response.headers().get("mcp-session-id").cloned();
    id.map(|id| id.to_str().unwrap().to_owned()).ok_or(response.status())
}

#[tokio::test]
async fn a_token_has_a_bounded_number_of_sessions_and_keeps_those_that_hold_something() {
    let (client, _) = store().await;
    let options = crate::mcp::Options { sessions_max: 3, ..crate::mcp::Options::default() };
    let router = crate::mcp::routes_with(App::new(client.clone()), options).into_router();
    let bob = || caller("bob", Role::Work);
    let eve = open(&router, caller("eve", Role::Read)).await.unwrap();
    let first = open(&router, bob()).await.unwrap();
    assert!(acquire(&router, &first).await.contains("acquired_new"));
    let mut idle = Vec::new();
    for _ in 0..10 {
        idle.push(open(&router, bob()).await.unwrap());
    }
    // The one that holds something is there, and the last ones; the others' places went to them.
    assert!(acquire(&router, &first).await.contains("already_owned"));
    let last = idle.split_off(8);
    for id in &idle {
        assert_eq!(delete(&router, Some(id)).await, StatusCode::NOT_FOUND);
    }
    for id in &last {
        let lock = json!({ "resources": [id] });
        let params = json!({ "name": "acquire_lock", "arguments": lock });
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        assert!(send(&router, Some(id), call).await.1.contains("acquired_new"));
    }
    assert_eq!(open(&router, bob()).await, Err(StatusCode::TOO_MANY_REQUESTS));
    // Nobody else is concerned.
    assert_eq!(delete_as(&router, caller("eve", Role::Read), Some(&eve)).await, StatusCode::OK);
    assert_eq!(delete(&router, Some(&first)).await, StatusCode::OK);
    assert!(open(&router, bob()).await.is_ok());
}

#[tokio::test]
async fn closing_a_session_answers_whether_there_was_one() {
    let (client, _) = store().await;
    let (router, session) = holding(&App::new(client.clone())).await;
    assert_eq!(delete(&router, None).await, StatusCode::NOT_FOUND);
    assert_eq!(delete(&router, Some("made-up")).await, StatusCode::NOT_FOUND);
    let unknown = uuid::Uuid::new_v4().to_string();
    assert_eq!(delete(&router, Some(&unknown)).await, StatusCode::NOT_FOUND);
    assert_eq!(delete(&router, Some(&session)).await, StatusCode::OK);
    let gone = async {
        while !client.look_everywhere().await.unwrap().holds.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("what it held is free");
    assert_eq!(delete(&router, Some(&session)).await, StatusCode::NOT_FOUND);
    // One that began with an earlier server.
    let (_, session) = holding(&App::new(client.clone())).await;
    let after = crate::mcp::routes(App::new(client.clone())).into_router();
    assert_eq!(delete(&after, Some(&session)).await, StatusCode::OK);
    assert!(client.look_everywhere().await.unwrap().holds.is_empty());
    assert_eq!(delete(&after, Some(&session)).await, StatusCode::NOT_FOUND);
}
