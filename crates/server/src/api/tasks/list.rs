//! Looking at tasks.

use super::pages::{self, Conditions};
use super::{get, shown};
use crate::api::input::Params;
use crate::api::values::{
    Count, Label, Moment, RevisionNumber, Search, SectionName, StatusWord, TaskLabel, TaskName,
};
use crate::api::{Api, schema};
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use tenure::core::Status;
use tenure::store::TaskFilter;
use tenure_frontend::view;
use utoipa::{IntoParams, ToSchema};

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
    /// Only with this text in id, title, description, labels or the label of its worker.
    #[param(inline)]
    search: Option<Search>,
    /// Only that this worker has or finished.
    #[param(inline)]
    worker: Option<Label>,
    /// Only without a section.
    no_section: Option<bool>,
    /// Only added at this time or later.
    #[param(inline)]
    added_after: Option<Moment>,
    /// Only added before this time.
    #[param(inline)]
    added_before: Option<Moment>,
    /// `oldest` (the default) or `newest`: which are listed first.
    #[param(inline)]
    order: Option<Order>,
    /// Go on after the page that gave this as `next_after_age`; oldest first.
    #[param(inline)]
    after_age: Option<RevisionNumber>,
    /// Go on after the page that gave this as `next_before_age`; newest first.
    #[param(inline)]
    before_age: Option<RevisionNumber>,
    /// At most so many; 200 unless told otherwise. With conditions, and newest first, there may be fewer,
    /// and still more to come.
    #[param(inline)]
    limit: Option<Count>,
}

/// Which tasks are listed first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// In the order in which they were added.
    #[default]
    Oldest,
    /// The other way round.
    Newest,
}

/// Tasks, a page at a time.
#[utoipa::path(
    get, path = "/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(ListParams),
    responses((status = 200, description = "A page of tasks", body = schema::Tasks)),
)]
pub(super) async fn tasks(
    api: Api,
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
    let conditions = Conditions {
        search: search.filter(|search| !search.is_empty()),
        worker: asked.worker.map(String::from),
        no_section: asked.no_section.unwrap_or_default(),
        added_after: asked.added_after.map(|time| time.0),
        added_before: asked.added_before.map(|time| time.0),
    };
    let order = asked.order.unwrap_or_default();
    let page = match order {
        Order::Oldest => pages::oldest(client, filter, &conditions, limit).await?,
        Order::Newest => {
            let before = asked.before_age.map(|age| age.0);
            pages::newest(client, &filter, &conditions, before, limit).await?
        }
    };
    let seen = client.tasks().claims_of(&page.tasks).await?;
    let claims = view::Claims::of(&seen, client.witness());
    let tasks = page.tasks.iter().map(|task| claims.task(task)).collect();
    let next = |of: Order| page.next.filter(|_| order == of);
    Ok(Json(schema::Tasks {
        tasks,
        next_after_age: next(Order::Oldest),
        next_before_age: next(Order::Newest),
    }))
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
    api: Api,
    TaskName(id): TaskName,
) -> Result<Json<schema::ShownTask>, Problem> {
    let task = get(api.client(), &id).await?;
    let waits_for = match task.status {
        Status::Pending => api.client().tasks().why(&id).await?,
        _ => vec![],
    };
    let attempts = api.client().tasks().attempts_with_output(&id).await?;
    let task = shown(api.client(), &task).await?.with_outputs(&attempts);
    Ok(Json(schema::ShownTask { task, waits_for }))
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
pub(super) async fn why(api: Api, TaskName(id): TaskName) -> Result<Json<schema::Why>, Problem> {
    let why = api.client().tasks().why(&id).await?;
    Ok(Json(schema::Why { id: id.to_string(), ready: why.is_empty(), why }))
}

/// How many tasks there are of each section and status.
#[utoipa::path(
    get, path = "/v1/tallies", operation_id = "count_tasks", tag = "tasks",
    responses((status = 200, description = "The counts", body = schema::Tallies)),
)]
pub(super) async fn tallies(api: Api) -> Result<Json<schema::Tallies>, Problem> {
    let tallies = api.client().tasks().tallies().await?;
    Ok(Json(schema::Tallies { tallies: tallies.iter().map(view::Tally::from).collect() }))
}
