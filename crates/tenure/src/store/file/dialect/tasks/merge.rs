//! Taking in what other programs did to their list. Pure: what their files say and what the ledger
//! knows, to what to remember.

use super::Foreign;
use crate::store::ledger::{Ledger, Record};
use crate::store::store_time::StoreTime;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use tenure_core::rules::tasks::NewTask;
use tenure_core::{EventKind, NewEvent, Status, Task, TaskId, WallTime};
use tenure_text::exchange::CONTEXT_FILES;

/// What a list says of one task.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) new: NewTask,
    pub(super) says: Says,
    /// Which of title, priority, dependencies and context are others than the ledger's would be.
    pub(super) edited: Box<dyn Fields>,
    pub(super) created_at: Option<WallTime>,
    pub(super) finished_at: Option<WallTime>,
}

/// Tells how an entry differs from a task in what its dialect can say of it.
pub(super) trait Fields: std::fmt::Debug {
    fn title_differs(&self, task: &Task) -> bool;
    fn priority_differs(&self, task: &Task) -> bool;
    fn dependencies_differ(&self, task: &Task) -> bool;
    fn context_differs(&self, task: &Task) -> bool;
}

/// Where a list says that a task stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Says {
    /// Nobody has it.
    Status(Status),
    /// Tenure has it, under this token.
    Own(u64),
    /// Another program has it.
    Foreign { by: String, since: Option<WallTime> },
    /// Somebody began; who has it, a lock file tells.
    Begun,
    /// The entry makes no sense, for this reason: nobody can take the task as it is.
    Wrong(String),
}

/// What to remember.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) records: Vec<Record>,
    pub(crate) events: Vec<NewEvent>,
    /// What the list must be told again.
    pub(crate) rewrite: Vec<TaskId>,
    pub(super) claims: BTreeMap<TaskId, Foreign>,
    /// Which tasks wait for themselves, one sentence each.
    pub(super) cycles: Vec<String>,
}

/// Compares the list with the ledger.
pub(super) fn merge(entries: &[Entry], ledger: &Ledger, at: StoreTime) -> Merged {
    let mut merged = Merged::default();
    let mut tasks: Vec<Task> = Vec::with_capacity(entries.len());
    let cycles = cycles(entries);
    for entry in entries {
        let age = ledger.revision + 1 + merged.events.len() as u64;
        let task = match ledger.tasks.get(&entry.new.id) {
            None => merged.add(entry, cycles.get(&entry.new.id), age, at),
            Some(known) => merged.compare(entry, cycles.get(&entry.new.id), known, ledger),
        };
        tasks.push(task);
    }
    merged.cycles = cycles.iter().map(|(id, cycle)| format!("task {id}: {cycle}")).collect();
    merged.cycles.sort();
    settle_unmet(&mut tasks);
    for task in tasks {
        if ledger.tasks.get(&task.id) != Some(&task) {
            merged.records.push(Record::Task(Box::new(task)));
        }
    }
    let listed: HashSet<&TaskId> = entries.iter().map(|entry| &entry.new.id).collect();
    for gone in ledger.tasks.all().filter(|task| !listed.contains(&task.id)) {
        merged.drop_holds(gone, ledger);
        merged.records.push(Record::DropTask(gone.id.clone()));
        merged.note(gone, EventKind::Deleted);
    }
    merged
}

/// Counts of each what it waits for.
fn settle_unmet(tasks: &mut [Task]) {
    let met: HashMap<TaskId, bool> =
        tasks.iter().map(|task| (task.id.clone(), task.status.satisfies())).collect();
    for task in tasks {
        let unmet = task.depends_on.iter().filter(|id| !met.get(*id).copied().unwrap_or(false));
        task.unmet = unmet.count() as u32;
    }
}

impl Merged {
    fn note(&mut self, task: &Task, kind: EventKind) {
        let resource = Some(task.id.resource());
        let label = task.claim.as_ref().map(|claim| claim.by.clone()).unwrap_or_default();
        self.events.push(NewEvent { resource, label, token: None, kind });
    }

