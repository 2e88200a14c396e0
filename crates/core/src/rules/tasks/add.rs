//! Adding tasks.

use crate::decision::{Change, Decision, Write};
use crate::event::{EventKind, NewEvent};
use crate::handover::{Note, NoteError, newest_notes};
use crate::millis;
use crate::resource::ResourceError;
use crate::rules::tasks::sections::SectionError;
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::{MAX_ATTEMPTS_DEFAULT, PRIORITY_DEFAULT, PRIORITY_MAX, Status, Task, TaskId};
use crate::text::{
    DESCRIPTION_MAX, KEY_MAX, LIST_MAX, PAYLOAD_MAX, REASON_MAX, TASK_LABEL_MAX, TITLE_MAX,
    TextError, check_count, check_name, check_text,
};
use crate::{Kind, Resource, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

/// A task to be added.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewTask {
    /// Its name, which must be new.
    pub id: TaskId,
    /// In a line.
    pub title: String,
    /// In full.
    pub description: Option<String>,
    /// Which section it belongs to.
    pub section: Option<String>,
    /// Where it stands; anything but pending comes from an import.
    pub status: Status,
    /// Lower goes first, 0 to 100.
    pub priority: u8,
    /// Among equals of priority, lower goes first.
    pub position: i64,
    /// What must be completed before: tasks of the store or of the same request.
    pub depends_on: Vec<TaskId>,
    /// For picking.
    pub labels: Vec<String>,
    /// Globs of the files that it touches.
    pub files: Vec<String>,
    /// JSON for the worker.
    pub payload: Option<String>,
    /// How often it may be tried in all.
    pub max_attempts: u32,
    /// How long a worker may take.
    #[serde(rename = "timeout_ms", with = "millis::optional", default)]
    pub timeout: Option<Duration>,
    /// Not to be taken before this time of day.
    pub not_before: Option<WallTime>,
    /// Adding a second task with this key adds none.
    pub key: Option<String>,
    /// What was made of it, from an import.
    pub result: Option<String>,
    /// Why it failed, from an import.
    pub error: Option<String>,
    /// Who finished it, from an import.
    #[serde(default)]
    pub finished_by: Option<String>,
    /// What was noted about it, oldest first, from an import.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl NewTask {
    /// A task with this title and a random id that no other task has.
    pub fn titled(title: impl Into<String>) -> NewTask {
        NewTask::new(TaskId::random(), title)
    }

    /// The same task with this value as its payload, as JSON.
    pub fn with_payload(self, payload: &impl Serialize) -> Result<NewTask, serde_json::Error> {
        Ok(NewTask { payload: Some(serde_json::to_string(payload)?), ..self })
    }

    /// A task with this name and title, and nothing special.
    pub fn new(id: TaskId, title: impl Into<String>) -> NewTask {
        NewTask {
            id,
            title: title.into(),
            description: None,
            section: None,
            status: Status::Pending,
            priority: PRIORITY_DEFAULT,
            position: 0,
            depends_on: vec![],
            labels: vec![],
            files: vec![],
            payload: None,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            timeout: None,
            not_before: None,
            key: None,
            result: None,
            error: None,
            finished_by: None,
            notes: vec![],
        }
    }

    /// The task as a store keeps it, untouched so far.
    pub fn into_task(self, age: u64, created_at: WallTime) -> Task {
        let NewTask { id, title, .. } = self;
        Task {
            description: self.description,
            section: self.section,
            status: self.status,
            priority: self.priority,
            position: self.position,
            age,
            depends_on: self.depends_on,
            labels: self.labels,
            files: self.files,
            payload: self.payload,
            max_attempts: self.max_attempts,
            timeout: self.timeout,
            not_before: self.not_before,
            key: self.key,
            result: self.result,
            error: self.error,
            finished_by: self.finished_by,
            notes: self.notes,
            ..Task::new(id, title, created_at)
        }
    }
}

/// Tasks to be added, all or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddAsk {
    /// The tasks, in order.
    pub tasks: Vec<NewTask>,
    /// Who adds them.
    pub by: String,
}

impl AddAsk {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        let ids = self.tasks.iter().flat_map(|task| task.depends_on.iter().chain([&task.id]));
        let ids: BTreeSet<TaskId> = ids.cloned().collect();
        let keys = self.tasks.iter().filter_map(|task| task.key.clone()).collect();
        let ids = ids.into_iter().collect();
        Scope::Tasks(TaskScope { ids, keys, adds: true, ..TaskScope::default() })
    }
}

/// What became of one task to be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Added {
    /// It is there now.
    New(TaskId),
    /// A task with the same key was there already.
    Existing(TaskId),
}

