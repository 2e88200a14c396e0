//! The task list of the dialect `coordination`: `tasks.json`, which its programs change under a
//! kernel lock on `tasks.json.lock`.

use super::reconcile::{Entry, EntryFields, EntryState};
use super::{FileVersion, ForeignClaim, ListChange, SharedFolder, TaskList};
use crate::kernel_lock::lock_within;
use crate::store::file::error::FileStoreError;
use crate::store::ledger::Record;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_core::{Status, Task, TaskId, WallTime};
use tenure_text::exchange::{
    self, Format, coordination_status, coordination_task, without_byte_order_mark,
};
use tenure_text::time::{from_value as time_from_value, to_foreign_text as foreign_time};

/// How long to wait for the other programs: they keep the lock for milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// The file, as it was read or written last.
pub(in super::super) struct TasksJson {
    path: PathBuf,
    drafts: PathBuf,
    store: String,
    version: Option<FileVersion>,
    document: Value,
    /// What is invalid in it.
    problems: Vec<String>,
}

impl TasksJson {
    pub(in super::super) fn path(folder: &Path) -> PathBuf {
        folder.join("tasks.json")
    }

    pub(in super::super) fn new(shared: &SharedFolder<'_>) -> TasksJson {
        TasksJson {
            path: TasksJson::path(shared.path),
            drafts: shared.own.join("side"),
            store: shared.store.to_owned(),
            version: None,
            document: Value::Null,
            problems: Vec::new(),
        }
    }

    /// Where the task of an entry stands.
    fn state_of(&self, fields: &Map<String, Value>, status: Status) -> EntryState {
        let word = fields.get("status").and_then(Value::as_str).unwrap_or("available");
        if word.parse() != Ok(Status::InProgress) {
            return EntryState::Status(status);
        }
        let by = fields.get("claimed_by").and_then(Value::as_str).unwrap_or("unknown");
        match fields.get("tenure") {
            // A program that claims anew may keep a field that it does not know.
            Some(own) if own["store"] == self.store.as_str() && own["by"] == by => {
                EntryState::OwnClaim(own["token"].as_u64().unwrap_or(0))
            }
            _ => EntryState::ForeignClaim(ForeignClaim {
                by: by.to_owned(),
                since: fields.get("claimed_at").and_then(time_from_value),
            }),
        }
    }

    /// Ends another program's claim.
    fn free(&mut self, id: &TaskId) {
        let entry = self.list().iter_mut().find(|raw| id_of(raw).as_deref() == Some(id.as_str()));
        let Some(raw) = entry else { return };
        raw["status"] = coordination_status(Status::Pending).into();
        for name in ["claimed_by", "claimed_at", "started_at"] {
            if raw.get(name).is_some() {
                raw[name] = Value::Null;
            }
        }
        set_own(raw, None);
    }

    fn list(&mut self) -> &mut Vec<Value> {
        if !self.document["tasks"].is_array() {
            self.document["tasks"] = json!([]);
        }
        self.document["tasks"].as_array_mut().expect("it was made one just above")
    }

    /// Writes the fields of a task that changed. The status and the claim of a task that another
    /// program has stay as they are.
    fn put(&mut self, task: &Task, before: Option<&Task>, is_theirs: bool) {
        let own = own_field(task, &self.store);
        let new = coordination_task(task);
        let id = Some(task.id.as_str());
        let place = self.list().iter().position(|raw| id_of(raw).as_deref() == id);
        let Some(place) = place else {
            let mut new = new;
            set_own(&mut new, own);
            self.list().push(new);
            return;
        };
        let raw = &mut self.list()[place];
        // A field that tenure did not change stays as the other programs wrote it.
        let old = before.map(coordination_task);
        for name in ["description", "priority", "dependencies", "context"] {
            if old.as_ref().is_none_or(|old| old[name] != new[name]) && raw[name] != new[name] {
                raw[name] = new[name].clone();
            }
        }
        if is_theirs {
            return;
        }
        let word = status_word(task);
        let listed: Option<Status> = raw["status"].as_str().and_then(|word| word.parse().ok());
        if listed != word.parse().ok() || task.status == Status::InProgress {
            raw["status"] = word.into();
        }
        let named = ["claimed_by", "result", "claimed_at", "started_at", "completed_at"];
        for name in named {
            let value = match name {
                // It says who finished the task, which may not be known here.
                "claimed_by"
                    if new[name].is_null()
                        && !matches!(task.status, Status::InProgress | Status::Pending) =>
                {
                    continue;
                }
                _ => &new[name],
            };
            if !(value.is_null() && raw.get(name).is_none()) {
                raw[name] = value.clone();
            }
        }
        set_own(raw, own);
    }
}

