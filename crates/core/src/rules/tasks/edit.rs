//! Changes by hand: approve, reject, cancel, retry, skip, update, delete.

use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::handover::{NoteError, TryOutcome, WORKSPACE_MAX_BYTES};
use crate::resource::ResourceError;
use crate::rules::draft::Draft;
use crate::rules::tasks::claim::{end_holds, end_kept_section};
use crate::rules::tasks::dependents_after;
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::{PRIORITY_MAX, Status, Task, TaskId, Verb, after};
use crate::text::{
    DESCRIPTION_MAX, LIST_MAX, PAYLOAD_MAX, TITLE_MAX, TextError, check_count, check_text,
};
use crate::{Kind, Resource, Token, WallTime, Witness};
use serde::{Deserialize, Serialize};

/// A change to a task by hand, not by its worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManualChange {
    /// It was looked at and is fine.
    Approve,
    /// It was looked at and is to be done again.
    Reject {
        /// What is to be changed.
        feedback: String,
    },
    /// It is no longer wanted. A worker that has it loses it.
    Cancel,
    /// It is to be done after all, with its attempts counted anew.
    Retry,
    /// It is passed over.
    Skip,
    /// Its fields change.
    Update(Box<TaskChange>),
}

/// New values of a task's fields; none leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskChange {
    /// In a line.
    pub title: Option<String>,
    /// In full.
    pub description: Option<String>,
    /// Which section; empty for none.
    pub section: Option<String>,
    /// Lower goes first.
    pub priority: Option<u8>,
    /// Among equals of priority, lower goes first.
    pub position: Option<i64>,
    /// JSON for the worker.
    pub payload: Option<String>,
    /// How often it may be tried.
    pub max_attempts: Option<u32>,
    /// Not before this time of day.
    pub not_before: Option<WallTime>,
    /// Globs of the files that it touches, instead of those it had.
    #[serde(default)]
    pub files: Option<Vec<String>>,
}

/// A change by hand.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EditAsk {
    /// Which task.
    pub task: TaskId,
    /// What happens to it.
    pub verb: ManualChange,
    /// Who does it.
    pub by: String,
}

impl EditAsk {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        Scope::Tasks(TaskScope {
            ids: vec![self.task.clone()],
            dependents: true,
            // The section of a worker that loses the task may be needed for another.
            beside: self.verb == ManualChange::Cancel,
            ..TaskScope::default()
        })
    }
}

/// Why a task was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EditError {
    /// There is none with this id.
    #[error("no task {id}")]
    NotFound {
        /// Which.
        id: TaskId,
    },
    /// That cannot happen to a task in this state.
    #[error("task {id} is {status}: it cannot be {what}")]
    WrongStatus {
        /// Which.
        id: TaskId,
        /// Where it stands.
        status: Status,
        /// What was wanted.
        what: String,
    },
    /// A worker has claimed it.
    #[error("task {id} is in progress: {by} works on it")]
    InProgress {
        /// Which.
        id: TaskId,
        /// Who has it.
        by: String,
    },
    /// Others wait for it.
    #[error("task {id} cannot be deleted: task {dependent} depends on it")]
    HasDependents {
        /// Which.
        id: TaskId,
        /// One that waits.
        dependent: TaskId,
    },
    /// A name is not acceptable.
    #[error(transparent)]
    Name(#[from] ResourceError),
    /// The priority is out of bounds.
    #[error("the priority is {priority}; it must be between 0 and {PRIORITY_MAX}")]
    Priority {
        /// What was given.
        priority: u8,
    },
    /// A text is too long, or a list has too many items.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A note is not acceptable.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The task remembers no such try.
    #[error("task {id} has no try with token {token}")]
    NoSuchTry {
        /// Which task.
        id: TaskId,
        /// The token that was given.
        token: Token,
    },
    /// The claim under which this was said is not the one that has the task.
    #[error("task {id} is not yours")]
    NotYours {
        /// Which task.
        id: TaskId,
    },
    /// The worker of that try still has the task.
    #[error("the try with token {token} of task {id} has not ended")]
    TryGoesOn {
        /// Which task.
        id: TaskId,
        /// The token of the try.
        token: Token,
    },
    /// The text is not a reference that keeps work of that try.
    #[error("this is not a reference that keeps work of task {id}")]
    NoRescueReference {
        /// Which task.
        id: TaskId,
    },
    /// The name of a folder, a branch or a reference cannot be kept with a try.
    #[error("the {what} is empty or longer than {WORKSPACE_MAX_BYTES} bytes")]
    Workspace {
        /// What it names.
        what: String,
    },
}

/// Changes a task by hand.
pub fn edit(
    seen: &Snapshot,
    ask: &EditAsk,
    witness: &dyn Witness,
) -> (Decision, Result<Task, EditError>) {
    let Some(task) = seen.task(&ask.task) else {
        return (Decision::Nothing, Err(EditError::NotFound { id: ask.task.clone() }));
    };
    let changed = match &ask.verb {
        ManualChange::Update(change) => {
            updated(task, change).map(|task| (task, EventKind::Updated))
        }
        verb => moved(task, verb, &ask.by, seen.wall),
    };
    let (after, event) = match changed {
        Ok(changed) => changed,
        Err(error) => return (Decision::Nothing, Err(error)),
    };
    let mut draft = Draft::new(seen, witness);
    let keeps_worker = after.claim.is_some();
    match &task.claim {
        // A worker that has it learns by its lost lease.
        Some(claim) if !keeps_worker => {
            if !end_holds(&mut draft, claim.grant, &task.id, &event) {
                draft.note(&task.id.resource(), &ask.by, event);
            }
            end_kept_section(seen, &mut draft, claim, &|id| *id == task.id);
        }
        _ => draft.note(&task.id.resource(), &ask.by, event),
    }
    if task.status.satisfies() != after.status.satisfies() {
        for dependent in dependents_after(seen, &task.id, after.status.satisfies()) {
            draft.write(Write::Task(Box::new(dependent)));
        }
    }
    draft.write(Write::Task(Box::new(after.clone())));
    draft.require_durable();
    (draft.decide(None), Ok(after.redacted()))
}

