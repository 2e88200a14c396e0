//! The task list of the dialect `worker`: `queue.json`, which workers only read, and
//! `execution_log.jsonl`, to which they append. The last line about a task is its status; its lock
//! file tells who has it.

use super::reconcile::{Entry, EntryFields, EntryState};
use super::{FileVersion, ListChange, SharedFolder, TaskList};
use crate::store::file::error::FileStoreError;
use crate::store::file::failpoint::failpoint;
use crate::store::ledger::{Ledger, Record};
use crate::store::store_time::StoreTime;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tenure_core::{Status, Task, TaskId, WallTime};
use tenure_text::exchange::{self, Format, queue_task, without_byte_order_mark};
use tenure_text::time::{from_value as time_from_value, to_foreign_text as foreign_time};

/// The names that the field of a task's text may have.
const TEXT_FIELDS: [&str; 4] = ["instruction", "prompt", "task", "description"];

/// The two files, as they were read last.
pub(in super::super) struct QueueJson {
    queue: PathBuf,
    log: PathBuf,
    drafts: PathBuf,
    store: String,
    version: Option<FileVersion>,
    /// Up to where the log was read.
    read_until: u64,
    /// Where tasks stand by the log.
    outcomes: HashMap<String, Outcome>,
    /// What is invalid in the queue.
    problems: Vec<String>,
}

/// The last line of the log about a task.
#[derive(Clone, Debug)]
struct Outcome {
    status: Status,
    at: Option<WallTime>,
    result: Option<String>,
    error: Option<String>,
}

/// The folder of `queue.json` and `execution_log.jsonl`.
fn home(folder: &Path) -> &Path {
    // The lock files usually have a folder of their own beside the two.
    let beside = folder.parent().unwrap_or(folder);
    let inside = folder.join("queue.json").exists();
    let apart = folder.file_name().is_some_and(|name| name == "task_locks");
    match inside || !(apart || beside.join("queue.json").exists()) {
        true => folder,
        false => beside,
    }
}

impl QueueJson {
    /// The two files of the list whose lock files are in this folder.
    pub(in super::super) fn paths(folder: &Path) -> [PathBuf; 2] {
        ["queue.json", "execution_log.jsonl"].map(|name| home(folder).join(name))
    }

