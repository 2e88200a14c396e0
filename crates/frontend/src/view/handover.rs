//! Notes and tries of a task as JSON: what its next worker is told.

use super::time;
use serde::{Deserialize, Serialize};
use tenure::core;
use utoipa::ToSchema;

/// What a worker or a person wrote about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    /// The author's label.
    pub by: String,
    /// When it was written.
    pub at: String,
    /// The text; it may have several lines.
    pub text: String,
}

impl From<&core::Note> for Note {
    fn from(note: &core::Note) -> Note {
        Note { by: note.by.clone(), at: time(note.at), text: note.text.clone() }
    }
}

/// One claim of a task: who, when, where, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Try {
    /// Which try of the task this is, from 1.
    pub number: u32,
    /// The worker's label.
    pub by: String,
    /// The token of the claim.
    pub token: u64,
    /// When the task was claimed.
    pub claimed_at: String,
    /// When that ended; missing while the task is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// `completed`, `failed`, `review`, `released`, `snoozed`, `died`, `lapsed`, `broken`, `lost`,
    /// `cancelled`; missing while the task is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Why, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many seconds it took; missing while the task is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Whether the last lines that its command printed are kept; only where one task is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_output: Option<bool>,
    /// The host on which the worker ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The git worktree in which it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// The git branch that was made for the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The git reference under which its unfinished work is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<String>,
}

impl Try {
    /// How a try of this task is shown.
    pub fn of(task: &core::TaskId, one: &core::Try) -> Try {
        Try {
            number: one.number,
            by: one.by.clone(),
            token: one.token.0,
            claimed_at: time(one.claimed_at),
            ended_at: one.ended_at.map(time),
            outcome: one.outcome.map(|outcome| outcome.word().to_owned()),
            error: one.error.clone(),
            seconds: one.ended_at.map(|end| (end.0 - one.claimed_at.0).max(0) as f64 / 1000.0),
            has_output: None,
            host: one.workspace.host.clone(),
            worktree: one.workspace.worktree.clone(),
            branch: one.workspace.branch.clone(),
            rescue: one.rescue_of(task).map(str::to_owned),
        }
    }
}
