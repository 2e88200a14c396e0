//! The read-only tools: status, tasks and results.

use super::answer::{Refused, terse};
use super::bounded_lists;
use super::call::Call;
use super::task_json::task_json;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tenure::core::rules::tasks::JudgedClaims;
use tenure::core::{Overview, Scope, Status, Task, TaskScope};
use tenure::store::TaskFilter;
use tenure::{Client, Error};
use tenure_frontend::view;

/// The default number of tasks.
const LIMIT_DEFAULT: u32 = 50;

/// The most tasks.
const LIMIT_MAX: u32 = 200;

/// The most resources of one holder in a status.
const HELD_MAX: usize = 20;

/// How many revisions are searched first for results.
const LOOK_BACK: u64 = 1000;

/// The most holders in a status.
const HOLDERS_MAX: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    /// Only this task, in full. For agents that know no `get_task`.
    #[schemars(skip)]
    task_id: Option<String>,
    /// pending, in_progress, review, completed, failed, cancelled, blocked or skipped
    status_filter: Option<String>,
    section: Option<String>,
    /// Default 50, at most 200
    limit: Option<u32>,
    /// next_after of the previous result
    after: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResultsArguments {
    /// Default: the most recently finished. A single one is shown in full
    task_ids: Option<Vec<String>>,
    /// Default 50
    limit: Option<u32>,
}

pub(super) async fn heartbeat(call: &Call, _: NoArguments) -> Result<Value, Refused> {
    let holding = call.session.holding().await?;
    Ok(json!({ "success": true, "agent": call.client.holder().label, "holding": holding }))
}

pub(super) async fn get_status(call: &Call, _: NoArguments) -> Result<Value, Refused> {
    let mut status = status(&call.client).await?;
    status["you"] =
        json!({ "agent": call.client.holder().label, "holding": call.session.holding().await? });
    Ok(status)
}

/// The number of tasks of each status, and who holds what.
pub(super) async fn status(client: &Client) -> Result<Value, Error> {
    let mut tasks = Map::new();
    let mut total = 0;
    for tally in client.tasks().tallies().await? {
        let count = tasks.get(tally.status.word()).and_then(Value::as_u64).unwrap_or(0);
        tasks.insert(tally.status.word().to_owned(), json!(count + tally.count));
        total += tally.count;
    }
    let seen = client.look_at_workers().await?;
    let overview = Overview::of(&seen, client.witness());
    let mut holders: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for seen in overview.held() {
        let label = seen.hold.holder.label.as_str();
        holders.entry(label).or_default().push(seen.hold.want.resource.to_string());
    }
    let counts = overview.counts();
    let in_progress = client.tasks().in_progress().await?;
    let lost = JudgedClaims::of(&in_progress, client.witness()).lost().len();
    let holders: Vec<Value> = holders
        .into_iter()
        .take(HOLDERS_MAX)
        .map(|(agent, mut resources)| {
            let count = resources.len();
            resources.truncate(HELD_MAX);
            let mut value = json!({ "agent": agent, "holds": resources });
            if count > HELD_MAX {
                value["holds_in_all"] = json!(count);
            }
            value
        })
        .collect();
    let mut status = json!({
        "success": true,
        "tasks": tasks,
        "total": total,
        "agents": counts.workers,
        "holders": holders,
        "held": counts.held,
        "waiting": counts.waiting,
    });
    if lost > 0 {
        status["lost_claims"] = json!(lost);
    }
    Ok(status)
}

pub(super) async fn get_all_tasks(call: &Call, arguments: ListArguments) -> Result<Value, Refused> {
    if let Some(text) = arguments.task_id.filter(|text| !text.is_empty()) {
        let tasks = [call.client.tasks().find(&text).await?];
        return Ok(json!({ "success": true, "tasks": in_full(&call.client, &tasks).await? }));
    }
    let status = match arguments.status_filter.as_deref() {
        None | Some("") => None,
        Some(word) => {
            Some(word.parse::<Status>().map_err(|error| Refused::usage(error.to_string()))?)
        }
    };
    let filter = TaskFilter {
        status,
        section: arguments.section,
        after_age: arguments.after.unwrap_or(0),
        limit: arguments.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX),
        without_history: true,
        ..TaskFilter::default()
    };
    Ok(list(&call.client, filter).await?)
}

