//! Lists of tasks: conditions, both orders, page after page; and the tasks around a task.

use crate::kit::Server;
use serde_json::{Value, json};

fn ids(answer: &Value) -> Vec<String> {
    let tasks = answer["tasks"].as_array().unwrap().iter();
    tasks.map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

/// All pages of a list, in order.
async fn all(server: &Server, asked: &str, next: &str, from: &str) -> (Vec<String>, usize) {
    let (mut found, mut pages, mut after) = (Vec::new(), 0, String::new());
    loop {
        let page = server.get(&format!("/v1/tasks?{asked}{after}")).await.good();
        found.extend(ids(&page));
        pages += 1;
        match page[next].as_u64() {
            Some(age) => after = format!("&{from}={age}"),
            None => return (found, pages),
        }
    }
}

#[tokio::test]
async fn newest_first_is_oldest_first_reversed() {
    let server = Server::new().await;
    let tasks: Vec<Value> =
        (0..250).map(|n| json!({ "id": format!("t{n}"), "title": format!("Task {n}") })).collect();
    server.post("/v1/tasks", json!({ "tasks": tasks })).await.good();
    // Other changes leave gaps between the ages.
    for n in 0..5 {
        server.acquire(&format!("lock-{n}"), json!({})).await;
    }
    server.add(json!({ "id": "last", "title": "Last" })).await;
    let (mut oldest, pages) = all(&server, "limit=60", "next_after_age", "after_age").await;
    assert_eq!((oldest.len(), pages), (251, 5));
    let asked = "order=newest&limit=60";
    let (newest, pages) = all(&server, asked, "next_before_age", "before_age").await;
    assert_eq!((newest[0].as_str(), pages), ("last", 5));
    oldest.reverse();
    assert_eq!(newest, oldest);
    let some = server.get("/v1/tasks?order=newest&status=completed").await.good();
    assert!(ids(&some).is_empty() && some["next_before_age"].is_null(), "{some}");
    server.get("/v1/tasks?order=sideways").await.refused(400, "USAGE");
}

#[tokio::test]
async fn tasks_are_found_by_worker_age_and_missing_section() {
    let server = Server::new().await;
    server.add(json!({ "id": "one", "title": "One", "section": "api" })).await;
    server.add(json!({ "id": "two", "title": "Two" })).await;
    server.add(json!({ "id": "three", "title": "Three" })).await;
    server.claim(json!({ "task": "one", "as": "alice" })).await;
    server.claim(json!({ "task": "two", "as": "bob" })).await;
    let done = json!({ "as": "bob" });
    server.post("/v1/tasks/two/complete", done).await.good();
    for order in ["oldest", "newest"] {
        let list = async |asked: &str| {
            ids(&server.get(&format!("/v1/tasks?order={order}&{asked}")).await.good())
        };
        assert_eq!(list("worker=alice").await, ["one"]);
        assert_eq!(list("worker=bob").await, ["two"], "who finished it counts");
        assert!(list("worker=ali").await.is_empty());
        let mut without = list("no_section=true").await;
        without.sort();
        assert_eq!(without, ["three", "two"]);
        assert_eq!(list("no_section=false").await.len(), 3);
        assert_eq!(list("added_before=2020-01-01T00:00:00Z").await.len(), 0);
        assert_eq!(list("added_after=2020-01-01T00:00:00Z").await.len(), 3);
        assert_eq!(list("added_after=2020-01-01T00:00:00Z&worker=bob&search=TW").await, ["two"]);
    }
}

#[tokio::test]
async fn a_graph_has_the_tasks_before_and_after() {
    let server = Server::new().await;
    let add = async |id: &str, after: &[&str]| {
        server.add(json!({ "id": id, "title": id.to_uppercase(), "depends_on": after })).await
    };
    add("schema", &[]).await;
    add("store", &["schema"]).await;
    add("api", &["store", "schema"]).await;
    add("docs", &["api"]).await;
    add("alone", &[]).await;
    for n in 0..40 {
        add(&format!("check{n}"), &["docs"]).await;
    }
    let graph = server.get("/v1/tasks/api/graph").await.good();
    let shown = |id: &str| {
        let tasks = graph["tasks"].as_array().unwrap();
        tasks.iter().find(|task| task["id"] == id).cloned().unwrap_or_default()
    };
    assert_eq!(shown("api")["step"], 0);
    assert_eq!(shown("api")["depends_on"], json!(["schema", "store"]));
    assert_eq!((&shown("store")["step"], &shown("schema")["step"]), (&json!(-1), &json!(-1)));
    assert_eq!((&shown("docs")["step"], &shown("docs")["title"]), (&json!(1), &json!("DOCS")));
    assert_eq!(shown("check0")["step"], 2);
    assert!(shown("alone").is_null());
    assert_eq!((&graph["before_left_out"], &graph["after_left_out"]), (&json!(0), &json!(11)));
    let alone = server.get("/v1/tasks/alone/graph").await.good();
    assert_eq!(alone["tasks"].as_array().unwrap().len(), 1);
    server.get("/v1/tasks/none/graph").await.refused(404, "TASK_NOT_FOUND");
}
