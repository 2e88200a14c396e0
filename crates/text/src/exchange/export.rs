//! Writes tasks to files. Grants and tokens are never written: they prove ownership.

use super::document::VERSION;
use super::{CONTEXT_FILES, ExchangeError, Format, priority};
use crate::exchange::markdown;
use crate::exchange::markdown_item::quoted;
use crate::time;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use tenure_core::task::{MAX_ATTEMPTS_DEFAULT, PRIORITY_DEFAULT};
use tenure_core::{Note, Section, Status, Task};

/// Writes tasks and sections.
///
/// JSON and YAML keep everything that [`read`](super::read()) understands, except white space
/// within payloads. Markdown omits payloads, results, notes and the description of sections. The two
/// foreign formats omit what those programs do not know: in them, the claimer of a completed task
/// is the worker that finished it.
pub fn write(
    tasks: &[Task],
    sections: &[Section],
    format: Format,
) -> Result<String, ExchangeError> {
    let failed = |problem: String| ExchangeError::NotWritable { format, problem };
    match format {
        Format::Json => pretty(&own(tasks, sections)).map_err(failed),
        Format::Yaml => serde_saphyr::to_string(&own(tasks, sections))
            .map_err(|error| failed(error.to_string())),
        Format::Markdown => Ok(checklist(tasks, sections)),
        Format::Coordination => pretty(&coordination(tasks)).map_err(failed),
        Format::Queue => pretty(&queue(tasks)).map_err(failed),
    }
}

/// What this format cannot say of these sections, for a person who writes it.
pub fn left_out(sections: &[Section], format: Format) -> Option<String> {
    let plain = |section: &&Section| {
        section.max_runners.is_none() && section.depends_on.is_empty() && !section.paused
    };
    let names: Vec<&str> =
        sections.iter().filter(|one| !plain(one)).map(|one| one.name.as_str()).collect();
    let keeps_all = matches!(format, Format::Json | Format::Yaml);
    (!keeps_all && !names.is_empty()).then(|| {
        format!(
            "Not written: limits, dependencies and pauses of sections ({}). JSON and YAML keep them.",
            names.join(", ")
        )
    })
}

fn pretty(value: &Value) -> Result<String, String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| error.to_string())
}

fn own(tasks: &[Task], sections: &[Section]) -> Value {
    json!({
        "version": VERSION,
        "tasks": tasks.iter().map(own_task).collect::<Vec<Value>>(),
        "sections": sections.iter().map(own_section).collect::<Vec<Value>>(),
    })
}

/// An object that omits default values.
#[derive(Default)]
struct Sparse(Map<String, Value>);

impl Sparse {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn put_unless(&mut self, usual: bool, name: &str, value: impl Into<Value>) {
        if !usual {
            self.put(name, value);
        }
    }

