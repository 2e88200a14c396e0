//! Adding, finding and changing tasks.

use crate::kit::{Server, caller, request};
use axum::http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure::Client;
use tenure::store::{
    Answer as StoreAnswer, Committed, Maintained, Maintenance, Query, Renewal, Renewed, Signal,
    Store, StoreError, StoreInfo, Transaction, Waited,
};
use tenure_server::caller::Role;

fn ids(answer: &Value) -> Vec<&str> {
    answer["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tasks_are_added_all_or_none() {
    let server = Server::new().await;
    let build = json!({
        "id": "build", "title": "Build", "description": "all of it", "section": "CI",
        "priority": 7, "position": -3, "labels": ["rust"], "files": ["src/**"],
        "payload": { "target": ["x86"] }, "max_attempts": 5, "timeout_ms": 1500,
        "not_before": "2026-01-29T20:30:00Z", "key": "build-1",
    });
    let test = json!({ "title": "Test", "depends_on": ["build"] });
    let both = json!({ "tasks": [build, test], "as": "planner" });
    let answer = server.post("/v1/tasks", both).await;
    assert_eq!(answer.status, 201);
    let added = answer.good();
    let first = &added["tasks"][0];
    assert_eq!((&first["created"], &first["status"]), (&json!(true), &json!("pending")));
    assert_eq!(first["payload"], json!({ "target": ["x86"] }));
    assert_eq!((&first["timeout_seconds"], &first["position"]), (&json!(1.5), &json!(-3)));
    assert_eq!(first["not_before"], "2026-01-29T20:30:00Z");
    assert_eq!(
        (&added["tasks"][1]["unmet"], &added["tasks"][1]["priority"]),
        (&json!(1), &json!(50))
    );

    let taken = json!({ "tasks": [{ "title": "New" }, { "id": "build", "title": "Twice" }] });
    server.post("/v1/tasks", taken).await.refused(409, "TASK_REFUSED");
    let lonely = json!({ "tasks": [{ "title": "x", "depends_on": ["nothing"] }] });
    server.post("/v1/tasks", lonely).await.refused(409, "TASK_REFUSED");
    let twice = json!({ "tasks": [{ "id": "c", "title": "x" }, { "id": "c", "title": "y" }] });
    server.post("/v1/tasks", twice).await.refused(400, "TASK_REFUSED");
    assert_eq!(server.get("/v1/tasks").await.good()["tasks"].as_array().unwrap().len(), 2);

    let again = json!({ "tasks": [{ "title": "Build", "key": "build-1" }] });
    let answer = server.post("/v1/tasks", again).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["tasks"][0]["id"]), (200, &json!("build")));
    assert_eq!(answer.json()["tasks"][0]["created"], false);
    let events = server.get("/v1/events").await.good();
    assert_eq!(events["events"][0]["holder"], "planner");
}

#[tokio::test]
async fn tasks_are_shown_with_what_they_wait_for() {
    let server = Server::new().await;
    server.add(json!({ "id": "a/b c", "title": "First" })).await;
    server.add(json!({ "id": "later", "title": "Second", "depends_on": ["a/b c"] })).await;
    let shown = server.get("/v1/tasks/a%2Fb%20c").await.good();
    assert_eq!((&shown["task"]["title"], &shown["waits_for"]), (&json!("First"), &json!([])));
    let why = server.get("/v1/tasks/later/why").await.good();
    assert_eq!(why["ready"], false);
    assert!(why["why"][0].as_str().unwrap().contains("a/b c"), "{why}");
    assert_eq!(server.get("/v1/tasks/a%2Fb%20c/why").await.good()["ready"], true);
    for path in ["/v1/tasks/nothing", "/v1/tasks/nothing/why"] {
        server.get(path).await.refused(404, "TASK_NOT_FOUND");
    }
}

#[tokio::test]
async fn tasks_are_listed_in_pages() {
    let server = Server::new().await;
    for index in 0..5 {
        let section = if index % 2 == 0 { "even" } else { "odd" };
        let task = json!({ "id": format!("t{index}"), "title": "T", "section": section, "labels": [section] });
        server.add(task).await;
    }
    let first = server.get("/v1/tasks?limit=2").await.good();
    assert_eq!(ids(&first), ["t0", "t1"]);
    let next =
        server.get(&format!("/v1/tasks?limit=3&after_age={}", first["next_after_age"])).await;
    let next = next.good();
    assert_eq!((ids(&next), &next["next_after_age"]), (vec!["t2", "t3", "t4"], &Value::Null));
    assert_eq!(ids(&server.get("/v1/tasks?section=odd").await.good()), ["t1", "t3"]);
    assert_eq!(ids(&server.get("/v1/tasks?label=even").await.good()), ["t0", "t2", "t4"]);
    assert!(ids(&server.get("/v1/tasks?status=completed").await.good()).is_empty());
    let tallies = server.get("/v1/tallies").await.good();
    let odd = json!({ "section": "odd", "status": "pending", "count": 2 });
    assert!(tallies["tallies"].as_array().unwrap().contains(&odd), "{tallies}");
}

