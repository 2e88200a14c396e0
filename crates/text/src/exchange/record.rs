//! Converts one object of a file to one task.

use super::assemble::{Draft, unnamed};
use super::error::quote;
use super::fields::{Fields, show};
use super::notes::{Loss, Notes};
use super::{CONTEXT_FILES, ExchangeError, Format, priority};
use crate::duration::parse_seconds;
use crate::time;
use serde_json::{Map, Value};
use std::time::Duration;
use tenure_core::rules::tasks::NewTask;
use tenure_core::task::PRIORITY_MAX;
use tenure_core::{Kind, Note, Resource, Status, TaskId};

/// The length of a title that is made from a longer description; the description keeps all of it.
const TITLE_CHARACTERS: usize = 120;

/// Fields about the task's history elsewhere, which are not imported.
const HISTORY: [&str; 10] = [
    "attempts",
    "tries",
    "recoveries",
    "feedback",
    "created_at",
    "updated_at",
    "claimed_at",
    "started_at",
    "finished_at",
    "completed_at",
];

/// Names of the field with the worker of a task.
const OWNER: [&str; 6] =
    ["claimed_by", "worker_id", "terminal_id", "agent_id", "runner_id", "session_id"];

/// Reads the `number`-th task of a list. A text alone is a title.
pub(super) fn read(
    value: Value,
    number: usize,
    format: Format,
    notes: &mut Notes,
) -> Result<Draft, ExchangeError> {
    let place = format!("task {number}");
    let object = match value {
        Value::Object(object) => object,
        Value::String(title) => Map::from_iter([("title".to_owned(), Value::String(title))]),
        other => {
            let (found, expected) = (super::fields::kind(&other), "an object or a title");
            return Err(ExchangeError::Shape { place, found, expected });
        }
    };
    let mut fields = Fields::new(place, object);
    let id = read_id(&mut fields)?;
    if let Some(id) = &id {
        fields.rename(format!("task {number} ({})", quote(id.as_str())));
    }
    let name = id.as_ref().map_or_else(|| fields.place().to_owned(), TaskId::to_string);
    let has_id = id.is_some();
    let mut reader = Reader { fields, name, has_id, format, notes, extra: Map::new() };
    let mut task = reader.task()?;
    let after = reader.dependencies()?;
    reader.finish(&mut task)?;
    Ok(Draft { id, task, after, after_drafts: vec![] })
}

fn read_id(fields: &mut Fields) -> Result<Option<TaskId>, ExchangeError> {
    let Some(id) = fields.text(&["id", "task_id"])? else { return Ok(None) };
    id.parse()
        .map(Some)
        .map_err(|error: tenure_core::ResourceError| fields.wrong("id", error.to_string()))
}

struct Reader<'a> {
    fields: Fields,
    /// The id, or the position in the file.
    name: String,
    has_id: bool,
    format: Format,
    notes: &'a mut Notes,
    /// Unknown fields, which go into the payload.
    extra: Map<String, Value>,
}

