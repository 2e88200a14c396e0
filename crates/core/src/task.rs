//! Tasks and sections: what is to be done, by one worker each.

use crate::handover::{Note, Try};
use crate::resource::{Kind, Resource, ResourceError};
use crate::{GrantId, Token, WallTime, millis};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The priority of a task that was given none: the middle of 0 (first) to 100 (last).
pub const PRIORITY_DEFAULT: u8 = 50;

/// The lowest priority.
pub const PRIORITY_MAX: u8 = 100;

/// How often a task is tried in all, unless it says otherwise.
pub const MAX_ATTEMPTS_DEFAULT: u32 = 3;

/// How often a task may come back because its worker died or fell silent, before it is set aside:
/// a task that kills its workers must not be handed out all night. Unless told otherwise.
pub const RECOVERIES_MAX: u32 = 3;

/// Names a task. Anything that names a resource of kind `task`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// An id of 16 hexadecimal digits that no other task has.
    pub fn random() -> TaskId {
        TaskId(format!("{:016x}", uuid::Uuid::new_v4().as_u128() >> 64))
    }

    /// The task's resource: to hold it is to work on the task.
    pub fn resource(&self) -> Resource {
        Resource::new(Kind::Task, &self.0).expect("a task id was checked when it was made")
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TaskId {
    type Err = ResourceError;

    fn from_str(text: &str) -> Result<TaskId, ResourceError> {
        Resource::new(Kind::Task, text)?;
        Ok(TaskId(text.to_owned()))
    }
}

impl TryFrom<String> for TaskId {
    type Error = ResourceError;

    fn try_from(text: String) -> Result<TaskId, ResourceError> {
        text.parse()
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> String {
        id.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// To be done.
    Pending,
    /// A worker has it.
    InProgress,
    /// Done, and waiting for review.
    Review,
    /// Done.
    Completed,
    /// Tried as often as allowed.
    Failed,
    /// No longer wanted.
    Cancelled,
    /// Set aside for an operator: its workers died or fell silent too often.
    Blocked,
    /// Skipped; tasks that depend on it may go on.
    Skipped,
}

impl Status {
    /// All of them, in the order of a task's life.
    pub const ALL: [Status; 8] = [
        Status::Pending,
        Status::InProgress,
        Status::Review,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
        Status::Blocked,
        Status::Skipped,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Review => "review",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Blocked => "blocked",
            Status::Skipped => "skipped",
        }
    }

    /// Whether a task that waits for one in this state may begin.
    pub fn satisfies(self) -> bool {
        matches!(self, Status::Completed | Status::Skipped)
    }

    /// Whether nothing more happens to a task in this state by itself.
    pub fn is_final(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled | Status::Skipped)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The word is no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error(
    "{word:?} is not a status; statuses are pending, in_progress, review, completed, failed, cancelled, blocked and skipped"
)]
pub struct StatusError {
    /// What was given.
    pub word: String,
}

impl FromStr for Status {
    type Err = StatusError;

    /// Knows the words of other tools too.
    fn from_str(word: &str) -> Result<Status, StatusError> {
        Ok(match word {
            "pending" | "available" | "queued" => Status::Pending,
            "in_progress" | "claimed" | "assigned" | "working" => Status::InProgress,
            "review" | "pending_review" => Status::Review,
            "completed" | "done" | "approved" => Status::Completed,
            "failed" => Status::Failed,
            "cancelled" | "canceled" => Status::Cancelled,
            "blocked" => Status::Blocked,
            "skipped" => Status::Skipped,
            _ => return Err(StatusError { word: word.chars().take(40).collect() }),
        })
    }
}

/// What can happen to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// A worker takes it.
    Claim,
    /// Its worker is done.
    Complete,
    /// Its worker could not do it, and it is to be tried again.
    FailRetry,
    /// Its worker could not do it, and that was the last try.
    FailFinally,
    /// Its worker sends it to review.
    Review,
    /// Its worker puts it off.
    Snooze,
    /// Its worker gives it back untouched.
    Release,
    /// The review passed.
    Approve,
    /// The review failed: it goes back to the queue.
    Reject,
    /// It is no longer wanted.
    Cancel,
    /// It is passed over.
    Skip,
    /// It is to be done after all.
    Retry,
    /// Its worker died or fell silent.
    Recover,
    /// Its workers died or fell silent too often.
    SetAside,
}

/// The state machine: from where, by what, to where. What is not here cannot happen.
pub const MOVES: &[(Status, Verb, Status)] = &[
    (Status::Pending, Verb::Claim, Status::InProgress),
    (Status::Pending, Verb::Cancel, Status::Cancelled),
    (Status::Pending, Verb::Skip, Status::Skipped),
    (Status::InProgress, Verb::Complete, Status::Completed),
    (Status::InProgress, Verb::FailRetry, Status::Pending),
    (Status::InProgress, Verb::FailFinally, Status::Failed),
    (Status::InProgress, Verb::Review, Status::Review),
    (Status::InProgress, Verb::Snooze, Status::Pending),
    (Status::InProgress, Verb::Release, Status::Pending),
    (Status::InProgress, Verb::Cancel, Status::Cancelled),
    (Status::InProgress, Verb::Recover, Status::Pending),
    (Status::InProgress, Verb::SetAside, Status::Blocked),
    (Status::Review, Verb::Approve, Status::Completed),
    (Status::Review, Verb::Reject, Status::Pending),
    (Status::Review, Verb::Cancel, Status::Cancelled),
    (Status::Blocked, Verb::Retry, Status::Pending),
    (Status::Blocked, Verb::Cancel, Status::Cancelled),
    (Status::Blocked, Verb::Skip, Status::Skipped),
    (Status::Failed, Verb::Retry, Status::Pending),
    (Status::Failed, Verb::Skip, Status::Skipped),
    (Status::Cancelled, Verb::Retry, Status::Pending),
    (Status::Skipped, Verb::Retry, Status::Pending),
];

/// Where the verb leads from this status, if it can happen there.
pub fn after(status: Status, verb: Verb) -> Option<Status> {
    MOVES.iter().find(|(from, by, _)| *from == status && *by == verb).map(|(_, _, to)| *to)
}

/// Something to be done by one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// In a line.
    pub title: String,
    /// In full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Which section it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// Lower goes first, 0 to 100.
    pub priority: u8,
    /// Among equals of priority, lower goes first.
    pub position: i64,
    /// Among equals of both, older goes first: the number of the change that added it.
    pub age: u64,
    /// What must be completed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    /// How many of those are not yet.
    pub unmet: u32,
    /// For picking.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Globs of the files that it touches; held while it is worked on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// JSON for the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// How often it may be tried in all.
    pub max_attempts: u32,
    /// How often it was taken.
    pub attempts: u32,
    /// How often it came back because its worker died or fell silent.
    pub recoveries: u32,
    /// How long a worker may take.
    #[serde(default, rename = "timeout_ms", with = "millis::optional")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Not to be taken before this time of day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<WallTime>,
    /// Adding a second task with this key adds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// What its worker made of it, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a reviewer said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// When it was added.
    pub created_at: WallTime,
    /// When it was last taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<WallTime>,
    /// When its worker last said that it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<WallTime>,
    /// When it came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<WallTime>,
    /// The label of the worker that finished it or sent it to review, or of the caller that
    /// cancelled or skipped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_by: Option<String>,
    /// The claim under which a worker finished it. A repeated finish is recognised by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_claim: Option<FinishedClaim>,
    /// What was noted for its next worker, oldest first; see [`crate::handover`] for the bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Its last claims, oldest first; the last is open exactly while the task is in progress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tries: Vec<Try>,
}

