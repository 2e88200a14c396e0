//! Notes about a task, for its next worker.

use crate::api::input::Body;
use crate::api::values::{Label, NoteText, TaskName};
use crate::api::{Api, schema};
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

/// A note to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteBody {
    /// The text; it may have several lines.
    text: NoteText,
    /// Who writes it.
    #[serde(rename = "as")]
    label: Option<Label>,
}

/// Adds a note to a task. Every worker that claims the task gets it, and so does `GET /v1/tasks/{id}`.
/// A task keeps its newest 200 notes, and 64 KiB of text in all.
#[utoipa::path(
    post, path = "/v1/tasks/{id}/notes", operation_id = "add_note", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    request_body = NoteBody,
    responses(
        (status = 201, description = "The task with its notes", body = schema::OneTask),
        (status = 404, description = "TASK_NOT_FOUND"),
    ),
)]
pub(super) async fn add_note(
    api: Api,
    caller: Caller,
    TaskName(id): TaskName,
    Body(asked): Body<NoteBody>,
) -> Result<(StatusCode, Json<schema::OneTask>), Problem> {
    let client = api.actor(&caller, asked.label.as_ref())?;
    let task = client.tasks().add_note(&id, &asked.text.0).await?;
    let task = super::shown(&client, &task).await?;
    Ok((StatusCode::CREATED, Json(schema::OneTask { task })))
}
