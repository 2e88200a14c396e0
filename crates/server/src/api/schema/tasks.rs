//! Tasks.

use super::{Tally, Task};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoResponses, ToSchema};

/// Tasks, in the order that was asked for.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Tasks {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Ask with `after_age` this for more; null if these were the last, and newest first.
    #[schema(required)]
    pub next_after_age: Option<u64>,
    /// Ask with `before_age` this for more; null if these were the last, and oldest first.
    #[schema(required)]
    pub next_before_age: Option<u64>,
}

/// The tasks around a task.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskGraph {
    /// The task itself and tasks around it, in the order of their steps.
    pub tasks: Vec<GraphTask>,
    /// How many more tasks it waits for; only those found within three steps are counted.
    pub before_left_out: u64,
    /// How many more tasks wait for it.
    pub after_left_out: u64,
}

/// A task in a graph.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GraphTask {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: String,
    /// How many steps away it is: negative if the task waits for it, 0 for the task itself.
    pub step: i32,
    /// Tasks that must be completed before it.
    pub depends_on: Vec<String>,
}

/// A task, with what it waits for.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownTask {
    /// The task.
    pub task: Task,
    /// What it waits for, a sentence each; nothing if it could be taken now or is not pending.
    pub waits_for: Vec<String>,
}

/// Why a task cannot be claimed now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Its id.
    pub id: String,
    /// Whether it can.
    pub ready: bool,
    /// What it waits for, a sentence each.
    pub why: Vec<String>,
}

/// How many tasks there are of each section and status.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Tallies {
    /// Each count.
    pub tallies: Vec<Tally>,
}

/// What became of tasks that were to be added, in order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Added {
    /// The tasks as they are now.
    pub tasks: Vec<AddedTask>,
}

/// A task that is there now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AddedTask {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// False if one with the same key was there already.
    pub created: bool,
}

/// What came of a claim.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Claimed {
    /// The tasks that are the caller's now; none if there was none to be had.
    pub tasks: Vec<ClaimedTask>,
    /// Under which label.
    pub holder: String,
    /// Why there is none.
    #[schema(required)]
    pub why: Option<WhyNone>,
}

/// A task that is the caller's.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimedTask {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Proves the claim: keep it to yourself.
    #[schema(format = "uuid")]
    pub grant: String,
    /// `acquired_new`; `already_owned` if it was the caller's before; `claimed_dead` or
    /// `claimed_expired` if its last worker died or its lease lapsed.
    pub reason: String,
}

/// Why no task was to be had.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyNone {
    /// `NOTHING_READY`, `NOT_READY`, or who holds it: `LOCKED`, `SECTION_LOCKED`, `TASK_LOCKED`.
    pub code: String,
    /// One sentence.
    pub detail: String,
    /// More for programs, depending on the code.
    #[schema(value_type = Value)]
    pub details: Value,
}

/// A task as it is now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OneTask {
    /// The task.
    pub task: Task,
}

/// A task whose work ended.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishedTask {
    /// The task as it is now.
    pub task: Task,
    /// Whether the runner's section was given up: there is nothing more to do in it.
    pub gave_up_section: bool,
    /// Whether the same worker had said the same before; then nothing was changed now.
    pub repeated: bool,
}

/// A claim whose lease started anew.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Heartbeat {
    /// The task.
    pub task: Task,
    /// How long from now.
    pub ttl_ms: u64,
    /// Whether its section is kept too.
    pub section_renewed: bool,
}

/// Why nothing was done to a task.
#[derive(IntoResponses)]
pub enum TaskRefused {
    /// TASK_NOT_FOUND
    #[response(status = 404)]
    NotFound,
    /// TASK_STATUS: that cannot happen to a task in its state
    #[response(status = 409)]
    Status,
}

/// Why nothing was done to the caller's own task.
#[derive(IntoResponses)]
pub enum OwnTaskRefused {
    /// TASK_NOT_FOUND
    #[response(status = 404)]
    NotFound,
    /// LEASE_LOST or TOKEN_REFUSED: it is not the caller's any more
    #[response(status = 409)]
    Lost,
}