/// Who has a task. The holds of its parts say whether that still counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claim {
    /// The worker's label.
    pub by: String,
    /// The grant of the hold of the task.
    pub grant: GrantId,
    /// Its token.
    pub token: Token,
    /// What was taken together with the task: its files and its section. When one of these is
    /// lost, the claim is lost. Claims of older versions and of other programs name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A hold that belongs to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Part {
    /// What is held.
    pub resource: Resource,
    /// Under which grant: the claim's, or for a section that a runner keeps, the runner's.
    pub grant: GrantId,
    /// The token of the hold.
    pub token: Token,
}

/// A claim that its worker ended by finishing the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FinishedClaim {
    /// The grant of the claim.
    pub grant: GrantId,
    /// Its token.
    pub token: Token,
}

impl Claim {
    /// A claim of the task alone, without parts.
    pub fn new(by: impl Into<String>, grant: GrantId, token: Token) -> Claim {
        Claim { by: by.into(), grant, token, parts: vec![] }
    }
}

impl Part {
    /// This resource, held under this grant and token.
    pub fn new(resource: Resource, grant: GrantId, token: Token) -> Part {
        Part { resource, grant, token }
    }
}

impl FinishedClaim {
    /// The claim with this grant and token.
    pub fn new(grant: GrantId, token: Token) -> FinishedClaim {
        FinishedClaim { grant, token }
    }
}

impl Task {
    /// A pending task with nothing special. A store that reads a task sets the other fields of this
    /// one; all others add a [`NewTask`](crate::rules::tasks::NewTask).
    pub fn new(id: TaskId, title: impl Into<String>, created_at: WallTime) -> Task {
        Task {
            id,
            title: title.into(),
            description: None,
            section: None,
            status: Status::Pending,
            priority: PRIORITY_DEFAULT,
            position: 0,
            age: 0,
            depends_on: vec![],
            unmet: 0,
            labels: vec![],
            files: vec![],
            payload: None,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            attempts: 0,
            recoveries: 0,
            timeout: None,
            not_before: None,
            key: None,
            claim: None,
            result: None,
            error: None,
            feedback: None,
            created_at,
            claimed_at: None,
            started_at: None,
            finished_at: None,
            finished_by: None,
            finished_claim: None,
            notes: vec![],
            tries: vec![],
        }
    }

