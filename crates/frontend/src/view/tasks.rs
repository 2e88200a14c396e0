//! Tasks and sections as JSON.

use super::{Note, Try, runners_of, time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::core::rules::tasks::Claimed;
use tenure::core::{self, HoldSnapshot, SectionSnapshot, TaskId, WallTime, Witness};
use utoipa::ToSchema;

/// A task, to be done by one worker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// The title, in one line.
    pub title: String,
    /// The full description.
    #[schema(required)]
    pub description: Option<String>,
    /// Its section.
    #[schema(required)]
    pub section: Option<String>,
    /// `pending`, `in_progress`, `review`, `completed`, `failed`, `cancelled`, `blocked`, `skipped`.
    pub status: String,
    /// Priority, 0 to 100; lower goes first.
    pub priority: u8,
    /// Order among equal priorities: lower goes first.
    pub position: i64,
    /// Tasks that must be completed first.
    pub depends_on: Vec<String>,
    /// How many of those are not completed.
    pub unmet: u32,
    /// Labels for selecting tasks.
    pub labels: Vec<String>,
    /// Globs of the files that it changes.
    pub files: Vec<String>,
    /// Any JSON for the worker.
    #[schema(value_type = Value)]
    pub payload: Value,
    /// The largest number of attempts.
    pub max_attempts: u32,
    /// How often it was claimed.
    pub attempts: u32,
    /// How often it was recovered because its worker died or stopped renewing.
    pub recoveries: u32,
    /// The time limit for a worker.
    #[schema(required)]
    pub timeout_seconds: Option<f64>,
    /// It cannot be claimed before this time.
    #[schema(required)]
    pub not_before: Option<String>,
    /// Idempotency key: a second task with this key is not added.
    #[schema(required)]
    pub key: Option<String>,
    /// Its worker.
    #[schema(required)]
    pub claimed_by: Option<String>,
    /// The token of the claim.
    #[schema(required)]
    pub token: Option<u64>,
    /// When the claim lapses if it is not renewed.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// Why the claim no longer counts, for example because its lease lapsed or a part of it was lost;
    /// null if it does, and without a claim.
    #[schema(required)]
    pub stale_reason: Option<String>,
    /// The result.
    #[schema(value_type = Value)]
    pub result: Value,
    /// The reason of the last failure.
    #[schema(required)]
    pub error: Option<String>,
    /// The reviewer's comment.
    #[schema(required)]
    pub feedback: Option<String>,
    /// When it was added.
    pub created_at: String,
    /// When it was last claimed.
    #[schema(required)]
    pub claimed_at: Option<String>,
    /// When its worker last reported that it started.
    #[schema(required)]
    pub started_at: Option<String>,
    /// When it ended.
    #[schema(required)]
    pub finished_at: Option<String>,
    /// The worker that finished it or sent it to review, or the person who cancelled or skipped it.
    #[schema(required)]
    pub finished_by: Option<String>,
    /// What was noted about it, oldest first; missing in lists of tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// How its last claims ended, oldest first; missing in lists of tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tries: Vec<Try>,
}

impl Task {
    /// A task whose claim, if it has one, counts and lapses at this time. [`Claims::task`](super::Claims::task)
    /// judges it.
    pub fn new(task: &core::Task, expires_at: Option<WallTime>) -> Task {
        let claim = task.claim.as_ref();
        Task {
            id: task.id.to_string(),
            title: task.title.clone(),
            description: task.description.clone(),
            section: task.section.clone(),
            status: task.status.word().to_owned(),
            priority: task.priority,
            position: task.position,
            depends_on: task.depends_on.iter().map(TaskId::to_string).collect(),
            unmet: task.unmet,
            labels: task.labels.clone(),
            files: task.files.clone(),
            payload: value(task.payload.as_deref()),
            max_attempts: task.max_attempts,
            attempts: task.attempts,
            recoveries: task.recoveries,
            timeout_seconds: task.timeout.map(|timeout| timeout.as_secs_f64()),
            not_before: task.not_before.map(time),
            key: task.key.clone(),
            claimed_by: claim.map(|claim| claim.by.clone()),
            token: claim.map(|claim| claim.token.0),
            expires_at: expires_at.map(time),
            stale_reason: None,
            result: value(task.result.as_deref()),
            error: task.error.clone(),
            feedback: task.feedback.clone(),
            created_at: time(task.created_at),
            claimed_at: task.claimed_at.map(time),
            started_at: task.started_at.map(time),
            finished_at: task.finished_at.map(time),
            finished_by: task.finished_by.clone(),
            notes: task.notes.iter().map(Note::from).collect(),
            tries: task.tries.iter().map(|one| Try::of(&task.id, one)).collect(),
        }
    }

