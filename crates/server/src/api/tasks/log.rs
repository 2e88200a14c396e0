//! What the commands of a task printed.

use super::get;
use crate::api::Api;
use crate::api::input::Params;
use crate::api::values::{Attempts, TaskName};
use crate::problem::Problem;
use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use tenure_frontend::view;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LogParams {
    /// Which attempt; the newest unless told otherwise.
    #[param(inline)]
    attempt: Option<Attempts>,
}

/// The last lines that the command of an attempt printed, while it runs too.
#[utoipa::path(
    get, path = "/v1/tasks/{id}/log", operation_id = "show_task_log", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task"), LogParams),
    responses(
        (status = 200, description = "The output", body = view::TaskLog),
        (status = 404, description = "TASK_NOT_FOUND, ATTEMPT_NOT_FOUND"),
    ),
)]
pub(super) async fn log(
    api: Api,
    TaskName(id): TaskName,
    Params(asked): Params<LogParams>,
) -> Result<Json<view::TaskLog>, Problem> {
    let task = get(api.client(), &id).await?;
    let attempt = asked.attempt.map(|attempt| u32::try_from(attempt.0).unwrap_or(u32::MAX));
    match view::TaskLog::of(api.client(), &task, attempt).await? {
        Some(log) => Ok(Json(log)),
        None => {
            let message = "the task has no such attempt, or it is no longer remembered";
            Err(Problem::new(StatusCode::NOT_FOUND, "ATTEMPT_NOT_FOUND", message))
        }
    }
}