fn moved(
    task: &Task,
    verb: &ManualChange,
    editor: &str,
    wall: WallTime,
) -> Result<(Task, EventKind), EditError> {
    let (by, what, event) = match verb {
        ManualChange::Approve => (Verb::Approve, "approved", EventKind::Approved),
        ManualChange::Reject { feedback } => {
            (Verb::Reject, "rejected", EventKind::Rejected { feedback: feedback.clone() })
        }
        ManualChange::Cancel => (Verb::Cancel, "cancelled", EventKind::Cancelled),
        ManualChange::Retry => (Verb::Retry, "retried", EventKind::Retried),
        ManualChange::Skip => (Verb::Skip, "skipped", EventKind::Skipped),
        ManualChange::Update(_) => unreachable!("updates do not move a task"),
    };
    let wrong = || EditError::WrongStatus {
        id: task.id.clone(),
        status: task.status,
        what: what.to_owned(),
    };
    if let ManualChange::Reject { feedback } = verb {
        check_text("feedback", feedback, DESCRIPTION_MAX)?;
    }
    let status = after(task.status, by).ok_or_else(wrong)?;
    let mut task = Task { status, ..task.clone() };
    if task.claim.is_some() {
        task.end_try(TryOutcome::Cancelled, Some(&format!("{what} by {editor}")), wall);
        task.claim = None;
    }
    match verb {
        ManualChange::Reject { feedback } => task.feedback = Some(feedback.clone()),
        ManualChange::Retry => {
            task.attempts = 0;
            task.recoveries = 0;
            task.not_before = None;
        }
        _ => {}
    }
    task.finished_at = status.is_final().then_some(wall);
    // A task that is approved was finished by its worker.
    if status != Status::Completed {
        task.finished_by = status.is_final().then(|| editor.to_owned());
        task.finished_claim = None;
    }
    Ok((task, event))
}

fn check_texts(change: &TaskChange) -> Result<(), TextError> {
    for (what, text, max) in [
        ("title", &change.title, TITLE_MAX),
        ("description", &change.description, DESCRIPTION_MAX),
        ("payload", &change.payload, PAYLOAD_MAX),
    ] {
        if let Some(text) = text {
            check_text(what, text, max)?;
        }
    }
    check_count("files", change.files.as_ref().map_or(0, Vec::len), LIST_MAX)
}

fn updated(task: &Task, change: &TaskChange) -> Result<Task, EditError> {
    check_texts(change)?;
    let mut task = task.clone();
    if let Some(section) = &change.section {
        if !section.is_empty() {
            Resource::new(Kind::Section, section)?;
        }
        let section = (!section.is_empty()).then(|| section.clone());
        // Its worker holds the section that it had when it was claimed.
        if let Some(claim) = task.claim.as_ref().filter(|_| section != task.section) {
            return Err(EditError::InProgress { id: task.id.clone(), by: claim.by.clone() });
        }
        task.section = section;
    }
    if let Some(files) = &change.files {
        for file in files {
            Resource::new(Kind::Path, file)?;
        }
        // Its worker holds the files that it had when it was claimed.
        if let Some(claim) = task.claim.as_ref().filter(|_| *files != task.files) {
            return Err(EditError::InProgress { id: task.id.clone(), by: claim.by.clone() });
        }
        task.files.clone_from(files);
    }
    if let Some(priority) = change.priority {
        if priority > PRIORITY_MAX {
            return Err(EditError::Priority { priority });
        }
        task.priority = priority;
    }
    let change = change.clone();
    task.title = change.title.unwrap_or(task.title);
    task.description = change.description.or(task.description);
    task.position = change.position.unwrap_or(task.position);
    task.payload = change.payload.or(task.payload);
    task.max_attempts = change.max_attempts.map_or(task.max_attempts, |max| max.max(1));
    task.not_before = change.not_before.or(task.not_before);
    Ok(task)
}

/// Removes a task that is not in progress and that no task depends on.
pub fn delete(
    seen: &Snapshot,
    id: &TaskId,
    by: &str,
    witness: &dyn Witness,
) -> (Decision, Result<Task, EditError>) {
    let refuse = |error| (Decision::Nothing, Err(error));
    let Some(task) = seen.task(id) else { return refuse(EditError::NotFound { id: id.clone() }) };
    if let Some(claim) = &task.claim {
        return refuse(EditError::InProgress { id: id.clone(), by: claim.by.clone() });
    }
    let waiting = seen.tasks.iter().find(|other| other.depends_on.contains(id));
    if let Some(dependent) = waiting {
        let dependent = dependent.id.clone();
        return refuse(EditError::HasDependents { id: id.clone(), dependent });
    }
    let mut draft = Draft::new(seen, witness);
    draft.note(&id.resource(), by, EventKind::Deleted);
    draft.write(Write::DropTask(id.clone()));
    draft.require_durable();
    (draft.decide(None), Ok(task.clone().redacted()))
}