    pub(in super::super) fn new(shared: &SharedFolder<'_>) -> QueueJson {
        let [queue, log] = QueueJson::paths(shared.path);
        QueueJson {
            queue,
            log,
            drafts: shared.own.join("side"),
            store: shared.store.to_owned(),
            version: None,
            read_until: 0,
            outcomes: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// Reads what was added to the log, and returns whether something was.
    fn read_log(&mut self) -> Result<bool, FileStoreError> {
        let mut file = match File::open(&self.log) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let length = file.metadata()?.len();
        if length < self.read_until {
            // It was begun anew.
            (self.read_until, self.outcomes) = (0, HashMap::new());
        }
        file.seek(SeekFrom::Start(self.read_until))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.read_until += whole as u64;
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            // A line whose writer died is skipped.
            let Ok(value) = serde_json::from_slice::<Value>(without_byte_order_mark(line)) else {
                continue;
            };
            let status = value["status"].as_str().and_then(status_of);
            if let (Some(id), Some(status)) = (value["task_id"].as_str(), status) {
                let outcome = Outcome {
                    status,
                    at: value.get("timestamp").and_then(time_from_value),
                    result: value
                        .get("result")
                        .filter(|value| !value.is_null())
                        .map(Value::to_string),
                    error: value["error"].as_str().map(str::to_owned),
                };
                self.outcomes.insert(id.to_owned(), outcome);
            }
        }
        Ok(whole > 0)
    }

    fn line(&self, task: &Task, before: Option<&Task>, at: StoreTime) -> Value {
        let claim = task.claim.as_ref().or(before.and_then(|before| before.claim.as_ref()));
        let mut line = json!({
            "task_id": task.id.as_str(),
            "worker_id": claim.map_or("tenure", |claim| claim.by.as_str()),
            "status": task.status.word(),
            "timestamp": foreign_time(WallTime(at.wall_ms)),
            "attempt": task.attempts,
        });
        if let Some(result) = &task.result {
            line["result"] = serde_json::from_str(result).unwrap_or(Value::from(result.as_str()));
        }
        if let Some(error) = task.error.as_ref().filter(|_| task.status != Status::Completed) {
            line["error"] = error.as_str().into();
        }
        line["tenure"] = json!({ "store": self.store, "token": claim.map(|claim| claim.token) });
        line
    }

    /// Writes tasks that are new, edited or deleted. The other programs take no lock for that.
    fn edit_queue(&mut self, records: &[Record], ledger: &Ledger) -> Result<(), FileStoreError> {
        let edited = |task: &Task| match ledger.tasks.get(&task.id) {
            Some(before) => queue_task(before) != queue_task(task),
            None => true,
        };
        let concerns = records.iter().any(|record| match record {
            Record::Task(task) => edited(task),
            Record::DropTask(_) => true,
            _ => false,
        });
        if !concerns {
            return Ok(());
        }
        let damaged = |error: serde_json::Error| {
            FileStoreError::ForeignFile(format!("{}: {error}", self.queue.display()))
        };
        let mut document: Value = match std::fs::read(&self.queue) {
            Ok(text) => serde_json::from_slice(without_byte_order_mark(&text)).map_err(damaged)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                json!({ "version": "1.0", "tasks": [], "completed": [], "failed": [] })
            }
            Err(error) => return Err(error.into()),
        };
        if !document["tasks"].is_array() {
            document["tasks"] = json!([]);
        }
        for record in records {
            match record {
                Record::Task(task) if edited(task) => put(&mut document, task),
                Record::DropTask(id) => remove(&mut document, id),
                _ => {}
            }
        }
        let steps = ["queue-drafted", "queue-replaced"];
        self.version = Some(super::replace(&self.queue, &document, &self.drafts, steps)?);
        Ok(())
    }
}

impl TaskList for QueueJson {
    fn lock(&self) -> Result<Option<File>, FileStoreError> {
        Ok(None)
    }

    fn read(&mut self) -> Result<Option<Vec<Entry>>, FileStoreError> {
        let has_log_grown = self.read_log()?;
        let version = FileVersion::of(&self.queue)?;
        if version.is_none() {
            let known = self.version.take().is_some();
            return Ok(known.then(Vec::new));
        }
        if !has_log_grown && self.version == version {
            return Ok(None);
        }
        let (file, problems) =
            exchange::read_foreign_file(&self.queue, Format::Queue).map_err(|error| {
                FileStoreError::ForeignFile(format!("{}: {error}", self.queue.display()))
            })?;
        self.version = version;
        let entries = file.tasks.into_iter().enumerate().map(|(index, mut new)| {
            new.position = index as i64;
            new.key = None;
            let logged = self.outcomes.get(new.id.as_str());
            let invalid = problems.iter().find(|problem| problem.id.as_ref() == Some(&new.id));
            let state = match (logged.map(|logged| logged.status), invalid) {
                (Some(Status::InProgress), _) => EntryState::Started,
                (Some(status), _) => EntryState::Status(status),
                (None, Some(problem)) => EntryState::Invalid(problem.reason.clone()),
                (None, None) => EntryState::Status(new.status),
            };
            if let Some(logged) = logged {
                new.result = logged.result.clone().or(new.result);
                new.error = logged.error.clone().or(new.error);
            }
            Entry {
                state,
                created_at: None,
                finished_at: logged.and_then(|logged| logged.at),
                fields: Box::new(Fields {
                    instruction: (new.title.clone(), new.description.clone()),
                    priority: new.priority,
                    depends_on: new.depends_on.clone(),
                }),
                new,
            }
        });
        let entries = entries.collect();
        self.problems = problems.into_iter().map(|problem| problem.reason).collect();
        Ok(Some(entries))
    }

    fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Writes new and edited tasks to the queue, and a line to the log for each change of status.
    fn write(&mut self, change: &ListChange<'_>) -> Result<(), FileStoreError> {
        let &ListChange { records, ledger, at, .. } = change;
        let mut lines = Vec::new();
        for record in records {
            let Record::Task(task) = record else { continue };
            let before = ledger.tasks.get(&task.id);
            let moved = before.is_some_and(|before| before.status != task.status);
            if moved || before.is_none() && task.status != Status::Pending {
                let line = self.line(task, before, at);
                lines.extend_from_slice(line.to_string().as_bytes());
                lines.push(b'\n');
            }
        }
        self.edit_queue(records, ledger)?;
        if !lines.is_empty() {
            append(&self.log, &lines)?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        (self.version, self.read_until) = (None, 0);
        self.outcomes.clear();
    }

    fn has_changed(&self) -> Result<bool, FileStoreError> {
        let length = FileVersion::of(&self.log)?.map_or(0, |version| version.bytes);
        Ok(length != self.read_until || FileVersion::of(&self.queue)? != self.version)
    }
}

/// The status that a word of the log means; `None` for words that mean none.
fn status_of(word: &str) -> Option<Status> {
    match word {
        "started" | "running" | "acquired" => Some(Status::InProgress),
        "success" | "succeeded" => Some(Status::Completed),
        "error" => Some(Status::Failed),
        "released" | "retry" | "skipped_locked" => None,
        word => word.parse().ok(),
    }
}

fn put(document: &mut Value, task: &Task) {
    let new = queue_task(task);
    let id = task.id.as_str();
    let tasks = document["tasks"].as_array_mut().expect("it is a list");
    match tasks.iter_mut().find(|raw| raw["id"].as_str() == Some(id)) {
        Some(raw) => {
            // Workers read the text where its program wrote it.
            let text = TEXT_FIELDS.into_iter().find(|name| raw.get(name).is_some());
            for (name, value) in new.as_object().into_iter().flatten() {
                let name = match name.as_str() {
                    "instruction" => text.unwrap_or("instruction"),
                    name => name,
                };
                raw[name] = value.clone();
            }
        }
        None => tasks.push(new),
    }
}

fn remove(document: &mut Value, id: &TaskId) {
    for list in ["tasks", "completed", "failed"] {
        if let Some(list) = document[list].as_array_mut() {
            list.retain(|raw| {
                raw["id"].as_str() != Some(id.as_str()) && raw.as_str() != Some(id.as_str())
            });
        }
    }
}

/// Appends whole lines in one write, and ends a line whose writer died before.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = File::options().create(true).read(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
    }
    let mut bytes = Vec::with_capacity(lines.len() + 1);
    if last != *b"\n" {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(lines);
    file.write_all(&bytes)?;
    file.sync_data()?;
    failpoint("log-appended");
    Ok(())
}

/// The fields of an entry as its programs wrote them.
#[derive(Debug)]
struct Fields {
    instruction: (String, Option<String>),
    priority: u8,
    depends_on: Vec<TaskId>,
}

impl EntryFields for Fields {
    fn title_differs(&self, task: &Task) -> bool {
        let written = queue_task(task);
        let mine = match &self.instruction.1 {
            Some(description) => description,
            None => &self.instruction.0,
        };
        written["instruction"].as_str() != Some(mine)
            && (self.instruction.0 != task.title || self.instruction.1 != task.description)
    }

    fn priority_differs(&self, task: &Task) -> bool {
        self.priority != task.priority
    }

    fn dependencies_differ(&self, task: &Task) -> bool {
        self.depends_on != task.depends_on
    }

    fn context_differs(&self, _: &Task) -> bool {
        false
    }
}
