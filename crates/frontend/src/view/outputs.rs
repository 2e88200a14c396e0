//! The output of an attempt as JSON.

use super::time;
use serde::{Deserialize, Serialize};
use tenure::core;
use tenure::{Client, Error};
use utoipa::ToSchema;

/// The last lines that the command of an attempt printed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskLog {
    /// The id of the task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// The worker's label.
    pub by: String,
    /// Whether the attempt is under way: there may be more soon.
    pub running: bool,
    /// How the attempt ended; `null` while it is under way.
    #[schema(required)]
    pub outcome: Option<String>,
    /// When the lines were saved; `null` if nothing was printed, or if it is no longer kept.
    #[schema(required)]
    pub updated_at: Option<String>,
    /// Whether earlier lines were dropped.
    pub truncated: bool,
    /// The lines: without control characters but tab and newline.
    pub text: String,
}

impl TaskLog {
    /// The output of this attempt, or of the newest; none if the task has no such attempt.
    pub async fn of(
        client: &Client,
        task: &core::Task,
        attempt: Option<u32>,
    ) -> Result<Option<TaskLog>, Error> {
        let found = match attempt {
            Some(number) => task.tries.iter().find(|one| one.number == number),
            None => task.tries.last(),
        };
        let Some(found) = found else { return Ok(None) };
        let output = client.tasks().output(&task.id, found.number).await?;
        Ok(Some(TaskLog {
            task: task.id.to_string(),
            attempt: found.number,
            by: found.by.clone(),
            running: found.ended_at.is_none(),
            outcome: found.outcome.map(|outcome| outcome.word().to_owned()),
            updated_at: output.as_ref().map(|output| time(output.written_at)),
            truncated: output.as_ref().is_some_and(|output| output.is_truncated),
            text: output.map(|output| output.text).unwrap_or_default(),
        }))
    }
}