    fn put_some(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// JSON that is stored as text: embedded, unless that would change more than white space.
    fn put_json(&mut self, embedded: &str, as_text: &str, json: Option<&String>) {
        let Some(json) = json else { return };
        let same = |value: &Value| {
            let written = value.to_string();
            !value.is_null() && written == without_space(json)
        };
        match serde_json::from_str(json).ok().filter(same) {
            Some(value) => self.put(embedded, value),
            None => self.put(as_text, json.as_str()),
        }
    }
}

/// JSON without white space between its parts.
fn without_space(json: &str) -> String {
    let (mut in_text, mut escaped) = (false, false);
    let significant = |character: &char| {
        let keep = in_text || !character.is_ascii_whitespace();
        match character {
            '"' if !escaped => in_text = !in_text,
            _ => {}
        }
        escaped = in_text && *character == '\\' && !escaped;
        keep
    };
    json.chars().filter(significant).collect()
}

fn own_task(task: &Task) -> Value {
    let mut fields = Sparse::default();
    fields.put("id", task.id.as_str());
    fields.put("title", task.title.as_str());
    fields.put_some("description", task.description.as_deref());
    fields.put_some("section", task.section.as_deref());
    fields.put("status", task.status.word());
    fields.put_unless(task.priority == PRIORITY_DEFAULT, "priority", task.priority);
    fields.put_unless(task.position == 0, "position", task.position);
    fields.put_unless(task.depends_on.is_empty(), "depends_on", ids(task));
    fields.put_unless(task.labels.is_empty(), "labels", task.labels.clone());
    fields.put_unless(task.files.is_empty(), "files", task.files.clone());
    fields.put_json("payload", "payload_json", task.payload.as_ref());
    let usual = task.max_attempts == MAX_ATTEMPTS_DEFAULT;
    fields.put_unless(usual, "max_attempts", task.max_attempts);
    fields.put_some("timeout_ms", task.timeout.map(|timeout| timeout.as_millis() as u64));
    fields.put_some("not_before", task.not_before.map(time::to_value));
    fields.put_some("key", task.key.as_deref());
    fields.put_json("result", "result_json", task.result.as_ref());
    fields.put_some("error", task.error.as_deref());
    fields.put_some("feedback", task.feedback.as_deref());
    fields.put_unless(task.attempts == 0, "attempts", task.attempts);
    fields.put_unless(task.recoveries == 0, "recoveries", task.recoveries);
    fields.put_some("claimed_by", task.claim.as_ref().map(|claim| claim.by.as_str()));
    fields.put("created_at", time::to_value(task.created_at));
    fields.put_some("claimed_at", task.claimed_at.map(time::to_value));
    fields.put_some("started_at", task.started_at.map(time::to_value));
    fields.put_some("finished_at", task.finished_at.map(time::to_value));
    fields.put_some("finished_by", task.finished_by.as_deref());
    let notes: Vec<Value> = task.notes.iter().map(own_note).collect();
    fields.put_unless(notes.is_empty(), "notes", notes);
    Value::Object(fields.0)
}

fn own_note(note: &Note) -> Value {
    json!({ "by": note.by, "at": time::to_value(note.at), "text": note.text })
}

fn own_section(section: &Section) -> Value {
    let mut fields = Sparse::default();
    fields.put("name", section.name.as_str());
    fields.put("max_runners", section.max_runners);
    fields.put_unless(section.priority == PRIORITY_DEFAULT, "priority", section.priority);
    fields.put_unless(section.position == 0, "position", section.position);
    fields.put_unless(section.depends_on.is_empty(), "depends_on", section.depends_on.clone());
    fields.put_unless(!section.paused, "paused", section.paused);
    Value::Object(fields.0)
}

fn ids(task: &Task) -> Vec<&str> {
    task.depends_on.iter().map(|id| id.as_str()).collect()
}

/// All text of a task in one: those programs have only a description.
fn in_full(task: &Task) -> String {
    match &task.description {
        Some(description) if description.trim_start().starts_with(&task.title) => {
            description.clone()
        }
        Some(description) => format!("{}\n\n{description}", task.title),
        None => task.title.clone(),
    }
}

fn coordination(tasks: &[Task]) -> Value {
    let times = || tasks.iter().flat_map(|task| [Some(task.created_at), task.finished_at]);
    let first = tasks.iter().map(|task| task.created_at).min();
    json!({
        "version": "1.0",
        "created_at": first.map(time::to_foreign_text),
        "last_updated": times().flatten().max().map(time::to_foreign_text),
        "tasks": tasks.iter().map(coordination_task).collect::<Vec<Value>>(),
    })
}

/// A task in the format of those programs.
pub fn coordination_task(task: &Task) -> Value {
    let payload = task.payload.as_ref().and_then(|json| serde_json::from_str::<Value>(json).ok());
    let hints = payload.as_ref().and_then(|payload| payload.get("hints")).cloned();
    let result = task.result.as_ref().and_then(|json| serde_json::from_str::<Value>(json).ok());
    let failure = task.error.as_ref().map(|error| json!({ "error": error }));
    json!({
        "id": task.id.as_str(),
        "description": in_full(task),
        "status": coordination_status(task.status),
        "priority": priority::to_coordination(task.priority),
        "claimed_by": task.claim.as_ref().map(|claim| claim.by.as_str()).or(finisher(task)),
        "dependencies": ids(task),
        "context": {
            "files": told_files(task, payload.as_ref()),
            "hints": hints.unwrap_or_else(|| "".into()),
        },
        "result": result.or(failure),
        "created_at": time::to_foreign_text(task.created_at),
        "claimed_at": task.claimed_at.map(time::to_foreign_text),
        "started_at": task.started_at.map(time::to_foreign_text),
        "completed_at": task.finished_at.map(time::to_foreign_text),
    })
}

/// The files that a worker is told about: those to read, and those that it holds.
fn told_files(task: &Task, payload: Option<&Value>) -> Vec<Value> {
    let context = payload.and_then(|payload| payload.get(CONTEXT_FILES)).and_then(Value::as_array);
    let mut told = context.cloned().unwrap_or_default();
    let held = task.files.iter().map(|file| Value::from(file.as_str()));
    told.extend(held.filter(|file| !context.is_some_and(|known| known.contains(file))));
    told
}

/// The worker that finished or failed the task, not the person who cancelled or skipped it.
fn finisher(task: &Task) -> Option<&str> {
    let by_worker = matches!(task.status, Status::Completed | Status::Failed | Status::Review);
    task.finished_by.as_deref().filter(|_| by_worker)
}

/// The word of a coordination file for this status.
pub fn coordination_status(status: Status) -> &'static str {
    match status {
        Status::Pending => "available",
        Status::InProgress | Status::Review => "in_progress",
        Status::Completed | Status::Skipped => "done",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
        Status::Blocked => "blocked",
    }
}

