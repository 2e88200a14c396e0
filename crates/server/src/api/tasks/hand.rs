//! Manual changes of a task, by callers that are not its worker.

use super::add::globs;
use crate::api::input::{Body, ByBody, MaybeBody, usage};
use crate::api::values::{
    Attempts, Description, Glob, Label, Moment, NoSectionName, Position, Priority, Reason,
    TaskName, Title, given, given_list,
};
use crate::api::{Api, schema};
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use serde_json::Value;
use tenure::Client;
use tenure::core::TaskId;
use tenure::core::rules::tasks::{ManualChange, TaskChange};
use tenure_frontend::view;
use utoipa::ToSchema;

async fn edit(
    client: &Client,
    id: &TaskId,
    verb: ManualChange,
) -> Result<Json<schema::OneTask>, Problem> {
    let task = client.tasks().edit(id, verb).await?;
    Ok(Json(schema::OneTask { task: super::shown(client, &task).await? }))
}

/// Declares a verb that needs no claim.
macro_rules! by_hand {
    ($(#[$about:meta])* $name:ident, $id:literal, $path:literal, $verb:expr) => {
        $(#[$about])*
        #[utoipa::path(
            post, path = $path, operation_id = $id, tag = "tasks",
            params(("id" = inline(TaskName), Path, description = "Which task")),
            request_body = Option<ByBody>,
            responses(
                (status = 200, description = "The task as it is now", body = schema::OneTask),
                schema::TaskRefused,
            ),
        )]
        pub(super) async fn $name(
            api: Api,
            caller: Caller,
            TaskName(id): TaskName,
            MaybeBody(asked): MaybeBody<ByBody>,
        ) -> Result<Json<schema::OneTask>, Problem> {
            edit(&api.actor(&caller, asked.label.as_ref())?, &id, $verb).await
        }
    };
}

by_hand! {
    /// Says that a task in review is fine.
    approve, "approve_task", "/v1/tasks/{id}/approve", ManualChange::Approve
}

by_hand! {
    /// Says that a task is no longer wanted. A worker that has it loses it. For `admin`.
    cancel, "cancel_task", "/v1/tasks/{id}/cancel", ManualChange::Cancel
}

by_hand! {
    /// Passes a task over: those that wait for it may go on. For `admin`.
    skip, "skip_task", "/v1/tasks/{id}/skip", ManualChange::Skip
}

by_hand! {
    /// Has a task done after all, with its attempts counted anew. For `admin`.
    retry, "retry_task", "/v1/tasks/{id}/retry", ManualChange::Retry
}

/// What is to be changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectBody {
    /// In the reviewer's words.
    feedback: Reason,
    /// Who looked at it, for the audit log.
    #[serde(rename = "as")]
    label: Option<Label>,
}

/// Says that a task in review is to be done again.
#[utoipa::path(
    post, path = "/v1/tasks/{id}/reject", operation_id = "reject_task", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    request_body = RejectBody,
    responses(
        (status = 200, description = "The task as it is now", body = schema::OneTask),
        schema::TaskRefused,
    ),
)]
pub(super) async fn reject(
    api: Api,
    caller: Caller,
    TaskName(id): TaskName,
    Body(asked): Body<RejectBody>,
) -> Result<Json<schema::OneTask>, Problem> {
    let client = api.actor(&caller, asked.label.as_ref())?;
    edit(&client, &id, ManualChange::Reject { feedback: asked.feedback.0 }).await
}

/// New values of a task's fields; what is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateBody {
    /// In a line.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    title: Option<Title>,
    /// In full.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    description: Option<Description>,
    /// Which section it belongs to; empty for none.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    section: Option<NoSectionName>,
    /// Lower goes first.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    priority: Option<Priority>,
    /// Among equals of priority, lower goes first.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    position: Option<Position>,
    /// Anything for the worker; null too.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Value)]
    payload: Option<Value>,
    /// How often it may be tried in all.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    max_attempts: Option<Attempts>,
    /// Not to be taken before this time.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    not_before: Option<Moment>,
    /// Globs of the files that it touches, relative to the repository root, instead of those it had.
    #[serde(default, deserialize_with = "given_list::<_, _, 0, 1000>")]
    #[schema(nullable = false, max_items = 1000)]
    files: Option<Vec<Glob>>,
    /// Who changes it, for the audit log.
    #[serde(rename = "as")]
    label: Option<Label>,
}

/// Changes a task's fields. For `admin`.
#[utoipa::path(
    patch, path = "/v1/tasks/{id}", operation_id = "update_task", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    request_body = UpdateBody,
    responses(
        (status = 200, description = "The task as it is now", body = schema::OneTask),
        schema::TaskRefused,
    ),
)]
pub(super) async fn update(
    api: Api,
    caller: Caller,
    TaskName(id): TaskName,
    Body(asked): Body<UpdateBody>,
) -> Result<Json<schema::OneTask>, Problem> {
    let client = api.actor(&caller, asked.label.as_ref())?;
    let change = TaskChange {
        title: asked.title.map(String::from),
        description: asked.description.map(String::from),
        section: asked.section.map(String::from),
        priority: asked.priority.map(Priority::byte),
        position: asked.position.map(|position| position.0),
        payload: asked.payload.map(|payload| payload.to_string()),
        max_attempts: asked.max_attempts.map(|max| max.0 as u32),
        not_before: asked.not_before.map(|moment| moment.0),
        files: asked.files.as_deref().map(globs),
    };
    if change == TaskChange::default() {
        return Err(usage("nothing to change"));
    }
    edit(&client, &id, ManualChange::Update(Box::new(change))).await
}

/// Deletes a task that has no worker and that no task waits for. For `admin`.
#[utoipa::path(
    delete, path = "/v1/tasks/{id}", operation_id = "delete_task", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    responses(
        (status = 200, description = "The task as it was", body = schema::OneTask),
        (status = 404, description = "TASK_NOT_FOUND"),
        (status = 409, description = "TASK_LOCKED or TASK_STATUS: a worker has it or a task depends on it"),
    ),
)]
pub(super) async fn delete(
    api: Api,
    caller: Caller,
    TaskName(id): TaskName,
) -> Result<Json<schema::OneTask>, Problem> {
    let task = api.actor(&caller, None)?.tasks().delete(&id).await?;
    Ok(Json(schema::OneTask { task: view::Task::new(&task, None) }))
}
