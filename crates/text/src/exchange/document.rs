//! Reads a whole JSON or YAML file: the list of tasks, and the fields around it.

use super::assemble::{Draft, assemble};
use super::fields::{Fields, kind};
use super::notes::{Loss, Notes};
use super::{ExchangeError, Format, TaskFile, record};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use tenure_core::rules::tasks::EVERYTHING;
use tenure_core::task::PRIORITY_MAX;
use tenure_core::{Section, Status, TaskId};

/// The version that is written.
pub(super) const VERSION: u64 = 1;

/// Fields of foreign files that have no meaning here.
const AROUND_FOREIGN: [&str; 3] = ["version", "created_at", "last_updated"];

/// An invalid entry of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The id of the task, if the entry has a usable one.
    pub id: Option<TaskId>,
    /// The entry, and what is wrong with it.
    pub reason: String,
}

/// Reads a list of tasks, or an object that has one.
pub(super) fn read(value: Value, format: Format) -> Result<TaskFile, ExchangeError> {
    read_with(value, format, None)
}

/// As [`read`], but an invalid entry does not affect the others.
pub(super) fn read_each(
    value: Value,
    format: Format,
) -> Result<(TaskFile, Vec<Problem>), ExchangeError> {
    let mut problems = Vec::new();
    let file = read_with(value, format, Some(&mut problems))?;
    Ok((file, problems))
}

fn read_with(
    value: Value,
    format: Format,
    mut problems: Option<&mut Vec<Problem>>,
) -> Result<TaskFile, ExchangeError> {
    let mut notes = Notes::default();
    let mut object = match value {
        Value::Array(list) => Map::from_iter([("tasks".to_owned(), Value::Array(list))]),
        Value::Object(object) => object,
        other => {
            return Err(ExchangeError::Shape {
                place: "the file".into(),
                found: kind(&other),
                expected: "a list of tasks, or an object with `tasks`",
            });
        }
    };
    if !matches!(format, Format::Coordination | Format::Queue) {
        check_version(object.shift_remove("version").as_ref())?;
    }
    let sections = take_list(&mut object, "sections")?.unwrap_or_default();
    let sections: Result<Vec<Section>, ExchangeError> = sections
        .into_iter()
        .enumerate()
        .map(|(index, value)| read_section(value, index + 1, &mut notes))
        .collect();
    let sections = sections?;
    let tasks = take_list(&mut object, "tasks")?;
    let has_ended = format == Format::Queue;
    if tasks.is_none() && sections.is_empty() && !has_ended {
        return Err(ExchangeError::Shape {
            place: "the file".into(),
            found: "an object without `tasks`",
            expected: "a list of tasks, or an object with `tasks`",
        });
    }
    let mut drafts = Vec::new();
    for (index, value) in tasks.unwrap_or_default().into_iter().enumerate() {
        match &mut problems {
            None => drafts.push(record::read(value, index + 1, format, &mut notes)?),
            Some(problems) => {
                let draft = read_or_block(value, index + 1, format, &mut notes, problems);
                drafts.extend(draft);
            }
        }
    }
    if let Some(problems) = problems {
        drop_twins(&mut drafts, problems);
    }
    if has_ended {
        add_ended(&mut object, &mut drafts, &mut notes)?;
    }
    for (name, _) in object
        .iter()
        .filter(|(name, value)| !value.is_null() && !AROUND_FOREIGN.contains(&name.as_str()))
    {
        notes.add(Loss::Around, name);
    }
    Ok(TaskFile { tasks: assemble(drafts), sections, format, notes: notes.sentences() })
}

/// Reads one entry. An invalid one becomes a blocked task, and its problem is recorded.
fn read_or_block(
    value: Value,
    number: usize,
    format: Format,
    notes: &mut Notes,
    problems: &mut Vec<Problem>,
) -> Option<Draft> {
    let error = match record::read(value.clone(), number, format, notes) {
        Ok(draft) => return Some(draft),
        Err(error) => error,
    };
    let reason = error.to_string();
    let raw = value.as_object();
    let id = raw.and_then(|raw| raw.get("id").or_else(|| raw.get("task_id"))).cloned();
    // Usually only the status is wrong; otherwise the id has to be enough.
    let mut without_status = value;
    if let Value::Object(object) = &mut without_status {
        object.retain(|name, _| !matches!(name.as_str(), "status" | "state"));
    }
    let only_id = id.map(|id| serde_json::json!({ "id": id, "title": id }));
    let draft = std::iter::once(without_status)
        .chain(only_id)
        .find_map(|value| record::read(value, number, format, notes).ok())
        .filter(|draft| draft.id.is_some())
        .map(|mut draft| {
            draft.task.status = Status::Blocked;
            draft.task.error = Some(reason.clone());
            draft
        });
    let id = draft.as_ref().and_then(|draft| draft.id.clone());
    problems.push(Problem { id, reason });
    draft
}