/// Tasks, oldest first, and where to continue.
pub(super) async fn list(client: &Client, filter: TaskFilter) -> Result<Value, Error> {
    let tasks = client.tasks().list(&filter).await?;
    let shown = bounded_lists::entries(in_full(client, &tasks).await?);
    let more = tasks.len() as u64 >= u64::from(filter.limit) || shown.len() < tasks.len();
    let last = shown.len().checked_sub(1).and_then(|last| tasks.get(last)).filter(|_| more);
    let mut value = json!({ "success": true });
    if let Some(task) = last {
        value["next_after"] = json!(task.age);
    }
    if bounded_lists::is_any_in_part(&shown) {
        value["shown_in_part_means"] = json!("get_task shows a task in full.");
    }
    value["tasks"] = json!(shown);
    Ok(value)
}

/// Tasks as JSON, each with why its claim no longer counts, if so.
async fn in_full(client: &Client, tasks: &[Task]) -> Result<Vec<Value>, Error> {
    let seen = client.tasks().claims_of(tasks).await?;
    let claims = view::Claims::of(&seen, client.witness());
    let shown = tasks.iter().map(|task| {
        let stale_reason = claims.stale_reason(task);
        task_json(client, view::Task { stale_reason, ..view::Task::new(task, None) })
    });
    Ok(shown.collect())
}

/// As many tasks as fit, open ones first.
pub(super) async fn overview(client: &Client, limit: u32) -> Result<Value, Error> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut total = 0;
    for tally in client.tasks().tallies().await? {
        total += tally.count;
    }
    let order = [
        Status::InProgress,
        Status::Review,
        Status::Blocked,
        Status::Failed,
        Status::Pending,
        Status::Completed,
        Status::Skipped,
        Status::Cancelled,
    ];
    for status in order {
        let room = limit.saturating_sub(tasks.len() as u32);
        if room > 0 {
            let filter = TaskFilter {
                status: Some(status),
                limit: room,
                without_history: true,
                ..TaskFilter::default()
            };
            tasks.extend(client.tasks().list(&filter).await?);
        }
    }
    let shown = bounded_lists::entries(in_full(client, &tasks).await?);
    Ok(json!({ "total": total, "tasks": shown }))
}

pub(super) async fn get_results(
    call: &Call,
    arguments: ResultsArguments,
) -> Result<Value, Refused> {
    let limit = arguments.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX) as usize;
    let is_one = arguments.task_ids.as_ref().is_some_and(|ids| ids.len() == 1);
    let mut tasks = Vec::new();
    match arguments.task_ids {
        Some(ids) => {
            for id in ids.iter().take(limit) {
                tasks.push(call.client.tasks().find(id).await?);
            }
        }
        None => {
            tasks = newest_results(&call.client, limit).await?;
        }
    }
    let results = tasks.iter().map(result);
    if is_one {
        return Ok(json!({ "success": true, "results": results.collect::<Vec<_>>() }));
    }
    let results = bounded_lists::entries(results);
    let mut value = json!({ "success": true });
    if bounded_lists::is_any_in_part(&results) || results.len() < tasks.len() {
        let (shown, all) = (results.len(), tasks.len());
        value["message"] = json!(format!(
            "{shown} of {all} shown; get_results with one task_id shows it in full."
        ));
    }
    value["results"] = json!(results);
    Ok(value)
}

/// The most recently ended tasks, newest first. It searches backwards in steps, because a store can
/// have a million of them.
async fn newest_results(client: &Client, limit: usize) -> Result<Vec<Task>, Error> {
    // Ages are below the number that the next task would take.
    let scope = Scope::Tasks(TaskScope { adds: true, ..TaskScope::default() });
    let newest = client.backend().read(&scope).await?.next;
    let mut back = LOOK_BACK;
    loop {
        let after_age = newest.saturating_sub(back);
        let mut tasks = Vec::new();
        for status in [Status::Completed, Status::Failed, Status::Review] {
            let filter = TaskFilter {
                status: Some(status),
                after_age,
                without_history: true,
                ..TaskFilter::default()
            };
            tasks.extend(client.tasks().list(&filter).await?);
        }
        if tasks.len() >= limit || after_age == 0 {
            tasks.sort_by_key(|task| Reverse((task.finished_at.map(|at| at.0), task.age)));
            tasks.truncate(limit);
            return Ok(tasks);
        }
        back = back.saturating_mul(8);
    }
}

fn result(task: &Task) -> Value {
    let view::Task { id, title, status, result, error, feedback, finished_at, finished_by, .. } =
        view::Task::new(task, None);
    terse(json!({
        "task_id": id,
        "title": title,
        "status": status,
        "result": result,
        "error": error,
        "feedback": feedback,
        "finished_at": finished_at,
        "finished_by": finished_by,
    }))
}
