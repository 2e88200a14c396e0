//! Compares a task list with the ledger: from what both say to what to remember. It does no I/O.

use super::ForeignClaim;
use super::cycles::cycles;
use crate::store::ledger::{Ledger, Record};
use crate::store::store_time::StoreTime;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use tenure_core::rules::tasks::NewTask;
use tenure_core::{EventKind, NewEvent, Status, Task, TaskId, TryOutcome, WallTime};
use tenure_text::exchange::CONTEXT_FILES;

/// What a list says of one task.
#[derive(Debug)]
pub(in super::super) struct Entry {
    pub(super) new: NewTask,
    pub(super) state: EntryState,
    /// The fields as their program wrote them, to tell whether they were edited.
    pub(super) fields: Box<dyn EntryFields>,
    pub(super) created_at: Option<WallTime>,
    pub(super) finished_at: Option<WallTime>,
}

/// Tells in which fields an entry differs from how its dialect would write a task.
pub(super) trait EntryFields: std::fmt::Debug {
    fn title_differs(&self, task: &Task) -> bool;
    fn priority_differs(&self, task: &Task) -> bool;
    fn dependencies_differ(&self, task: &Task) -> bool;
    fn context_differs(&self, task: &Task) -> bool;
}

/// Where a task stands by its list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EntryState {
    /// It has this status, and no one has claimed it.
    Status(Status),
    /// Tenure has claimed it, under this token.
    OwnClaim(u64),
    /// Another program has claimed it.
    ForeignClaim(ForeignClaim),
    /// It is in progress; a lock file tells who has it.
    Started,
    /// The entry is invalid, for this reason, so that the task cannot be claimed as it is.
    Invalid(String),
}

/// What to remember, and what to write back.
#[derive(Debug, Default)]
pub(crate) struct Reconciled {
    /// The time of day.
    now: WallTime,
    pub(crate) records: Vec<Record>,
    pub(crate) events: Vec<NewEvent>,
    /// The tasks that must be written to the list again.
    pub(crate) rewrite: Vec<TaskId>,
    pub(super) claims: BTreeMap<TaskId, ForeignClaim>,
    /// The tasks that wait for themselves, one sentence each.
    pub(super) cycles: Vec<String>,
}

/// Compares the list with the ledger.
pub(super) fn reconcile(entries: &[Entry], ledger: &Ledger, at: StoreTime) -> Reconciled {
    let mut reconciled = Reconciled { now: WallTime(at.wall_ms), ..Reconciled::default() };
    let mut tasks: Vec<Task> = Vec::with_capacity(entries.len());
    let cycles = cycles(entries);
    for entry in entries {
        let age = ledger.revision + 1 + reconciled.events.len() as u64;
        let task = match ledger.tasks.get(&entry.new.id) {
            None => reconciled.add(entry, cycles.get(&entry.new.id), age, at),
            Some(known) => reconciled.compare(entry, cycles.get(&entry.new.id), known, ledger),
        };
        tasks.push(task);
    }
    reconciled.cycles = cycles.iter().map(|(id, cycle)| format!("task {id}: {cycle}")).collect();
    reconciled.cycles.sort();
    count_unmet(&mut tasks);
    for task in tasks {
        if ledger.tasks.get(&task.id) != Some(&task) {
            reconciled.records.push(Record::Task(Box::new(task)));
        }
    }
    let listed: HashSet<&TaskId> = entries.iter().map(|entry| &entry.new.id).collect();
    for gone in ledger.tasks.all().filter(|task| !listed.contains(&task.id)) {
        reconciled.drop_holds(gone, ledger);
        reconciled.records.push(Record::DropTask(gone.id.clone()));
        reconciled.note(gone, EventKind::Deleted);
    }
    reconciled
}

/// Counts the unmet dependencies of each task.
fn count_unmet(tasks: &mut [Task]) {
    let met: HashMap<TaskId, bool> =
        tasks.iter().map(|task| (task.id.clone(), task.status.satisfies())).collect();
    for task in tasks {
        let unmet = task.depends_on.iter().filter(|id| !met.get(*id).copied().unwrap_or(false));
        task.unmet = unmet.count() as u32;
    }
}

impl Reconciled {
    fn note(&mut self, task: &Task, kind: EventKind) {
        let resource = Some(task.id.resource());
        let label = task.claim.as_ref().map(|claim| claim.by.clone()).unwrap_or_default();
        self.events.push(NewEvent::new(resource, label, None, kind));
    }

    fn add(&mut self, entry: &Entry, cycle: Option<&String>, age: u64, at: StoreTime) -> Task {
        let invalid = invalid_reason(entry, cycle);
        let status = match &entry.state {
            _ if invalid.is_some() => Status::Blocked,
            EntryState::Status(status) => *status,
            EntryState::ForeignClaim(claim) => {
                self.claims.insert(entry.new.id.clone(), claim.clone());
                Status::Pending
            }
            // A process of tenure died before it was remembered.
            EntryState::OwnClaim(_) => {
                self.rewrite.push(entry.new.id.clone());
                Status::Pending
            }
            EntryState::Started | EntryState::Invalid(_) => Status::Pending,
        };
        let mut task = new_task(entry, status, age, at);
        task.error = invalid.map(str::to_owned).or(task.error);
        self.note(&task, EventKind::Added);
        task
    }

