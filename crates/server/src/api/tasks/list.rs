//! Looking at tasks.

use super::{get, shown};
use crate::api::input::Params;
use crate::api::values::{
    Count, RevisionNumber, Search, SectionName, StatusWord, TaskLabel, TaskName,
};
use crate::api::{Api, schema};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use tenure::core::{Status, Task};
use tenure::store::TaskFilter;
use tenure::{Client, Error};
use tenure_frontend::view;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only with this status.
    #[param(inline)]
    status: Option<StatusWord>,
    /// Only of this section.
    #[param(inline)]
    section: Option<SectionName>,
    /// Only with this label.
    #[param(inline)]
    label: Option<TaskLabel>,
    /// Only with this text in id, title, description, labels or the name of whoever has it.
    #[param(inline)]
    search: Option<Search>,
    /// Go on after the page that gave this as `next_after_age`.
    #[param(inline)]
    after_age: Option<RevisionNumber>,
    /// At most so many; 200 unless told otherwise. A search may give fewer, and still more to come.
    #[param(inline)]
    limit: Option<Count>,
}

/// How many tasks a search reads at once, and how many for one answer.
const SEARCHED_AT_ONCE: u32 = 1000;
const SEARCHED_MAX: usize = 10_000;

/// Tasks, oldest first, a page at a time.
#[utoipa::path(
    get, path = "/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(ListParams),
    responses((status = 200, description = "A page of tasks", body = schema::Tasks)),
)]
pub(super) async fn tasks(
    State(api): State<Api>,
    Params(asked): Params<ListParams>,
) -> Result<Json<schema::Tasks>, Problem> {
    let client = api.client();
    let limit = asked.limit.map_or(200, |limit| limit.0) as usize;
    let filter = TaskFilter {
        status: asked.status.map(|status| status.0),
        section: asked.section.map(String::from),
        label: asked.label.map(String::from),
        after_age: asked.after_age.map_or(0, |age| age.0),
        without_history: true,
        ..TaskFilter::default()
    };
    let search = asked.search.map(|search| search.0.to_lowercase());
    let page = match search.filter(|search| !search.is_empty()) {
        None => whole_page(client, filter, limit).await?,
        Some(search) => found_page(client, filter, limit, &search).await?,
    };
    let seen = client.tasks().claims_of(&page.tasks).await?;
    let claims = view::Claims::of(&seen, client.witness());
    let tasks = page.tasks.iter().map(|task| claims.task(task)).collect();
    Ok(Json(schema::Tasks { tasks, next_after_age: page.next_after_age }))
}

struct Page {
    tasks: Vec<Task>,
    next_after_age: Option<u64>,
}

async fn whole_page(client: &Client, filter: TaskFilter, limit: usize) -> Result<Page, Error> {
    // One more shows whether there are more.
    let filter = TaskFilter { limit: limit as u32 + 1, ..filter };
    let mut tasks = client.tasks().list(&filter).await?;
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    let next_after_age = tasks.last().filter(|_| more).map(|task| task.age);
    Ok(Page { tasks, next_after_age })
}

async fn found_page(
    client: &Client,
    mut filter: TaskFilter,
    limit: usize,
    search: &str,
) -> Result<Page, Error> {
    let mut found = Vec::new();
    let mut searched = 0;
    filter.limit = SEARCHED_AT_ONCE;
    loop {
        let tasks = client.tasks().list(&filter).await?;
        let is_last = tasks.len() < SEARCHED_AT_ONCE as usize;
        for task in tasks {
            (filter.after_age, searched) = (task.age, searched + 1);
            if contains(&task, search) {
                found.push(task);
            }
            if found.len() == limit || searched == SEARCHED_MAX {
                return Ok(Page { tasks: found, next_after_age: Some(filter.after_age) });
            }
        }
        if is_last {
            return Ok(Page { tasks: found, next_after_age: None });
        }
    }
}

fn contains(task: &Task, search: &str) -> bool {
    let claimed_by = task.claim.as_ref().map(|claim| claim.by.as_str());
    let texts = [task.id.as_str(), &task.title].into_iter();
    let texts = texts.chain(task.description.as_deref()).chain(claimed_by);
    let texts = texts.chain(task.finished_by.as_deref());
    let mut texts = texts.chain(task.labels.iter().map(String::as_str));
    texts.any(|text| text.to_lowercase().contains(search))
}

/// One task, with its notes, its tries and what it waits for.
#[utoipa::path(
    get, path = "/v1/tasks/{id}", operation_id = "show_task", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    responses(
        (status = 200, description = "The task", body = schema::ShownTask),
        (status = 404, description = "TASK_NOT_FOUND"),
    ),
)]
pub(super) async fn show(
    State(api): State<Api>,
    TaskName(id): TaskName,
) -> Result<Json<schema::ShownTask>, Problem> {
    let task = get(api.client(), &id).await?;
    let waits_for = match task.status {
        Status::Pending => api.client().tasks().why(&id).await?,
        _ => vec![],
    };
    Ok(Json(schema::ShownTask { task: shown(api.client(), &task).await?, waits_for }))
}

/// Why a task cannot be claimed now.
#[utoipa::path(
    get, path = "/v1/tasks/{id}/why", operation_id = "explain_task", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    responses(
        (status = 200, description = "What it waits for", body = schema::Why),
        (status = 404, description = "TASK_NOT_FOUND"),
    ),
)]
pub(super) async fn why(
    State(api): State<Api>,
    TaskName(id): TaskName,
) -> Result<Json<schema::Why>, Problem> {
    let why = api.client().tasks().why(&id).await?;
    Ok(Json(schema::Why { id: id.to_string(), ready: why.is_empty(), why }))
}

/// How many tasks there are of each section and status.
#[utoipa::path(
    get, path = "/v1/tallies", operation_id = "count_tasks", tag = "tasks",
    responses((status = 200, description = "The counts", body = schema::Tallies)),
)]
pub(super) async fn tallies(State(api): State<Api>) -> Result<Json<schema::Tallies>, Problem> {
    let tallies = api.client().tasks().tallies().await?;
    Ok(Json(schema::Tallies { tallies: tallies.iter().map(view::Tally::from).collect() }))
}