fn queue(tasks: &[Task]) -> Value {
    let with = |wanted: fn(Status) -> bool| -> Vec<Value> {
        tasks.iter().filter(|task| wanted(task.status)).map(queue_task).collect()
    };
    json!({
        "version": "1.0",
        "tasks": with(|status| !status.is_final()),
        "completed": with(|status| matches!(status, Status::Completed | Status::Skipped)),
        "failed": with(|status| matches!(status, Status::Failed | Status::Cancelled)),
    })
}

/// A task in the format of those programs.
pub fn queue_task(task: &Task) -> Value {
    json!({
        "id": task.id.as_str(),
        "instruction": in_full(task),
        "priority": 100_u8.saturating_sub(task.priority),
        "dependencies": ids(task),
    })
}

fn checklist(tasks: &[Task], sections: &[Section]) -> String {
    let mut names: Vec<Option<&str>> = vec![None];
    let mut described: Vec<&Section> = sections.iter().collect();
    described.sort_by_key(|section| (section.priority, section.position));
    names.extend(described.iter().map(|section| Some(section.name.as_str())));
    let mut by_section: std::collections::HashMap<Option<&str>, Vec<&Task>> = Default::default();
    for task in tasks {
        let section = task.section.as_deref();
        let list = by_section.entry(section).or_default();
        if list.is_empty() && !sections.iter().any(|known| Some(known.name.as_str()) == section) {
            names.push(section);
        }
        list.push(task);
    }
    let mut text = String::new();
    for name in names {
        let Some(tasks) = by_section.remove(&name) else { continue };
        if let Some(name) = name {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}## {name}\n");
        }
        for task in tasks {
            checklist_item(&mut text, task);
        }
    }
    text
}

fn checklist_item(text: &mut String, task: &Task) {
    let mark = match task.status {
        Status::Completed => 'x',
        Status::InProgress => '~',
        Status::Cancelled => '-',
        _ => ' ',
    };
    let title: Vec<&str> = task.title.split_whitespace().collect();
    let _ = write!(text, "- [{mark}] {} (id: {}", title.join(" "), quoted(task.id.as_str()));
    if matches!(task.status, Status::Review | Status::Failed | Status::Blocked | Status::Skipped) {
        let _ = write!(text, ", status: {}", task.status);
    }
    if task.priority != PRIORITY_DEFAULT {
        let _ = write!(text, ", priority: {}", task.priority);
    }
    let ids = task.depends_on.iter().map(|id| ("after", id.as_str()));
    let labels = task.labels.iter().map(|label| ("label", label.as_str()));
    let files = task.files.iter().map(|file| ("file", file.as_str()));
    for (name, value) in ids.chain(labels).chain(files) {
        let _ = write!(text, ", {name}: {}", quoted(value));
    }
    if let Some(time) = task.not_before
        && let Value::String(time) = time::to_value(time)
    {
        let _ = write!(text, ", not-before: {time}");
    }
    if let Some(label) = &task.finished_by {
        let _ = write!(text, ", finished-by: {}", quoted(label));
    }
    text.push_str(")\n");
    for line in task.description.iter().flat_map(|description| description.lines()) {
        let line = markdown::escaped(line);
        let line = line.trim_end();
        let _ = writeln!(text, "{}{line}", if line.is_empty() { "" } else { "  " });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_space_between_the_parts_of_json_is_dropped() {
        assert_eq!(without_space(r#"{ "a \" b" : [ 1 , "\\" ] }"#), r#"{"a \" b":[1,"\\"]}"#);
    }

    #[test]
    fn json_is_embedded_only_where_it_stays_the_same() {
        for (json, embedded) in [
            (r#"{"a": 1.5, "b": [true]}"#, true),
            ("123456789012345678901234567890", false),
            ("null", false),
            ("not json", false),
            (r#"{"a":1,"a":2}"#, false),
        ] {
            let mut fields = Sparse::default();
            fields.put_json("value", "text", Some(&json.to_owned()));
            assert_eq!(fields.0.contains_key("value"), embedded, "{json}");
            assert_eq!(fields.0.contains_key("text"), !embedded, "{json}");
        }
    }
}
