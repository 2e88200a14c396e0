//! Tasks.

use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoResponses, ToSchema};

/// Something to be done by one worker.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// In a line.
    pub title: String,
    /// In full.
    #[schema(required)]
    pub description: Option<String>,
    /// Which section it belongs to.
    #[schema(required)]
    pub section: Option<String>,
    /// `pending`, `in_progress`, `review`, `completed`, `failed`, `cancelled`, `blocked`, `skipped`.
    pub status: String,
    /// Lower goes first, 0 to 100.
    pub priority: u8,
    /// Among equals of priority, lower goes first.
    pub position: i64,
    /// What must be completed before.
    pub depends_on: Vec<String>,
    /// How many of those are not yet.
    pub unmet: u32,
    /// For picking.
    pub labels: Vec<String>,
    /// Globs of the files that it touches.
    pub files: Vec<String>,
    /// Anything for the worker.
    #[schema(value_type = Value)]
    pub payload: Value,
    /// How often it may be tried in all.
    pub max_attempts: u32,
    /// How often it was taken.
    pub attempts: u32,
    /// How often it came back because its worker died or fell silent.
    pub recoveries: u32,
    /// How long a worker may take.
    #[schema(required)]
    pub timeout_seconds: Option<f64>,
    /// Not to be taken before this time.
    #[schema(required)]
    pub not_before: Option<String>,
    /// Adding a second task with this key adds none.
    #[schema(required)]
    pub key: Option<String>,
    /// Who has it.
    #[schema(required)]
    pub claimed_by: Option<String>,
    /// Under which token.
    #[schema(required)]
    pub token: Option<u64>,
    /// When the claim lapses unless renewed.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// What its worker made of it.
    #[schema(value_type = Value)]
    pub result: Value,
    /// Why it failed last.
    #[schema(required)]
    pub error: Option<String>,
    /// What a reviewer said.
    #[schema(required)]
    pub feedback: Option<String>,
    /// When it was added.
    pub created_at: String,
    /// When it was last taken.
    #[schema(required)]
    pub claimed_at: Option<String>,
    /// When its worker last said that it began.
    #[schema(required)]
    pub started_at: Option<String>,
    /// When it came to its end.
    #[schema(required)]
    pub finished_at: Option<String>,
    /// The worker that finished it or sent it to review, or who cancelled or skipped it.
    #[schema(required)]
    pub finished_by: Option<String>,
}

/// Tasks, oldest first.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Tasks {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Ask with `after_age` this for more; null if these were the last.
    #[schema(required)]
    pub next_after_age: Option<u64>,
}

/// A task, with what it waits for.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ShownTask {
    /// The task.
    pub task: Task,
    /// What it waits for, a sentence each; nothing if it could be taken now or is not pending.
    pub waits_for: Vec<String>,
}

/// Why a task cannot be claimed now.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Why {
    /// Its id.
    pub id: String,
    /// Whether it can.
    pub ready: bool,
    /// What it waits for, a sentence each.
    pub why: Vec<String>,
}

/// How many tasks there are of each section and status.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Tallies {
    /// Each count.
    pub tallies: Vec<Tally>,
}

/// How many tasks of a section have a status.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Tally {
    /// Of which section; null for tasks without one.
    #[schema(required)]
    pub section: Option<String>,
    /// With which status.
    pub status: String,
    /// How many.
    pub count: u64,
}

/// What became of tasks that were to be added, in order.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Added {
    /// The tasks as they are now.
    pub tasks: Vec<AddedTask>,
}

/// A task that is there now.
#[derive(Debug, Deserialize, ToSchema)]
pub struct AddedTask {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// False if one with the same key was there already.
    pub created: bool,
}

/// What came of a claim.
#[derive(Debug, Deserialize, ToSchema)]
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
#[derive(Debug, Deserialize, ToSchema)]
pub struct ClaimedTask {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Proves the claim: keep it to yourself.
    #[schema(format = "uuid")]
    pub grant: String,
}

/// Why no task was to be had.
#[derive(Debug, Deserialize, ToSchema)]
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
#[derive(Debug, Deserialize, ToSchema)]
pub struct OneTask {
    /// The task.
    pub task: Task,
}

/// A task whose work ended.
#[derive(Debug, Deserialize, ToSchema)]
pub struct FinishedTask {
    /// The task as it is now.
    pub task: Task,
    /// Whether the runner's section was given up: there is nothing more to do in it.
    pub gave_up_section: bool,
    /// Whether the same worker had said the same before; then nothing was changed now.
    pub repeated: bool,
}

/// A claim whose lease started anew.
#[derive(Debug, Deserialize, ToSchema)]
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