impl TaskList for TasksJson {
    /// Takes the lock that its programs take.
    fn lock(&self) -> Result<Option<File>, FileStoreError> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let file =
            File::options().create(true).truncate(false).read(true).write(true).open(&path)?;
        match lock_within(&file, Some(LOCK_PATIENCE))? {
            true => Ok(Some(file)),
            false => Err(FileStoreError::Busy(format!(
                "another program has kept the lock on {} for too long",
                Path::new(&path).display()
            ))),
        }
    }

    fn read(&mut self) -> Result<Option<Vec<Entry>>, FileStoreError> {
        let version = FileVersion::of(&self.path)?;
        if self.version.is_some() && version == self.version {
            return Ok(None);
        }
        if version.is_none() {
            let known = self.document.is_null();
            self.document = Value::Null;
            return Ok((!known).then(Vec::new));
        }
        let damaged = |reason: String| {
            FileStoreError::ForeignFile(format!("{}: {reason}", self.path.display()))
        };
        let (file, problems) = exchange::read_foreign_file(&self.path, Format::Coordination)
            .map_err(|error| damaged(error.to_string()))?;
        let text = std::fs::read(&self.path)?;
        let document: Value = serde_json::from_slice(without_byte_order_mark(&text))
            .map_err(|error| damaged(error.to_string()))?;
        let raw = document.get("tasks").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut by_id: HashMap<String, Map<String, Value>> = HashMap::new();
        for raw in raw {
            if let (Some(id), Value::Object(fields)) = (id_of(&raw), raw) {
                by_id.entry(id).or_insert(fields);
            }
        }
        let mut entries = Vec::with_capacity(file.tasks.len());
        self.problems.clear();
        for (index, mut new) in file.tasks.into_iter().enumerate() {
            let Some(fields) = by_id.remove(new.id.as_str()) else {
                self.problems.push(format!("task {} has no id", index + 1));
                continue;
            };
            new.position = index as i64;
            // Programs of this dialect tell tasks apart by their id alone.
            new.key = None;
            let invalid = problems.iter().find(|problem| problem.id.as_ref() == Some(&new.id));
            entries.push(Entry {
                state: match invalid {
                    Some(problem) => EntryState::Invalid(problem.reason.clone()),
                    None => self.state_of(&fields, new.status),
                },
                created_at: fields.get("created_at").and_then(time_from_value),
                finished_at: fields.get("completed_at").and_then(time_from_value),
                fields: Box::new(Fields(fields)),
                new,
            });
        }
        self.problems.extend(problems.into_iter().map(|problem| problem.reason));
        self.document = document;
        self.version = version;
        Ok(Some(entries))
    }

    fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Writes tasks as they are by now. Claims of other programs stay as they are, but for those of
    /// `freed`, which end.
    fn write(&mut self, change: &ListChange<'_>) -> Result<(), FileStoreError> {
        let &ListChange { records, freed, claims, ledger, at } = change;
        let before = self.document.clone();
        if self.document.is_null() {
            let now = foreign_time(WallTime(at.wall_ms));
            self.document = json!({
                "version": "1.0", "created_at": now, "last_updated": now, "tasks": [],
            });
        }
        for record in records {
            match record {
                Record::Task(task) => {
                    let is_theirs = task.status == Status::Pending && claims.contains_key(&task.id);
                    self.put(task, ledger.tasks.get(&task.id), is_theirs);
                }
                Record::DropTask(id) => {
                    self.list().retain(|raw| id_of(raw).as_deref() != Some(id.as_str()));
                }
                _ => {}
            }
        }
        for id in freed {
            self.free(id);
        }
        if self.document == before {
            return Ok(());
        }
        self.document["last_updated"] = foreign_time(WallTime(at.wall_ms)).into();
        let steps = ["tasks-drafted", "tasks-replaced"];
        match super::replace(&self.path, &self.document, &self.drafts, steps) {
            // The version of what was written: a later change by a program that takes no lock is read.
            Ok(written) => self.version = Some(written),
            Err(error) => {
                self.document = before;
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.version = None;
    }

    fn has_changed(&self) -> Result<bool, FileStoreError> {
        Ok(false)
    }
}

fn status_word(task: &Task) -> &'static str {
    match task.status {
        Status::InProgress if task.started_at.is_none() => "claimed",
        status => coordination_status(status),
    }
}

/// The id of an entry; numbers count as their digits.
fn id_of(raw: &Value) -> Option<String> {
    match raw.get("id").or_else(|| raw.get("task_id"))? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// The field by which tenure recognises its own claims.
fn own_field(task: &Task, store: &str) -> Option<Value> {
    match (task.status, &task.claim) {
        (Status::InProgress, Some(claim)) => {
            Some(json!({ "store": store, "token": claim.token, "by": claim.by }))
        }
        (Status::Review, _) => Some(json!({ "store": store, "token": 0, "by": Value::Null })),
        _ => None,
    }
}

fn set_own(raw: &mut Value, own: Option<Value>) {
    let Some(fields) = raw.as_object_mut() else { return };
    match own {
        Some(mut own) => {
            if own["by"].is_null() {
                own["by"] = fields.get("claimed_by").cloned().unwrap_or("unknown".into());
            }
            fields.insert("tenure".to_owned(), own);
        }
        None => drop(fields.shift_remove("tenure")),
    }
}

/// The fields of an entry as its programs wrote them.
#[derive(Debug)]
struct Fields(Map<String, Value>);

impl Fields {
    fn differs(&self, name: &str, task: &Task) -> bool {
        let written = coordination_task(task);
        let mine = self.0.get(name).unwrap_or(&Value::Null);
        *mine != written[name] && !(is_absent(mine) && is_absent(&written[name]))
    }
}

fn is_absent(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty) || *value == json!("")
}

impl EntryFields for Fields {
    fn title_differs(&self, task: &Task) -> bool {
        self.differs("description", task)
    }

    fn priority_differs(&self, task: &Task) -> bool {
        self.0.contains_key("priority") && self.differs("priority", task)
    }

    fn dependencies_differ(&self, task: &Task) -> bool {
        self.differs("dependencies", task)
    }

    fn context_differs(&self, task: &Task) -> bool {
        let written = coordination_task(task);
        let context = self.0.get("context").and_then(Value::as_object);
        context.is_some_and(|context| {
            ["files", "hints"].into_iter().any(|name| {
                let (mine, known) = (context.get(name), &written["context"][name]);
                mine.is_some_and(|mine| mine != known && !(is_absent(mine) && is_absent(known)))
            })
        })
    }
}