    /// The payload as a value of this type; `None` if the task has none.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.payload.as_deref().map(serde_json::from_str).transpose()
    }

    /// The result as a value of this type; `None` if there is none yet.
    pub fn result_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.result.as_deref().map(serde_json::from_str).transpose()
    }

    /// The resource that is the section of this task.
    pub fn section_resource(&self) -> Option<Resource> {
        Resource::new(Kind::Section, self.section.as_deref()?).ok()
    }

    /// The hold of the section that belongs to the claim, unless any number may work there.
    pub fn claimed_section(&self) -> Option<&Part> {
        let mut parts = self.claim.as_ref()?.parts.iter();
        parts.find(|part| part.resource.kind() == Kind::Section)
    }

    /// This task as others than its worker may see it: with the public form of its grants.
    pub fn redacted(mut self) -> Task {
        if let Some(claim) = &mut self.claim {
            claim.grant = claim.grant.redacted();
            claim.parts.iter_mut().for_each(|part| part.grant = part.grant.redacted());
        }
        if let Some(claim) = &mut self.finished_claim {
            claim.grant = claim.grant.redacted();
        }
        self
    }

    /// Where it stands in the order of claims.
    pub fn order(&self) -> (u8, i64, u64) {
        (self.priority, self.position, self.age)
    }

    /// Whether it may be taken, as far as the task itself tells.
    pub fn is_ready(&self, now: WallTime) -> bool {
        self.status == Status::Pending
            && self.unmet == 0
            && self.not_before.is_none_or(|time| time <= now)
    }
}

/// A part of the task list that by default one runner works through at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// How many runners may work in it at once; none means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runners: Option<u32>,
    /// Lower goes first.
    pub priority: u8,
    /// Among equals of priority, lower goes first.
    pub position: i64,
    /// Sections that must be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Whether nothing of it is handed out for now.
    pub paused: bool,
}

impl Section {
    /// A section without a record: exclusive.
    pub fn named(name: &str) -> Section {
        Section {
            name: name.to_owned(),
            max_runners: Some(1),
            priority: PRIORITY_DEFAULT,
            position: 0,
            depends_on: vec![],
            paused: false,
        }
    }

    /// The section's resource: to hold it is to work in the section.
    pub fn resource(&self) -> Result<Resource, ResourceError> {
        Resource::new(Kind::Section, &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_can_be_reached_and_left_unless_it_is_completed() {
        for status in Status::ALL {
            let reached = MOVES.iter().any(|(_, _, to)| *to == status);
            let left = MOVES.iter().any(|(from, _, _)| *from == status);
            assert!(reached, "{status}");
            assert_eq!(left, status != Status::Completed, "{status}");
        }
    }

    #[test]
    fn a_verb_leads_to_one_place() {
        for (index, (from, by, _)) in MOVES.iter().enumerate() {
            let same = MOVES.iter().filter(|(f, b, _)| f == from && b == by).count();
            assert_eq!(same, 1, "row {index}: {from} {by:?}");
        }
    }

    #[test]
    fn tasks_are_taken_by_priority_then_position_then_age() {
        let task = |priority: u8, position: i64, age: u64| {
            let task = Task::new(TaskId::random(), "t", WallTime(0));
            Task { priority, position, age, ..task }
        };
        let in_order = [
            task(1, 9, 9),
            task(2, -9, 9),
            task(2, 0, 8),
            task(2, 0, 9),
            task(2, 1, 1),
            task(3, 0, 0),
        ];
        assert!(in_order.is_sorted_by(|one, next| one.order() < next.order()));
    }

    #[test]
    fn the_section_of_a_task_and_the_hold_of_it_are_found() {
        let task = crate::sample::full_task();
        let section: Resource = "section:Back end".parse().unwrap();
        assert_eq!(task.section_resource().as_ref(), Some(&section));
        let part = task.claimed_section().unwrap();
        assert_eq!((&part.resource, part.token), (&section, Token(3)));
        let without = Task { section: None, claim: None, ..task };
        assert_eq!((without.section_resource(), without.claimed_section()), (None, None));
    }

    #[test]
    fn an_id_is_stored_as_its_text() {
        let id: TaskId = "täsk 1".parse().unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"täsk 1\"");
        assert_eq!(serde_json::from_str::<TaskId>("\"täsk 1\"").unwrap(), id);
        assert!(serde_json::from_str::<TaskId>("\" \"").is_err());
    }

    #[test]
    fn the_words_of_other_tools_are_understood() {
        for (word, status) in [
            ("available", Status::Pending),
            ("queued", Status::Pending),
            ("claimed", Status::InProgress),
            ("working", Status::InProgress),
            ("done", Status::Completed),
            ("approved", Status::Completed),
            ("pending_review", Status::Review),
        ] {
            assert_eq!(word.parse(), Ok(status));
        }
        for status in Status::ALL {
            assert_eq!(status.word().parse(), Ok(status));
        }
        assert!("lost".parse::<Status>().is_err());
    }
}
