//! The routes of the page, and as much of the rest as it uses.

use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;
use tenure::core::rules::tasks::{HandVerb, SectionChange};
use tenure::core::{Revision, Token};
use tenure::store::TaskFilter;
use tenure::{Client, view};
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tenure_server::problem::Problem;
use tenure_server::{api, dashboard};

pub fn router(client: Client) -> Router {
    let app = App::new(client.clone());
    let rest = Router::new()
        .route("/v1/tasks", get(tasks))
        .route("/v1/events", get(events))
        .route("/v1/locks/break", post(break_hold))
        .route("/v1/tasks/{id}/{verb}", post(edit).get(why))
        .route("/v1/sections/{name}/{verb}", post(section))
        .with_state(client);
    dashboard::router().merge(api::live::router(app)).merge(rest)
}

type Answer = Result<Json<Value>, Problem>;

async fn tasks(
    State(client): State<Client>,
    Query(query): Query<HashMap<String, String>>,
) -> Answer {
    let limit: u32 = query["limit"].parse().unwrap();
    let filter = TaskFilter {
        status: Some(query["status"].parse().unwrap()),
        after_age: query["after_age"].parse().unwrap(),
        limit,
        ..TaskFilter::default()
    };
    let found = client.tasks().list(&filter).await?;
    let next = (found.len() as u32 == limit).then(|| found.last().map(|task| task.age));
    let tasks: Vec<Value> = found.iter().map(|task| view::task_json(task, None)).collect();
    Ok(Json(json!({ "tasks": tasks, "next_after_age": next })))
}

async fn events(
    State(client): State<Client>,
    Query(query): Query<HashMap<String, String>>,
) -> Answer {
    let after = Revision(query["after"].parse().unwrap());
    let events = client.events(after, query["limit"].parse().unwrap()).await?;
    let events: Vec<Value> = events.iter().map(view::event_json).collect();
    Ok(Json(json!({ "events": events })))
}

async fn break_hold(
    State(client): State<Client>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<Value>,
) -> Answer {
    caller.require(Role::Admin)?;
    let client = client.named(&caller.actor(None))?;
    let token = Token(asked["token"].as_u64().unwrap());
    let reason = asked["reason"].as_str().unwrap();
    client.break_hold(asked["resource"].as_str().unwrap(), token, reason).await?;
    Ok(Json(json!({})))
}

async fn edit(
    State(client): State<Client>,
    Extension(caller): Extension<Caller>,
    Path((id, verb)): Path<(String, String)>,
) -> Answer {
    caller.require(Role::Admin)?;
    let verb = if verb == "retry" { HandVerb::Retry } else { HandVerb::Cancel };
    client.tasks().edit(&id.parse().unwrap(), verb).await?;
    Ok(Json(json!({})))
}

async fn why(State(client): State<Client>, Path((id, _)): Path<(String, String)>) -> Answer {
    Ok(Json(json!({ "why": client.tasks().why(&id.parse().unwrap()).await? })))
}

async fn section(
    State(client): State<Client>,
    Extension(caller): Extension<Caller>,
    Path((name, verb)): Path<(String, String)>,
) -> Answer {
    caller.require(Role::Admin)?;
    let change = SectionChange { paused: Some(verb == "pause"), ..SectionChange::default() };
    client.tasks().change_sections(&[(name, change)]).await?;
    Ok(Json(json!({})))
}