#[tokio::test]
async fn a_search_finds_text_in_any_of_what_people_wrote() {
    let server = Server::new().await;
    let tasks = json!([
        { "id": "Needle-1", "title": "a" },
        { "id": "b", "title": "the NEEDLE" },
        { "id": "c", "title": "c", "description": "a needle in it" },
        { "id": "d", "title": "d", "labels": ["needles"] },
        { "id": "e", "title": "e", "section": "claimed" },
        { "id": "f", "title": "hay" },
    ]);
    server.post("/v1/tasks", json!({ "tasks": tasks })).await.good();
    server.claim(json!({ "section": "claimed", "as": "needle-worker" })).await;
    let found = server.get("/v1/tasks?search=nEEdle").await.good();
    assert_eq!(ids(&found), ["Needle-1", "b", "c", "d", "e"]);
    assert_eq!(found["next_after_age"], Value::Null);
    let page = server.get("/v1/tasks?search=needle&limit=2").await.good();
    assert_eq!(ids(&page), ["Needle-1", "b"]);
    let next = format!("/v1/tasks?search=needle&limit=9&after_age={}", page["next_after_age"]);
    assert_eq!(ids(&server.get(&next).await.good()), ["c", "d", "e"]);
    let pending = server.get("/v1/tasks?search=needle&status=in_progress").await.good();
    assert_eq!(ids(&pending), ["e"]);
    assert_eq!(ids(&server.get("/v1/tasks?search=").await.good()).len(), 6);
}

#[tokio::test]
async fn a_search_reads_so_much_at_once_and_goes_on_where_it_ended() {
    let server = Server::new().await;
    for from in (0..10_500).step_by(500) {
        let tasks =
            (from..from + 500).map(|index| json!({ "id": format!("{index:05}"), "title": "x" }));
        server.post("/v1/tasks", json!({ "tasks": tasks.collect::<Vec<_>>() })).await.good();
    }
    let first = server.get("/v1/tasks?search=10400").await.good();
    assert_eq!(ids(&first), [""; 0]);
    let next = format!("/v1/tasks?search=10400&after_age={}", first["next_after_age"]);
    assert_eq!(ids(&server.get(&next).await.good()), ["10400"]);
}

#[tokio::test]
async fn an_admin_changes_and_deletes_tasks() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "Old", "section": "S", "description": "d" })).await;
    server.add(json!({ "id": "b", "title": "B", "depends_on": ["a"] })).await;
    let change =
        json!({ "title": "New", "section": "", "priority": 1, "payload": [1], "as": "boss" });
    let changed = server.patch("/v1/tasks/a", change).await.good();
    let task = &changed["task"];
    assert_eq!((&task["title"], &task["section"]), (&json!("New"), &Value::Null));
    assert_eq!((&task["priority"], &task["payload"]), (&json!(1), &json!([1])));
    assert_eq!(task["description"], "d", "what is not named stays");
    server.patch("/v1/tasks/a", json!({})).await.refused(400, "USAGE");
    server.patch("/v1/tasks/a", json!({ "title": null })).await.refused(400, "USAGE");
    server.patch("/v1/tasks/a", json!({ "title": " " })).await.refused(400, "USAGE");
    server.patch("/v1/tasks/none", json!({ "priority": 2 })).await.refused(404, "TASK_NOT_FOUND");
    server.delete("/v1/tasks/a").await.refused(409, "TASK_STATUS");
    assert_eq!(server.delete("/v1/tasks/b").await.good()["task"]["id"], "b");
    server.delete("/v1/tasks/b").await.refused(404, "TASK_NOT_FOUND");
    server.claim(json!({ "task": "a" })).await;
    server.delete("/v1/tasks/a").await.refused(409, "TASK_LOCKED");
}

#[tokio::test]
async fn tasks_are_moved_by_hand_where_that_can_be() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A" })).await;
    let act = async |verb: &str| {
        let path = format!("/v1/tasks/a/{verb}");
        server.send(request(Method::POST, &path, None), caller(Role::Admin)).await
    };
    assert_eq!(act("cancel").await.good()["task"]["status"], "cancelled");
    act("cancel").await.refused(409, "TASK_STATUS");
    assert_eq!(act("retry").await.good()["task"]["status"], "pending");
    assert_eq!(act("skip").await.good()["task"]["status"], "skipped");
    act("approve").await.refused(409, "TASK_STATUS");
    let events = server.get("/v1/events").await.good();
    let by: Vec<&Value> =
        events["events"].as_array().unwrap().iter().map(|one| &one["holder"]).collect();
    assert_eq!(by.last().unwrap(), &&json!("token the-admin"));
    for verb in ["cancel", "retry", "skip", "approve"] {
        let path = format!("/v1/tasks/none/{verb}");
        server.post(&path, json!({ "as": "boss" })).await.refused(404, "TASK_NOT_FOUND");
    }
    let reject = server.post("/v1/tasks/none/reject", json!({ "feedback": "x" }));
    reject.await.refused(404, "TASK_NOT_FOUND");
    server.post("/v1/tasks/a/reject", json!({})).await.refused(400, "USAGE");
}