/// Why nothing was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AddError {
    /// There is a task with this id.
    #[error("task {id} already exists")]
    Exists {
        /// Which.
        id: TaskId,
    },
    /// Two tasks of the request have this id.
    #[error("task {id} is given twice")]
    Twice {
        /// Which.
        id: TaskId,
    },
    /// It is to wait for a task that does not exist.
    #[error("task {id} depends on {missing}, which does not exist")]
    NoSuchDependency {
        /// Which.
        id: TaskId,
        /// What it names.
        missing: TaskId,
    },
    /// Tasks would wait for each other.
    #[error("circular dependency of tasks: {}", name_cycle(.cycle))]
    Cycle {
        /// Each waits for the next, the last for the first.
        cycle: Vec<TaskId>,
    },
    /// A section's name is not acceptable.
    #[error("section of task {id}: {error}")]
    Section {
        /// Of which task.
        id: TaskId,
        /// What is wrong with it.
        error: ResourceError,
    },
    /// A glob of files is not acceptable.
    #[error("files of task {id}: {error}")]
    File {
        /// Of which task.
        id: TaskId,
        /// What is wrong with it.
        error: ResourceError,
    },
    /// The priority is out of bounds.
    #[error("the priority of task {id} is {priority}; it must be between 0 and {PRIORITY_MAX}")]
    Priority {
        /// Of which task.
        id: TaskId,
        /// What was given.
        priority: u8,
    },
    /// The sections cannot be as they are described.
    #[error(transparent)]
    Sections(#[from] SectionError),
    /// A note is not acceptable.
    #[error("notes of task {id}: {error}")]
    Note {
        /// Of which task.
        id: TaskId,
        /// What is wrong with it.
        error: NoteError,
    },
    /// A text is too long, or a list has too many items.
    #[error("task {id}: {error}")]
    Text {
        /// Which.
        id: TaskId,
        /// What is too long.
        error: TextError,
    },
    /// A task needs a title.
    #[error("task {id} has no title")]
    NoTitle {
        /// Which.
        id: TaskId,
    },
}

/// How many tasks of a cycle are named; who mends a file sees where to begin.
const NAMED_MAX: usize = 10;

/// Each waits for the next, and the last one named is the first.
fn name_cycle(cycle: &[TaskId]) -> String {
    let mut names: Vec<String> = cycle.iter().take(NAMED_MAX).map(TaskId::to_string).collect();
    if cycle.len() > NAMED_MAX {
        names.push(format!("({} more)", cycle.len() - NAMED_MAX));
    }
    names.extend(cycle.first().map(TaskId::to_string));
    names.join(" → ")
}

/// Adds all of the tasks, or says why none.
pub fn add(seen: &Snapshot, ask: &AddAsk) -> (Decision, Result<Vec<Added>, AddError>) {
    match plan(seen, ask) {
        Ok((change, added)) => (change.decide(), Ok(added)),
        Err(error) => (Decision::Nothing, Err(error)),
    }
}

fn plan(seen: &Snapshot, ask: &AddAsk) -> Result<(Change, Vec<Added>), AddError> {
    let by_key: HashMap<&str, &Task> =
        seen.tasks.iter().filter_map(|task| Some((task.key.as_deref()?, task))).collect();
    let existing: HashMap<&TaskId, &Task> =
        seen.tasks.iter().map(|task| (&task.id, task)).collect();
    let mut added = Vec::with_capacity(ask.tasks.len());
    let mut fresh: HashMap<&TaskId, &NewTask> = HashMap::new();
    let mut keys: HashMap<&str, &TaskId> = HashMap::new();
    for task in &ask.tasks {
        let same_key = task.key.as_deref().and_then(|key| {
            keys.get(key).copied().or_else(|| by_key.get(key).map(|task| &task.id))
        });
        if let Some(id) = same_key {
            added.push(Added::Existing(id.clone()));
            continue;
        }
        check(task)?;
        if existing.contains_key(&task.id) {
            return Err(AddError::Exists { id: task.id.clone() });
        }
        if fresh.insert(&task.id, task).is_some() {
            return Err(AddError::Twice { id: task.id.clone() });
        }
        if let Some(key) = &task.key {
            keys.insert(key, &task.id);
        }
        added.push(Added::New(task.id.clone()));
    }
    refuse_cycles(&fresh, &ask.tasks)?;
    let mut change = Change { durable: true, ..Change::default() };
    for task in ask
        .tasks
        .iter()
        .filter(|task| fresh.get(&task.id).is_some_and(|one| std::ptr::eq(*one, *task)))
    {
        let unmet = unmet(task, &existing, &fresh)?;
        let age = seen.next + change.writes.len() as u64;
        change.events.push(NewEvent {
            resource: Some(task.id.resource()),
            label: ask.by.clone(),
            token: None,
            kind: EventKind::Added,
            actor: None,
            at: None,
        });
        change.writes.push(Write::Task(Box::new(record(task, unmet, age, seen.wall))));
    }
    Ok((change, added))
}