    fn add(&mut self, entry: &Entry, cycle: Option<&String>, age: u64, at: StoreTime) -> Task {
        let wrong = wrong_with(entry, cycle);
        let status = match &entry.says {
            _ if wrong.is_some() => Status::Blocked,
            Says::Status(status) => *status,
            Says::Foreign { by, since } => {
                let foreign = Foreign { by: by.clone(), since: *since };
                self.claims.insert(entry.new.id.clone(), foreign);
                Status::Pending
            }
            // Somebody of tenure died before it was remembered.
            Says::Own(_) => {
                self.rewrite.push(entry.new.id.clone());
                Status::Pending
            }
            Says::Begun | Says::Wrong(_) => Status::Pending,
        };
        let mut task = new_task(entry, status, age, at);
        task.error = wrong.map(str::to_owned).or(task.error);
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
        if let Some(wrong) = wrong_with(entry, cycle) {
            // What came to its end stays there, whatever the entry says by now.
            if !known.status.is_final() {
                if known.status != Status::Blocked {
                    self.change(&mut task, known, Status::Blocked, entry, ledger);
                }
                task.error = Some(wrong.to_owned());
            }
            return task;
        }
        match (&entry.says, known.status) {
            (Says::Begun | Says::Wrong(_), _) => {}
            (Says::Own(token), Status::InProgress)
                if known.claim.as_ref().is_some_and(|claim| claim.token.0 == *token) => {}
            (Says::Own(0), Status::Review) => {}
            // Written by somebody of tenure who died, or brought back by a program that wrote what
            // it had read before.
            (Says::Own(_), _) => self.rewrite.push(known.id.clone()),
            (Says::Foreign { .. }, Status::Completed) => self.rewrite.push(known.id.clone()),
            (Says::Foreign { by, since }, before) => {
                let foreign = Foreign { by: by.clone(), since: *since };
                self.claims.insert(known.id.clone(), foreign);
                if before != Status::Pending {
                    // Two may work on it for a moment; tenure's worker learns that it lost it.
                    self.change(&mut task, known, Status::Pending, entry, ledger);
                }
            }
            (Says::Status(says), before) if *says == before => {}
            (Says::Status(Status::Completed), Status::Skipped) => {}
            // Lost by a program that wrote what it had read before: tenure's worker has it still,
            // and what is completed stays so.
            (Says::Status(Status::Pending), Status::InProgress)
            | (Says::Status(_), Status::Completed) => self.rewrite.push(known.id.clone()),
            (Says::Status(says), _) => self.change(&mut task, known, *says, entry, ledger),
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

    /// Ends what tenure holds for a task that is another's, or at its end, by now.
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

/// What the list says otherwise than the ledger would.
fn adopt_fields(entry: &Entry, known: &Task) -> Task {
    let mut task = known.clone();
    if entry.edited.title_differs(known) {
        task.title = entry.new.title.clone();
        task.description = entry.new.description.clone();
    }
    if entry.edited.priority_differs(known) {
        task.priority = entry.new.priority;
    }
    if entry.edited.dependencies_differ(known) {
        task.depends_on = entry.new.depends_on.clone();
    }
    if entry.edited.context_differs(known) {
        task.payload = with_context(known, entry.new.payload.as_deref());
    }
    task
}

/// The payload with what a list says of files to read and hints. Files that are held are listed
/// there too, and are not to be read only.
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

/// Why a task cannot be taken as it is listed, if so.
fn wrong_with<'a>(entry: &'a Entry, cycle: Option<&'a String>) -> Option<&'a str> {
    match &entry.says {
        Says::Wrong(reason) => Some(reason),
        Says::Status(Status::Pending) => cycle.map(String::as_str),
        _ => None,
    }
}

/// The tasks that wait for themselves, each with a sentence that names the cycle.
fn cycles(entries: &[Entry]) -> HashMap<TaskId, String> {
    let waits = |entry: &&Entry| !matches!(entry.says, Says::Status(status) if status.satisfies());
    let waiting: HashMap<&TaskId, &[TaskId]> = entries
        .iter()
        .filter(waits)
        .map(|entry| (&entry.new.id, entry.new.depends_on.as_slice()))
        .collect();
    // Those that wait for nothing, or only for such, are in no cycle.
    let mut left: HashMap<&TaskId, usize> = waiting
        .iter()
        .map(|(id, before)| (*id, before.iter().filter(|id| waiting.contains_key(id)).count()))
        .collect();
    let mut dependents: HashMap<&TaskId, Vec<&TaskId>> = HashMap::new();
    for (id, before) in &waiting {
        for before in before.iter() {
            dependents.entry(before).or_default().push(id);
        }
    }
    let mut free: Vec<&TaskId> =
        left.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = free.pop() {
        left.remove(id);
        for dependent in dependents.get(id).into_iter().flatten() {
            if let Some(count) = left.get_mut(dependent) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    free.push(dependent);
                }
            }
        }
    }
    let mut found = HashMap::new();
    for start in left.keys() {
        if let Some(cycle) = cycle_through(start, &waiting, &left) {
            let names: Vec<&str> = cycle.iter().map(|id| id.as_str()).collect();
            let text = format!("it waits for itself: {}", names.join(" → "));
            found.insert((*start).clone(), text);
        }
    }
    found
}

/// The shortest way from a task over what it waits for back to itself.
fn cycle_through<'a>(
    start: &'a TaskId,
    waiting: &HashMap<&'a TaskId, &'a [TaskId]>,
    among: &HashMap<&'a TaskId, usize>,
) -> Option<Vec<&'a TaskId>> {
    let mut came_from: HashMap<&TaskId, &TaskId> = HashMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(id) = queue.pop_front() {
        for before in waiting.get(id).into_iter().flat_map(|before| before.iter()) {
            if before == start {
                let mut way = vec![start];
                let mut at = id;
                while at != start {
                    way.push(at);
                    at = came_from[at];
                }
                way.push(start);
                way.reverse();
                return Some(way);
            }
            if among.contains_key(before) && !came_from.contains_key(before) {
                came_from.insert(before, id);
                queue.push_back(before);
            }
        }
    }
    None
}

fn new_task(entry: &Entry, status: Status, age: u64, at: StoreTime) -> Task {
    let new = entry.new.clone();
    Task {
        id: new.id,
        title: new.title,
        description: new.description,
        section: new.section,
        status,
        priority: new.priority,
        position: new.position,
        age,
        depends_on: new.depends_on,
        unmet: 0,
        labels: new.labels,
        files: new.files,
        payload: new.payload,
        max_attempts: new.max_attempts,
        attempts: 0,
        recoveries: 0,
        timeout: new.timeout,
        not_before: new.not_before,
        key: new.key,
        claim: None,
        result: new.result,
        error: new.error,
        feedback: None,
        created_at: entry.created_at.unwrap_or(WallTime(at.wall_ms)),
        claimed_at: None,
        started_at: None,
        finished_at: entry.finished_at,
        finished_by: new.finished_by,
        finished_claim: None,
    }
}