impl Reader<'_> {
    fn task(&mut self) -> Result<NewTask, ExchangeError> {
        let (title, description) = self.title()?;
        let mut task = NewTask { description, ..NewTask::new(unnamed(), title) };
        task.section = self.fields.text(&["section"])?;
        task.status = self.status()?;
        if let Some(priority) = self.priority()? {
            task.priority = priority;
        }
        if let Some(position) = self.fields.whole(&["position"], i64::MIN, i64::MAX)? {
            task.position = position;
        }
        task.labels = self.fields.texts(&["labels", "tags", "label"], true)?.unwrap_or_default();
        task.files = self.files()?;
        if let Some(most) = self.fields.whole(&["max_attempts"], 1, i64::from(u32::MAX))? {
            task.max_attempts = most as u32;
        }
        task.timeout = self.timeout()?;
        task.not_before = self.not_before()?;
        task.key = self.fields.text(&["key", "idempotency_key"])?;
        task.payload = self.json("payload", "payload_json")?;
        task.result = self.json("result", "result_json")?;
        task.error = self.fields.text(&["error"])?;
        task.finished_by = self.fields.text(&["finished_by", "completed_by"])?;
        task.notes = self.task_notes();
        if self.is_foreign() && task.finished_by.is_none() && is_done(task.status) {
            // Programs that only record the claimer mean the worker that finished it.
            task.finished_by = self.fields.text(&OWNER)?;
        }
        Ok(task)
    }

    /// The notes of our own files, each with author, time and text. A field of that name with anything
    /// else in it is no field of a task.
    fn task_notes(&mut self) -> Vec<Note> {
        if self.is_foreign() {
            return vec![];
        }
        let Some((name, value)) = self.fields.take(&["notes"]) else { return vec![] };
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let notes: Option<Vec<Note>> = list.iter().map(note).collect();
        match notes.filter(|notes| !notes.is_empty()) {
            Some(notes) => notes,
            None => {
                self.fields.put_if_absent(name, value);
                vec![]
            }
        }
    }

    /// The title, and the description unless it equals the title.
    fn title(&mut self) -> Result<(String, Option<String>), ExchangeError> {
        let title = self.fields.text(&["title", "name"])?;
        let texts: &[&'static str] = match self.is_foreign() {
            true => &["description", "instruction", "prompt", "task"],
            false => &["description", "instruction", "prompt"],
        };
        let description = self.fields.text(texts)?;
        let is_blank = description.as_ref().is_none_or(|text| text.trim().is_empty());
        match (title, description) {
            (Some(title), description) => Ok((title, description)),
            (None, _) if is_blank && self.is_foreign() && self.has_id => {
                Ok((self.name.clone(), None))
            }
            (None, Some(description)) => {
                let title = title_of(&description);
                let says_all = title == description;
                Ok((title, (!says_all).then_some(description)))
            }
            (None, None) => Err(self.fields.wrong("title", "is missing")),
        }
    }

    fn status(&mut self) -> Result<Status, ExchangeError> {
        let Some(word) = self.fields.text(&["status", "state"])? else {
            return Ok(Status::Pending);
        };
        let word = word.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        let status = word.parse::<Status>();
        match status.map_err(|error| self.fields.wrong("status", error.to_string()))? {
            Status::InProgress => {
                self.notes.add(Loss::Claimed, &self.name);
                Ok(Status::Pending)
            }
            status => Ok(status),
        }
    }

    fn priority(&mut self) -> Result<Option<u8>, ExchangeError> {
        let most = f64::from(PRIORITY_MAX);
        let scaled = match self.format {
            Format::Coordination => priority::from_coordination,
            Format::Queue => |priority: f64| 100.0 - priority,
            Format::Json | Format::Yaml | Format::Markdown => {
                let priority = self.fields.whole(&["priority"], 0, i64::from(PRIORITY_MAX))?;
                return Ok(priority.map(|priority| priority as u8));
            }
        };
        let Some((_, priority)) = self.fields.number(&["priority"])? else { return Ok(None) };
        let scaled = scaled(priority).round();
        if !(0.0..=most).contains(&scaled) {
            self.notes.add(Loss::Priority, &self.name);
        }
        Ok(Some(scaled.clamp(0.0, most) as u8))
    }

    /// The files that are held with the task. Files to read go into the payload, where the worker
    /// finds them.
    ///
    /// In foreign files, files that are not globs within the repository go there too; in our own
    /// files they are an error, which adding the task reports.
    fn files(&mut self) -> Result<Vec<String>, ExchangeError> {
        self.spread_context();
        let context = self.fields.texts(&["context_files"], false)?.unwrap_or_default();
        self.keep(CONTEXT_FILES.to_owned(), context.into());
        let files = self.fields.texts(&["files"], false)?.unwrap_or_default();
        if !self.is_foreign() {
            return Ok(files);
        }
        let acceptable = |file: &String| Resource::new(Kind::Path, file).is_ok();
        let (files, others): (Vec<String>, Vec<String>) = files.into_iter().partition(acceptable);
        if !others.is_empty() {
            self.notes.add(Loss::File, &self.name);
            self.extra.insert("files".into(), others.into());
        }
        Ok(files)
    }

    /// Expands `context: {files, hints, …}` to `context_files`, `hints` and the rest.
    fn spread_context(&mut self) {
        let Some((_, context)) = self.fields.take(&["context"]) else { return };
        match context {
            Value::Object(mut context) => {
                if let Some(files) = context.shift_remove("files") {
                    self.fields.put_if_absent("context_files", files);
                }
                for (name, value) in context {
                    self.keep(name, value);
                }
            }
            other => self.keep("context".into(), other),
        }
    }

    fn keep(&mut self, name: String, value: Value) {
        let empty = matches!(&value, Value::Array(list) if list.is_empty());
        let blank = matches!(&value, Value::String(text) if text.is_empty());
        if !value.is_null() && !empty && !blank {
            self.extra.insert(name, value);
        }
    }

    fn timeout(&mut self) -> Result<Option<Duration>, ExchangeError> {
        if let Some(ms) = self.fields.whole(&["timeout_ms"], 0, i64::MAX)? {
            return Ok(Some(Duration::from_millis(ms as u64)));
        }
        let names = ["timeout", "timeout_seconds", "timeout_s"];
        let Some(text) = self.fields.text(&names)? else { return Ok(None) };
        let timeout = parse_seconds(&text);
        timeout.map(Some).map_err(|error| self.fields.wrong("timeout", error.to_string()))
    }

    fn not_before(&mut self) -> Result<Option<tenure_core::WallTime>, ExchangeError> {
        let Some((name, value)) = self.fields.take(&["not_before"]) else { return Ok(None) };
        match time::from_value(&value) {
            Some(time) => Ok(Some(time)),
            None => {
                let problem =
                    format!("{} is not a time such as 2024-01-15T10:30:00Z", show(&value));
                Err(self.fields.wrong(name, problem))
            }
        }
    }

    /// JSON, embedded, or as text if embedding would change it.
    fn json(
        &mut self,
        embedded: &'static str,
        text: &'static str,
    ) -> Result<Option<String>, ExchangeError> {
        if let Some(text) = self.fields.text(&[text])? {
            return Ok(Some(text));
        }
        Ok(self.fields.take(&[embedded]).map(|(_, value)| value.to_string()))
    }

    fn dependencies(&mut self) -> Result<Vec<TaskId>, ExchangeError> {
        let names = ["depends_on", "dependencies", "deps", "after", "blocked_by"];
        let ids = self.fields.texts(&names, true)?.unwrap_or_default();
        let parse = |id: String| {
            id.parse().map_err(|error: tenure_core::ResourceError| {
                self.fields.wrong("depends_on", error.to_string())
            })
        };
        ids.into_iter().map(parse).collect()
    }

    fn is_foreign(&self) -> bool {
        matches!(self.format, Format::Coordination | Format::Queue)
    }

    /// Puts the remaining fields into the payload. In our own files, the history is dropped
    /// instead.
    fn finish(mut self, task: &mut NewTask) -> Result<(), ExchangeError> {
        let foreign = self.is_foreign();
        let known = |name: &str| HISTORY.contains(&name) || OWNER.contains(&name);
        for (name, value) in self.fields.rest() {
            if !known(&name) {
                self.notes.add(Loss::Field, &name);
            } else if !foreign {
                if HISTORY.contains(&name.as_str()) {
                    self.notes.add(Loss::History, &self.name);
                }
                continue;
            }
            self.extra.insert(name, value);
        }
        if !self.extra.is_empty() {
            task.payload = Some(with_extra(task.payload.take(), self.extra));
        }
        Ok(())
    }
}

fn note(value: &Value) -> Option<Note> {
    let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
    Some(Note { by: text("by")?, at: time::from_value(value.get("at")?)?, text: text("text")? })
}

/// Whether a worker brought the task to this status.
fn is_done(status: Status) -> bool {
    matches!(status, Status::Completed | Status::Failed | Status::Review)
}

/// Adds the remaining fields to the payload; if names would clash, the payload becomes a field
/// itself.
fn with_extra(payload: Option<String>, mut extra: Map<String, Value>) -> String {
    let payload = payload
        .map(|json| serde_json::from_str::<Value>(&json).unwrap_or_else(|_| Value::String(json)));
    match payload {
        None => {}
        Some(Value::Object(map)) if map.keys().all(|name| !extra.contains_key(name)) => {
            let mut joined = map;
            joined.append(&mut extra);
            extra = joined;
        }
        Some(payload) => {
            extra.insert("payload".into(), payload);
        }
    }
    Value::Object(extra).to_string()
}

/// The first line of a text, cut to the length of a title.
pub(super) fn title_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(TITLE_CHARACTERS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}