fn check(task: &NewTask) -> Result<(), AddError> {
    let id = || task.id.clone();
    if task.title.trim().is_empty() {
        return Err(AddError::NoTitle { id: id() });
    }
    check_texts(task).map_err(|error| AddError::Text { id: id(), error })?;
    if task.priority > PRIORITY_MAX {
        return Err(AddError::Priority { id: id(), priority: task.priority });
    }
    if let Some(section) = &task.section {
        Resource::new(Kind::Section, section)
            .map_err(|error| AddError::Section { id: id(), error })?;
    }
    for file in &task.files {
        Resource::new(Kind::Path, file).map_err(|error| AddError::File { id: id(), error })?;
    }
    for note in &task.notes {
        Note::check(&note.text).map_err(|error| AddError::Note { id: id(), error })?;
    }
    Ok(())
}

fn check_texts(task: &NewTask) -> Result<(), TextError> {
    let optional = |what, text: &Option<String>, max| match text {
        Some(text) => check_text(what, text, max),
        None => Ok(()),
    };
    check_text("title", &task.title, TITLE_MAX)?;
    optional("description", &task.description, DESCRIPTION_MAX)?;
    optional("payload", &task.payload, PAYLOAD_MAX)?;
    optional("result", &task.result, PAYLOAD_MAX)?;
    optional("error", &task.error, REASON_MAX)?;
    optional("key", &task.key, KEY_MAX)?;
    check_count("labels", task.labels.len(), LIST_MAX)?;
    check_count("files", task.files.len(), LIST_MAX)?;
    check_count("dependencies", task.depends_on.len(), LIST_MAX)?;
    task.labels.iter().try_for_each(|label| check_name("label", label, TASK_LABEL_MAX))
}

fn unmet(
    task: &NewTask,
    existing: &HashMap<&TaskId, &Task>,
    fresh: &HashMap<&TaskId, &NewTask>,
) -> Result<u32, AddError> {
    let mut unmet = 0;
    // In order, so that the same request is always refused for the same task.
    let once: BTreeSet<&TaskId> = task.depends_on.iter().collect();
    for dependency in once {
        let status = existing.get(dependency).map(|task| task.status);
        let status = status.or_else(|| fresh.get(dependency).map(|task| task.status));
        let Some(status) = status else {
            return Err(AddError::NoSuchDependency {
                id: task.id.clone(),
                missing: dependency.clone(),
            });
        };
        unmet += u32::from(!status.satisfies());
    }
    Ok(unmet)
}

fn record(task: &NewTask, unmet: u32, age: u64, wall: WallTime) -> Task {
    let mut task = task.clone().into_task(age, wall);
    task.depends_on.sort();
    task.depends_on.dedup();
    task.unmet = unmet;
    task.max_attempts = task.max_attempts.max(1);
    task.notes = newest_notes(task.notes);
    // A claim in another store means nothing here.
    if task.status == Status::InProgress {
        task.status = Status::Pending;
    }
    task.finished_at = task.status.is_final().then_some(wall);
    task.finished_by =
        task.finished_by.filter(|_| task.status.is_final() || task.status == Status::Review);
    task
}

/// New tasks can wait for old ones, but no old one waits for a new one: so a cycle can only be
/// among the new ones.
fn refuse_cycles(fresh: &HashMap<&TaskId, &NewTask>, tasks: &[NewTask]) -> Result<(), AddError> {
    let next = |id: &TaskId| -> Vec<TaskId> {
        let task = fresh.get(id);
        let dependencies = task.into_iter().flat_map(|task| &task.depends_on);
        dependencies.filter(|id| fresh.contains_key(id)).cloned().collect()
    };
    match find_cycle(tasks.iter().map(|task| task.id.clone()), next) {
        Some(cycle) => Err(AddError::Cycle { cycle }),
        None => Ok(()),
    }
}

/// Depth first without recursion: a chain of a hundred thousand must not need as much stack.
pub(super) fn find_cycle<Id: Clone + Eq + Hash>(
    all: impl Iterator<Item = Id>,
    next: impl Fn(&Id) -> Vec<Id>,
) -> Option<Vec<Id>> {
    let mut done: HashSet<Id> = HashSet::new();
    for start in all {
        let mut path: Vec<(Id, Vec<Id>)> = Vec::new();
        let mut on_path: HashSet<Id> = HashSet::new();
        if done.contains(&start) {
            continue;
        }
        on_path.insert(start.clone());
        path.push((start.clone(), next(&start)));
        while let Some((_, ahead)) = path.last_mut() {
            match ahead.pop() {
                None => {
                    let (id, _) = path.pop().expect("it was there a line ago");
                    on_path.remove(&id);
                    done.insert(id);
                }
                Some(id) if on_path.contains(&id) => {
                    let from = path.iter().position(|(other, _)| *other == id).unwrap_or(0);
                    return Some(path[from..].iter().map(|(id, _)| id.clone()).collect());
                }
                Some(id) if done.contains(&id) => {}
                Some(id) => {
                    on_path.insert(id.clone());
                    let ahead = next(&id);
                    path.push((id, ahead));
                }
            }
        }
    }
    None
}
