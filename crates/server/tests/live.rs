//! The snapshot and the stream, over HTTP but without a browser.

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode};
use axum::{Extension, Router};
use futures_util::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{Proof, Revision};
use tenure::{Client, LeaseAttempt, Wait};
use tenure_server::api::live;
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tower::ServiceExt;

fn router(client: &Client, role: Role) -> Router {
    let caller = Caller::new(None, role);
    live::routes(App::new(client.clone())).into_router().layer(Extension(caller))
}

async fn memory() -> Client {
    Client::builder().label("test").open("memory:").await.unwrap()
}

async fn lease(client: &Client, label: &str, resource: &str) -> tenure::Lease {
    let request =
        client.with_label(label).unwrap().request(resource).elsewhere().operation("trying");
    match request.wait(Wait::No).lease().await.unwrap() {
        LeaseAttempt::Held(lease) => lease,
        LeaseAttempt::Busy(busy) => panic!("{busy:?}"),
    }
}

async fn get(router: &Router, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

/// A stream that is read message by message.
struct Stream {
    body: BodyDataStream,
    text: String,
}

struct Message {
    name: String,
    id: Option<u64>,
    value: Value,
}

impl Stream {
    async fn open(router: &Router, path: &str, last_id: Option<&str>) -> Stream {
        let mut request = Request::get(path);
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let request = request.body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        Stream { body: response.into_body().into_data_stream(), text: String::new() }
    }

    async fn next(&mut self) -> Message {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let message = parse(message);
                self.text = rest.to_owned();
                return message;
            }
            let bytes = self.body.next().await.expect("the stream goes on").unwrap();
            self.text += std::str::from_utf8(&bytes).unwrap();
        }
    }

    /// The next one of this name in which this is true.
    async fn find(&mut self, name: &str, is_it: impl Fn(&Value) -> bool) -> Message {
        loop {
            let message = self.next().await;
            if message.name == name && is_it(&message.value) {
                return message;
            }
        }
    }
}

fn parse(text: &str) -> Message {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    Message {
        name: field("event: ").expect("a name").to_owned(),
        id: field("id: ").map(|id| id.parse().unwrap()),
        value: serde_json::from_str(field("data: ").expect("data")).unwrap(),
    }
}