    /// A task for the worker that has just claimed it: with the tries before its own.
    pub fn claimed(claimed: &Claimed) -> Task {
        let tries = claimed.task.ended_tries().map(|one| Try::of(&claimed.task.id, one)).collect();
        Task { tries, ..Task::new(&claimed.task, Some(claimed.expires_at)) }
    }

    /// The same task with a word for each try of which an output is kept.
    pub fn with_outputs(mut self, attempts: &[u32]) -> Task {
        for one in &mut self.tries {
            one.has_output = Some(attempts.contains(&one.number));
        }
        self
    }

    /// The same task as in a list: without notes and tries.
    pub fn without_history(self) -> Task {
        Task { notes: vec![], tries: vec![], ..self }
    }
}

/// Stored JSON as a value; text that is not JSON, as older versions stored it, as a string.
fn value(stored: Option<&str>) -> Value {
    stored.map_or(Value::Null, |text| {
        serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    })
}

/// The number of tasks of a section with a status.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Tally {
    /// The section; null for tasks without one.
    #[schema(required)]
    pub section: Option<String>,
    /// The status.
    pub status: String,
    /// The number of tasks.
    pub count: u64,
}

impl From<&tenure::store::Tally> for Tally {
    fn from(tally: &tenure::store::Tally) -> Tally {
        Tally {
            section: tally.section.clone(),
            status: tally.status.word().to_owned(),
            count: tally.count,
        }
    }
}

/// A section of the task list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// How many runners may work in it at once; null means any number.
    #[schema(required)]
    pub max_runners: Option<u32>,
    /// Lower goes first.
    pub priority: u8,
    /// Order among equal priorities: lower goes first.
    pub position: i64,
    /// Sections that must be done first.
    pub depends_on: Vec<String>,
    /// Whether its tasks cannot be claimed for now.
    pub paused: bool,
}

impl From<&core::Section> for Section {
    fn from(section: &core::Section) -> Section {
        Section {
            name: section.name.clone(),
            max_runners: section.max_runners,
            priority: section.priority,
            position: section.position,
            depends_on: section.depends_on.clone(),
            paused: section.paused,
        }
    }
}

/// A section, with the number of its open tasks.
#[derive(Clone, Debug, Serialize)]
pub struct CountedSection {
    /// Its description.
    #[serde(flatten)]
    pub section: Section,
    /// The number of its open tasks.
    pub open: u64,
}

impl From<&SectionSnapshot> for CountedSection {
    fn from(seen: &SectionSnapshot) -> CountedSection {
        CountedSection { section: (&seen.section).into(), open: seen.open }
    }
}

/// A section, with its open tasks and runners.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenSection {
    /// Its description.
    #[serde(flatten)]
    pub section: Section,
    /// The number of its open tasks.
    pub open: u64,
    /// The runners in it.
    pub runners: Vec<SectionRunner>,
}

impl OpenSection {
    /// A section with the holds of its runners, found among others.
    pub fn among(
        seen: &SectionSnapshot,
        holds: &[HoldSnapshot],
        witness: &dyn Witness,
    ) -> OpenSection {
        let runner = |seen: &HoldSnapshot| SectionRunner {
            runner_id: seen.hold.holder.label.clone(),
            acquired_at: time(seen.acquired_at),
            expires_at: time(seen.expires_at),
        };
        let runners = runners_of(&seen.section, holds, witness);
        OpenSection {
            section: (&seen.section).into(),
            open: seen.open,
            runners: runners.into_iter().map(runner).collect(),
        }
    }
}

/// A runner in a section.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SectionRunner {
    /// Its label.
    pub runner_id: String,
    /// When it started.
    pub acquired_at: String,
    /// When its lease lapses if it is not renewed.
    pub expires_at: String,
}