/// Keeps the first of several entries with one id.
fn drop_twins(drafts: &mut Vec<Draft>, problems: &mut Vec<Problem>) {
    let mut known = HashSet::new();
    drafts.retain(|draft| match &draft.id {
        Some(id) if !known.insert(id.clone()) => {
            let reason = format!("the id {:?} is given twice; the first entry counts", id.as_str());
            problems.push(Problem { id: None, reason });
            false
        }
        _ => true,
    });
}

/// Reads the lists of ended tasks, each an object or only an id. A task that is also in the list of
/// tasks only gets its status from here.
fn add_ended(
    object: &mut Map<String, Value>,
    drafts: &mut Vec<Draft>,
    notes: &mut Notes,
) -> Result<(), ExchangeError> {
    let ids = drafts
        .iter()
        .enumerate()
        .filter_map(|(index, draft)| Some((draft.id.as_ref()?.to_string(), index)));
    let known: HashMap<String, usize> = ids.collect();
    for (list, status) in [("completed", Status::Completed), ("failed", Status::Failed)] {
        for value in take_list(object, list)?.unwrap_or_default() {
            let only_id = match &value {
                Value::String(id) => Some(id.clone()),
                Value::Number(id) => Some(id.to_string()),
                _ => None,
            };
            let value = match &only_id {
                Some(id) => serde_json::json!({ "id": id, "title": id }),
                None => value,
            };
            let mut draft = record::read(value, drafts.len() + 1, Format::Queue, notes)?;
            draft.task.status = status;
            let id = draft.id.as_ref().map(ToString::to_string);
            match id.as_ref().and_then(|id| known.get(id)) {
                Some(index) => end(&mut drafts[*index], draft),
                None => {
                    if let Some(id) = only_id {
                        notes.add(Loss::OnlyId, &id);
                    }
                    drafts.push(draft);
                }
            }
        }
    }
    Ok(())
}

fn end(draft: &mut Draft, ended: Draft) {
    draft.task.status = ended.task.status;
    draft.task.result = draft.task.result.take().or(ended.task.result);
    draft.task.error = draft.task.error.take().or(ended.task.error);
}

fn check_version(version: Option<&Value>) -> Result<(), ExchangeError> {
    let version = match version {
        Some(Value::Number(number)) => number.as_f64().map(|number| number as u64),
        Some(Value::String(text)) => {
            text.split('.').next().and_then(|number| number.trim().parse().ok())
        }
        _ => None,
    };
    match version {
        Some(version) if version > VERSION => Err(ExchangeError::Newer { version, known: VERSION }),
        _ => Ok(()),
    }
}

fn take_list(
    object: &mut Map<String, Value>,
    name: &'static str,
) -> Result<Option<Vec<Value>>, ExchangeError> {
    match object.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(ExchangeError::Shape {
            place: format!("`{name}`"),
            found: kind(&other),
            expected: "a list",
        }),
    }
}

/// Reads a section: a name, or an object with one.
fn read_section(value: Value, number: usize, notes: &mut Notes) -> Result<Section, ExchangeError> {
    let place = format!("section {number}");
    let object = match value {
        Value::Object(object) => object,
        Value::String(name) => Map::from_iter([("name".to_owned(), Value::String(name))]),
        other => {
            let (found, expected) = (kind(&other), "an object or a name");
            return Err(ExchangeError::Shape { place, found, expected });
        }
    };
    let mut fields = Fields::new(place, object);
    let Some(name) = fields.text(&["name", "id", "title"])? else {
        return Err(fields.wrong("name", "is missing"));
    };
    let mut section = Section::named(&name);
    if name != EVERYTHING {
        section.resource().map_err(|error| fields.wrong("name", error.to_string()))?;
    }
    if fields.has("max_runners") {
        let most = fields.whole(&["max_runners"], 1, i64::from(u32::MAX))?;
        section.max_runners = most.map(|most| most as u32);
    }
    if let Some(priority) = fields.whole(&["priority"], 0, i64::from(PRIORITY_MAX))? {
        section.priority = priority as u8;
    }
    if let Some(position) = fields.whole(&["position"], i64::MIN, i64::MAX)? {
        section.position = position;
    }
    section.depends_on =
        fields.texts(&["depends_on", "dependencies", "deps", "after"], true)?.unwrap_or_default();
    section.paused = fields.flag("paused")?.unwrap_or_default();
    for (name, _) in fields.rest().iter().filter(|(name, _)| *name != "max_runners") {
        notes.add(Loss::Around, name);
    }
    Ok(section)
}