fn kinds(events: &Value) -> Vec<&str> {
    events["events"].as_array().unwrap().iter().map(|e| e["event"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_snapshot_has_everything_but_grants() {
    let client = memory().await;
    let lease = lease(&client, "alice", "deploy").await;
    let waiting = client.with_label("bob").unwrap();
    let waits = tokio::spawn(async move { waiting.acquire("deploy").await.map(drop) });
    let mut task = NewTask::new("one".parse().unwrap(), "First");
    task.section = Some("backend".to_owned());
    client.tasks().add(vec![task]).await.unwrap();
    let router = router(&client, Role::Read);
    let (_, text) = loop {
        let answer = get(&router, "/v1/snapshot").await;
        if answer.1.contains("bob") {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    waits.abort();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["role"], "read");
    assert_eq!(value["locks"][0]["resource"], "deploy");
    assert_eq!(value["locks"][0]["holder"], "alice");
    assert_eq!(value["locks"][0]["ttl_ms"], 30_000);
    assert_eq!(value["locks"][0]["waiting"], 1);
    assert_eq!(value["locks"][0]["waiters"][0]["holder"], "bob");
    assert_eq!(value["tallies"][0]["count"], 1);
    assert_eq!(value["sections"][0]["name"], "backend");
    assert_eq!(value["sections"][0]["open"], 1);
    assert_eq!(value["workers"][0]["holder"], "alice");
    assert_eq!(value["workers"][0]["alive"], "unknown");
    assert_eq!(value["workers"][0]["locks"][0], "deploy");
    assert_eq!(value["health"]["ok"], true);
    assert!(!text.contains(&lease.grant.to_string()), "a grant proves ownership");
}

#[tokio::test]
async fn a_worker_has_its_tasks_by_title() {
    let client = memory().await;
    client.tasks().add(vec![NewTask::new("one".parse().unwrap(), "First")]).await.unwrap();
    let worker = client.with_label("carol").unwrap();
    worker.tasks().claim(&tenure::ClaimRequest::default()).await.unwrap();
    let workers = tenure_server::api::workers::workers(&client).await.unwrap();
    assert_eq!(workers[0].holder, "carol");
    assert_eq!(workers[0].alive, "alive");
    assert_eq!(workers[0].tasks[0].id, "one");
    assert_eq!(workers[0].tasks[0].title, "First");
    assert!(workers[0].locks.is_empty());
}

#[tokio::test]
async fn the_stream_tells_what_happens() {
    let client = memory().await;
    let router = router(&client, Role::Admin);
    let mut stream = Stream::open(&router, "/v1/stream", None).await;
    let first = stream.next().await;
    assert_eq!((first.name.as_str(), &first.value["role"]), ("snapshot", &Value::from("admin")));
    lease(&client, "alice", "deploy").await;
    let told = stream.find("events", |_| true).await;
    assert_eq!(kinds(&told.value), ["acquired"]);
    assert_eq!(told.id, told.value["events"][0]["revision"].as_u64());
    stream.find("snapshot", |value| value["locks"][0]["holder"] == "alice").await;
    client.tasks().add(vec![NewTask::new("one".parse().unwrap(), "First")]).await.unwrap();
    stream.find("tasks", |value| value["tasks"][0]["title"] == "First").await;
    client.tasks().delete(&"one".parse().unwrap()).await.unwrap();
    stream.find("tasks", |value| value["deleted"][0] == "one").await;
    let alice = Proof::Label("alice".to_owned());
    client.release(alice, None).await.unwrap();
    stream.find("snapshot", |value| value["locks"] == serde_json::json!([])).await;
}

#[tokio::test]
async fn one_who_comes_back_is_told_what_it_missed() {
    let client = memory().await;
    lease(&client, "alice", "one").await;
    let seen = client.changed(Revision::default(), Duration::ZERO).await.unwrap();
    lease(&client, "alice", "two").await;
    client.tasks().add(vec![NewTask::new("late".parse().unwrap(), "Late")]).await.unwrap();
    let router = router(&client, Role::Read);
    for (path, last_id) in [
        (format!("/v1/stream?after={seen}"), None),
        ("/v1/stream?after=0".to_owned(), Some(seen.to_string())),
    ] {
        let mut stream = Stream::open(&router, &path, last_id.as_deref()).await;
        assert_eq!(stream.next().await.name, "snapshot");
        let tasks = stream.next().await;
        assert_eq!(tasks.value["tasks"][0]["id"], "late");
        let events = stream.next().await;
        assert_eq!(kinds(&events.value), ["acquired", "added"]);
        assert_eq!(events.value["events"][0]["resource"], "two");
    }
    let mut all = Stream::open(&router, "/v1/stream?after=0", Some("no number")).await;
    let events = all.find("events", |_| true).await;
    assert_eq!(kinds(&events.value), ["acquired", "acquired", "added"]);
    let (status, text) = get(&router, "/v1/stream?after=soon").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    assert!(text.contains("\"code\":\"USAGE\""), "{text}");
}

#[tokio::test]
async fn of_very_much_the_newest_is_told() {
    let client = memory().await;
    let tasks = (0..1_500).map(|n| NewTask::new(format!("t{n}").parse().unwrap(), "Many"));
    client.tasks().add(tasks.collect()).await.unwrap();
    let router = router(&client, Role::Read);
    let mut stream = Stream::open(&router, "/v1/stream?after=0", None).await;
    let told = stream.find("events", |_| true).await;
    let events = told.value["events"].as_array().unwrap();
    assert_eq!(events.len(), 1_000);
    assert_eq!(events[999]["resource"], "task:t1499");
}

#[tokio::test]
async fn a_hundred_who_watch_are_all_told() {
    let client = memory().await;
    let router = router(&client, Role::Read);
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(Stream::open(&router, "/v1/stream", None).await);
    }
    lease(&client, "alice", "deploy").await;
    for stream in &mut streams {
        stream.find("events", |value| kinds(value) == ["acquired"]).await;
    }
}

/// Whoever may not write cannot take a writer's turn.
#[tokio::test]
async fn looking_needs_no_permission_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
    let writer = Client::open(&url).await.unwrap();
    let looker = Client::builder().look_only().open(&url).await.unwrap();
    lease(&writer, "alice", "deploy").await;
    let router = router(&looker, Role::Read);
    let (status, text) = get(&router, "/v1/snapshot").await;
    assert!(status == StatusCode::OK && text.contains("alice"), "{text}");
    let mut stream = Stream::open(&router, "/v1/stream", None).await;
    lease(&writer, "bob", "backup").await;
    stream.find("snapshot", |value| value["locks"].to_string().contains("bob")).await;
}

#[tokio::test]
async fn trouble_with_the_store_is_told_beside_what_was_last_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tenure.db");
    let client = Client::open(&format!("sqlite:{}", file.display())).await.unwrap();
    let _lease = lease(&client, "alice", "deploy").await;
    let router = router(&client, Role::Read);
    let mut stream = Stream::open(&router, "/v1/stream", None).await;
    stream.find("snapshot", |value| value["health"]["ok"] == true).await;
    // What the loop itself saw comes after the first look.
    stream.find("snapshot", |value| value["health"]["ok"] == true).await;
    std::fs::remove_file(&file).unwrap();
    let told = stream.find("snapshot", |value| value["health"]["ok"] == false).await;
    assert_eq!(told.value["locks"][0]["holder"], "alice");
    assert!(told.value["health"]["problem"].as_str().is_some_and(|text| !text.is_empty()));
    // A handle looks only now and then whether its file is still there.
    while get(&router, "/v1/snapshot").await.0 != StatusCode::SERVICE_UNAVAILABLE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Makes so many events.
async fn make_events(client: &Client, count: usize) {
    for _ in 0..count / 2 {
        let held = lease(client, "alice", "deploy").await;
        client.release(Proof::Grant(held.grant), None).await.unwrap();
    }
}

/// The first messages up to the events, which come last, for a watcher that comes back with this id.
async fn resumed(router: &Router, id: u64) -> Vec<Message> {
    let mut stream = Stream::open(router, "/v1/stream", Some(&id.to_string())).await;
    let mut messages = vec![stream.next().await];
    while messages.last().is_none_or(|message| message.name != "events") {
        messages.push(stream.next().await);
    }
    messages
}

fn gaps(messages: &[Message]) -> Vec<&Value> {
    messages.iter().filter(|it| it.name == "gap").map(|it| &it.value).collect()
}

#[tokio::test]
async fn a_watcher_that_was_away_for_too_long_is_told_that_events_are_missing() {
    let client = memory().await;
    let router = router(&client, Role::Read);
    make_events(&client, 20).await;
    let last = client.newest_events(1).await.unwrap()[0].revision.0;
    make_events(&client, 10).await;
    // All that it missed is sent.
    let messages = resumed(&router, last).await;
    assert!(gaps(&messages).is_empty());
    assert_eq!(messages.last().unwrap().value["events"].as_array().unwrap().len(), 10);

    make_events(&client, 1000).await;
    let messages = resumed(&router, last).await;
    assert_eq!(gaps(&messages), [&json!({ "after": last, "why": "too_many" })]);
    let [.., gap, events] = &messages[..] else { panic!("too few messages") };
    assert_eq!((gap.name.as_str(), gap.id), ("gap", None), "before the events, and without an id");
    assert_eq!(events.value["events"].as_array().unwrap().len(), 1000);

    // A store in memory keeps ten thousand.
    make_events(&client, 10_000).await;
    assert_eq!(gaps(&resumed(&router, last).await), [&json!({ "after": last, "why": "trimmed" })]);
}

#[tokio::test]
async fn a_watcher_of_a_store_that_was_replaced_is_told_and_hears_of_what_comes() {
    let client = memory().await;
    let router = router(&client, Role::Read);
    make_events(&client, 4).await;
    let mut stream = Stream::open(&router, "/v1/stream", Some("1000000")).await;
    let gap = stream.find("gap", |_| true).await;
    assert_eq!(gap.value, json!({ "after": 1_000_000, "why": "unknown_id" }));
    let events = stream.find("events", |_| true).await;
    assert_eq!(events.value["events"].as_array().unwrap().len(), 4);
    make_events(&client, 2).await;
    stream.find("events", |events| kinds(events).contains(&"released")).await;
}
