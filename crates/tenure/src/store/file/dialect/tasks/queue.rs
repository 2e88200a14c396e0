//! `queue.json`, which workers only read, and `execution_log.jsonl`, to which they append: the last
//! line about a task is where it stands. Who has a task, its lock file tells.

use super::merge::{Entry, Fields, Says};
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

/// What a task's text may be called.
const TEXT_FIELDS: [&str; 4] = ["instruction", "prompt", "task", "description"];

/// The two files, as they were read last.
pub(super) struct Queue {
    queue: PathBuf,
    log: PathBuf,
    drafts: PathBuf,
    store: String,
    stamp: Option<(Option<std::time::SystemTime>, u64)>,
    /// Up to where the log was read.
    read_until: u64,
    states: HashMap<String, State>,
    /// What made no sense in the queue.
    problems: Vec<String>,
}

/// The last line of the log about a task.
#[derive(Clone, Debug)]
struct State {
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

/// The files of the list whose lock files are in this folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    ["queue.json", "execution_log.jsonl"].map(|name| home(folder).join(name)).to_vec()
}

impl Queue {
    pub(super) fn new(folder: &Path, own: &Path, store: &str) -> Queue {
        let home = home(folder);
        Queue {
            queue: home.join("queue.json"),
            log: home.join("execution_log.jsonl"),
            drafts: own.join("side"),
            store: store.to_owned(),
            stamp: None,
            read_until: 0,
            states: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// What the files say, if they changed since the last time.
    pub(super) fn read(&mut self) -> Result<Option<Vec<Entry>>, FileStoreError> {
        let news = self.read_log()?;
        let stamp = stamp(&self.queue)?;
        if stamp.is_none() {
            let known = self.stamp.take().is_some();
            return Ok(known.then(Vec::new));
        }
        if !news && self.stamp == stamp {
            return Ok(None);
        }
        let (file, problems) =
            exchange::read_foreign_file(&self.queue, Format::Queue).map_err(|error| {
                FileStoreError::ForeignFile(format!("{}: {error}", self.queue.display()))
            })?;
        self.stamp = stamp;
        let entries = file.tasks.into_iter().enumerate().map(|(index, mut new)| {
            new.position = index as i64;
            new.key = None;
            let state = self.states.get(new.id.as_str());
            let wrong = problems.iter().find(|problem| problem.id.as_ref() == Some(&new.id));
            let says = match (state.map(|state| state.status), wrong) {
                (Some(Status::InProgress), _) => Says::Begun,
                (Some(status), _) => Says::Status(status),
                (None, Some(problem)) => Says::Wrong(problem.reason.clone()),
                (None, None) => Says::Status(new.status),
            };
            if let Some(state) = state {
                new.result = state.result.clone().or(new.result);
                new.error = state.error.clone().or(new.error);
            }
            Entry {
                says,
                created_at: None,
                finished_at: state.and_then(|state| state.at),
                edited: Box::new(Raw {
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

    /// What makes no sense in the queue, one sentence each.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(super) fn read_again(&mut self) {
        (self.stamp, self.read_until) = (None, 0);
        self.states.clear();
    }

    /// Whether the files changed since they were read.
    pub(super) fn has_news(&self) -> Result<bool, FileStoreError> {
        let length = stamp(&self.log)?.map_or(0, |(_, length)| length);
        Ok(length != self.read_until || stamp(&self.queue)? != self.stamp)
    }

    /// Reads what came to the log; says whether something did.
    fn read_log(&mut self) -> Result<bool, FileStoreError> {
        let mut file = match File::open(&self.log) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let length = file.metadata()?.len();
        if length < self.read_until {
            // It was begun anew.
            (self.read_until, self.states) = (0, HashMap::new());
        }
        file.seek(SeekFrom::Start(self.read_until))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.read_until += whole as u64;
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            // A line that somebody died writing says nothing.
            let Ok(value) = serde_json::from_slice::<Value>(without_byte_order_mark(line)) else {
                continue;
            };
            let status = value["status"].as_str().and_then(status_of);
            if let (Some(id), Some(status)) = (value["task_id"].as_str(), status) {
                let state = State {
                    status,
                    at: value.get("timestamp").and_then(time_from_value),
                    result: value
                        .get("result")
                        .filter(|value| !value.is_null())
                        .map(Value::to_string),
                    error: value["error"].as_str().map(str::to_owned),
                };
                self.states.insert(id.to_owned(), state);
            }
        }
        Ok(whole > 0)
    }

    /// Adds new tasks to the queue, and a line to the log for each that moved.
    pub(super) fn write(
        &mut self,
        records: &[Record],
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
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

    /// Writes tasks that are new, were edited or deleted. Its programs take no lock for that.
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
        let written = super::replace(&self.queue, &document, &self.drafts, steps)?;
        self.stamp = Some((written.modified().ok(), written.len()));
        Ok(())
    }
}

/// Words of the log; `None` for those that say nothing about where a task stands.
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

/// Adds whole lines in one write, after the end of what somebody died writing.
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

/// An entry as its programs wrote it.
#[derive(Debug)]
struct Raw {
    instruction: (String, Option<String>),
    priority: u8,
    depends_on: Vec<TaskId>,
}

impl Fields for Raw {
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

fn stamp(path: &Path) -> io::Result<Option<(Option<std::time::SystemTime>, u64)>> {
    match std::fs::metadata(path) {
        Ok(meta) => Ok(Some((meta.modified().ok(), meta.len()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