#[tokio::test]
async fn notes_are_added_and_given_to_the_next_worker() {
    let server = Server::new().await;
    server.add(json!({ "id": "t", "title": "T" })).await;
    let note = json!({ "text": "two\nlines", "as": "carol" });
    let answer = server.post("/v1/tasks/t/notes", note).await;
    assert_eq!(answer.status, 201);
    let noted = answer.good()["task"]["notes"].clone();
    assert_eq!((&noted[0]["by"], &noted[0]["text"]), (&json!("carol"), &json!("two\nlines")));
    for (body, code) in [
        (json!({ "text": " \n" }), "USAGE"),
        (json!({ "text": "" }), "USAGE"),
        (json!({}), "USAGE"),
        (json!({ "text": "x".repeat(8193) }), "USAGE"),
        (json!({ "text": "é".repeat(5000) }), "TASK_REFUSED"),
    ] {
        server.post("/v1/tasks/t/notes", body).await.refused(400, code);
    }
    let text = json!({ "text": "x" });
    server.post("/v1/tasks/nothing/notes", text).await.refused(404, "TASK_NOT_FOUND");

    let claim = server.post("/v1/tasks/claim", json!({ "as": "a" })).await.good();
    let (notes, tries) = (&claim["tasks"][0]["notes"], &claim["tasks"][0]["tries"]);
    assert_eq!((notes, tries), (&noted, &Value::Null), "its own try is no earlier one");
    let fail = json!({ "as": "a", "reason": "no disk" });
    server.post("/v1/tasks/t/fail", fail).await.good();
    let shown = server.get("/v1/tasks/t").await.good()["task"].clone();
    assert_eq!(shown["notes"], noted);
    let tried = &shown["tries"][0];
    assert_eq!((&tried["by"], &tried["number"]), (&json!("a"), &json!(1)));
    assert_eq!((&tried["outcome"], &tried["error"]), (&json!("failed"), &json!("no disk")));
    let listed = server.get("/v1/tasks").await.good()["tasks"][0].clone();
    assert!(listed.get("notes").is_none() && listed.get("tries").is_none(), "{listed}");
    let events = server.get("/v1/events").await.good();
    let is_note = |event: &&Value| event["event"] == "noted";
    let told = events["events"].as_array().unwrap().iter().find(is_note).unwrap();
    assert_eq!((&told["holder"], &told["text"]), (&json!("carol"), &json!("two\nlines")));
}

/// Counts how often a store is asked.
struct Counting {
    store: Arc<dyn Store>,
    queries: Arc<AtomicUsize>,
    changes: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Store for Counting {
    fn info(&self) -> StoreInfo {
        self.store.info()
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.store.transact(transaction).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        self.store.renew(renewals).await
    }

    async fn query(&self, query: Query) -> Result<StoreAnswer, StoreError> {
        self.queries.fetch_add(1, Ordering::SeqCst);
        self.store.query(query).await
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        self.store.wait(signal, patience).await
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.store.maintain(work).await
    }
}

/// The number of questions to the store does not depend on how many tasks are added. Now and then a change is
/// followed by a turn that removes old history, which asks a few questions of its own.
#[tokio::test]
async fn a_thousand_tasks_are_added_by_a_few_looks() {
    let (queries, changes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (queries.clone(), changes.clone());
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
    let builder = Client::builder()
        .wrap(move |store| Arc::new(Counting { store, queries: counted.0, changes: counted.1 }));
    let server = Server::over(builder.open(&url).await.unwrap(), folder);
    for count in [1, 1000] {
        let tasks: Vec<Value> =
            (0..count).map(|number| json!({ "title": number.to_string() })).collect();
        let before = (queries.load(Ordering::SeqCst), changes.load(Ordering::SeqCst));
        let answer = server.post("/v1/tasks", json!({ "tasks": tasks })).await.good();
        assert_eq!(answer["tasks"].as_array().unwrap().len(), count);
        let queries = queries.load(Ordering::SeqCst) - before.0;
        let changes = changes.load(Ordering::SeqCst) - before.1;
        assert!(
            queries + changes < 10,
            "{queries} queries and {changes} changes for {count} tasks"
        );
    }
}