    fn compare(
        &mut self,
        entry: &Entry,
        cycle: Option<&String>,
        known: &Task,
        ledger: &Ledger,
    ) -> Task {
        let mut task = adopt_fields(entry, known);
        if let Some(invalid) = invalid_reason(entry, cycle) {
            // A task that is finished stays finished, whatever the entry says by now.
            if !known.status.is_final() {
                if known.status != Status::Blocked {
                    self.change(&mut task, known, Status::Blocked, entry, ledger);
                }
                task.error = Some(invalid.to_owned());
            }
            return task;
        }
        match (&entry.state, known.status) {
            (EntryState::Started | EntryState::Invalid(_), _) => {}
            (EntryState::OwnClaim(token), Status::InProgress)
                if known.claim.as_ref().is_some_and(|claim| claim.token.0 == *token) => {}
            (EntryState::OwnClaim(0), Status::Review) => {}
            // Written by a process of tenure that died, or restored by a program that wrote what it
            // had read before.
            (EntryState::OwnClaim(_), _) => self.rewrite.push(known.id.clone()),
            (EntryState::ForeignClaim(_), Status::Completed) => {
                self.rewrite.push(known.id.clone());
            }
            (EntryState::ForeignClaim(claim), before) => {
                self.claims.insert(known.id.clone(), claim.clone());
                if before != Status::Pending {
                    // Two may work on it for a moment; tenure's worker learns that it lost it.
                    self.change(&mut task, known, Status::Pending, entry, ledger);
                }
            }
            (EntryState::Status(status), before) if *status == before => {}
            (EntryState::Status(Status::Completed), Status::Skipped) => {}
            // Lost by a program that wrote what it had read before: tenure's worker has it still,
            // and what is completed stays so.
            (EntryState::Status(Status::Pending), Status::InProgress)
            | (EntryState::Status(_), Status::Completed) => self.rewrite.push(known.id.clone()),
            (EntryState::Status(status), _) => {
                self.change(&mut task, known, *status, entry, ledger)
            }
        }
        task
    }

    fn change(
        &mut self,
        task: &mut Task,
        known: &Task,
        status: Status,
        entry: &Entry,
        ledger: &Ledger,
    ) {
        self.drop_holds(known, ledger);
        self.note(known, event_of(status, entry));
        task.status = status;
        task.end_try(TryOutcome::Lost, Some("another program changed the task"), self.now);
        task.claim = None;
        if known.status == Status::Blocked {
            // Why it was blocked.
            task.error = None;
        }
        if status.is_final() {
            task.result = entry.new.result.clone().or(task.result.take());
            task.error = entry.new.error.clone().or(task.error.take());
            task.finished_at = entry.finished_at;
            task.finished_by = entry.new.finished_by.clone();
            task.finished_claim = None;
        }
    }

    /// Ends tenure's holds for a task that another program has or finished.
    fn drop_holds(&mut self, task: &Task, ledger: &Ledger) {
        let Some(claim) = &task.claim else { return };
        let holds = ledger.held().filter(|stored| stored.hold.grant == claim.grant);
        let dropped = holds.map(|stored| Record::DropHold {
            resource: stored.hold.want.resource.clone(),
            grant: claim.grant,
        });
        self.records.extend(dropped);
    }
}

fn event_of(status: Status, entry: &Entry) -> EventKind {
    match status {
        Status::Completed => EventKind::Completed,
        Status::Failed => {
            EventKind::Failed { reason: entry.new.error.clone().unwrap_or_default(), retry: false }
        }
        Status::Cancelled => EventKind::Cancelled,
        Status::Skipped => EventKind::Skipped,
        Status::Pending => EventKind::Retried,
        Status::InProgress | Status::Review | Status::Blocked => EventKind::Updated,
    }
}

/// The task with the fields that another program edited.
fn adopt_fields(entry: &Entry, known: &Task) -> Task {
    let mut task = known.clone();
    if entry.fields.title_differs(known) {
        task.title = entry.new.title.clone();
        task.description = entry.new.description.clone();
    }
    if entry.fields.priority_differs(known) {
        task.priority = entry.new.priority;
    }
    if entry.fields.dependencies_differ(known) {
        task.depends_on = entry.new.depends_on.clone();
    }
    if entry.fields.context_differs(known) {
        task.payload = with_context(known, entry.new.payload.as_deref());
    }
    task
}

/// The payload with the list's hints and files to read. The list has the task's own files among
/// them; those are left out, since they are held and not only read.
fn with_context(known: &Task, listed: Option<&str>) -> Option<String> {
    let object = |json: Option<&str>| match json.map(serde_json::from_str::<Value>) {
        None => Some(Map::new()),
        Some(Ok(Value::Object(object))) => Some(object),
        Some(_) => None,
    };
    // A payload of another shape has no place for it.
    let Some(mut payload) = object(known.payload.as_deref()) else { return known.payload.clone() };
    let mut listed = object(listed).unwrap_or_default();
    for name in [CONTEXT_FILES, "hints"] {
        let mut value = listed.shift_remove(name);
        if let Some(Value::Array(files)) = &mut value {
            files.retain(|file| !known.files.iter().any(|held| *file == held.as_str()));
        }
        match value.filter(|value| value.as_array().is_none_or(|files| !files.is_empty())) {
            Some(value) => drop(payload.insert(name.to_owned(), value)),
            None => drop(payload.shift_remove(name)),
        }
    }
    (!payload.is_empty()).then(|| Value::Object(payload).to_string())
}

/// Why a task cannot be claimed as it is listed, if so.
fn invalid_reason<'a>(entry: &'a Entry, cycle: Option<&'a String>) -> Option<&'a str> {
    match &entry.state {
        EntryState::Invalid(reason) => Some(reason),
        EntryState::Status(Status::Pending) => cycle.map(String::as_str),
        _ => None,
    }
}

fn new_task(entry: &Entry, status: Status, age: u64, at: StoreTime) -> Task {
    let created_at = entry.created_at.unwrap_or(WallTime(at.wall_ms));
    let mut task = entry.new.clone().into_task(age, created_at);
    task.status = status;
    task.finished_at = entry.finished_at;
    task
}
