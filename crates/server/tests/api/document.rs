//! The description of the API says what the API answers.

use crate::kit::Server;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tenure_server::api::schema;

#[tokio::test]
async fn the_document_is_served() {
    let server = Server::new().await;
    let served = server.get("/v1/openapi.json").await.good();
    assert_eq!(served["openapi"], "3.1.0");
    assert_eq!(served, serde_json::to_value(tenure_server::api::openapi()).unwrap());
    for (path, item) in served["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            for status in ["400", "401", "403", "429", "503", "504"] {
                let problem = &responses[status]["content"]["application/problem+json"]["schema"];
                assert_eq!(problem["$ref"], "#/components/schemas/Problem", "{method} {path}");
            }
        }
    }
}

/// Every reference leads somewhere.
#[tokio::test]
async fn the_document_is_whole() {
    let document = serde_json::to_value(tenure_server::api::openapi()).unwrap();
    let text = document.to_string();
    let named: BTreeSet<&str> = text
        .split("\"#/components/schemas/")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let missing: Vec<&&str> = named.iter().filter(|name| !schemas.contains_key(**name)).collect();
    assert!(missing.is_empty() && named.len() > 30, "{missing:?}");
    let mut operations = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(operations.insert(id.to_owned()), "{id} twice");
        }
    }
}

/// Fields of tasks that are documented and may be missing: a task without a history has none of them,
/// and lists leave them out.
const HISTORY: [&str; 2] = ["notes", "tries"];

/// The fields of an answer are exactly those that its form has, as documented.
#[track_caller]
fn agree<T: DeserializeOwned>(name: &str, value: &Value, extra: &[&str]) {
    serde_json::from_value::<T>(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    let document = serde_json::to_value(tenure_server::api::openapi()).unwrap();
    let schema = &document["components"]["schemas"][name];
    let described: BTreeSet<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let required: BTreeSet<&str> =
        schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let given: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let given: BTreeSet<&str> = given.into_iter().filter(|field| !extra.contains(field)).collect();
    let may_be_missing = |field: &&str| name == "Task" && HISTORY.contains(field);
    let described: BTreeSet<&str> = described
        .into_iter()
        .filter(|field| given.contains(field) || !may_be_missing(field))
        .collect();
    assert_eq!(given, described, "{name}");
    let always: BTreeSet<&str> = given.into_iter().filter(|field| !may_be_missing(field)).collect();
    assert_eq!(always, required, "{name}");
}

#[tokio::test]
async fn what_is_answered_is_what_is_described() {
    let server = Server::new().await;
    let acquired = server.acquire("db", json!({ "as": "alice" })).await;
    agree::<schema::Acquired>("Acquired", &acquired, &[]);
    let grant = "01234567-89ab-cdef-0123-456789abcdef";
    let wait = json!({ "resources": ["db"], "wait_ms": 1, "grant": grant });
    server.post("/v1/locks/acquire", wait).await.refused(409, "LOCKED");
    let locks = server.get("/v1/locks").await.good();
    agree::<schema::Locks>("Locks", &locks, &[]);
    agree::<schema::Hold>("Hold", &locks["locks"][0], &["waiters"]);
    agree::<schema::Waiter>("Waiter", &locks["locks"][0]["waiters"][0], &[]);
    server.add(json!({ "id": "a", "title": "A", "section": "S" })).await;
    let claimed = server.claim(json!({ "as": "alice" })).await;
    agree::<schema::Task>("Task", &claimed, &["grant", "reason"]);
    let noted = server.post("/v1/tasks/a/notes", json!({ "text": "a note" })).await.good();
    let fields = noted["task"].as_object().unwrap();
    assert!(HISTORY.iter().all(|field| fields.contains_key(*field)), "{noted}");
    agree::<schema::Task>("Task", &noted["task"], &[]);
    let events = server.get("/v1/events").await.good();
    agree::<schema::Event>("Event", &events["events"][0], &["operation", "actor"]);
    let workers = server.get("/v1/workers").await.good();
    agree::<schema::Worker>("Worker", &workers["workers"][0], &[]);
    let sections = server.get("/v1/sections").await.good();
    agree::<schema::Section>("Section", &sections["sections"][0], &["open", "runners"]);
    serde_json::from_value::<schema::Sections>(sections).unwrap();
}
