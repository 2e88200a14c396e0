//! Reads checklists: headings are sections, items are tasks, and an item depends on the items
//! nested in it.

use super::assemble::{Draft, assemble};
use super::markdown_item::{Item, after_bullet, attributes, item};
use super::notes::Notes;
use super::{ExchangeError, Format, TaskFile, record};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use tenure_core::{Kind, Resource, Section};

/// The columns between tab stops.
const TAB_COLUMNS: usize = 4;

/// Reads a checklist. Text outside of items is ignored.
pub(super) fn read(text: &str) -> Result<TaskFile, ExchangeError> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        reader.take(index + 1, line)?;
    }
    let mut notes = reader.notes.sentences();
    if reader.drafts.is_empty() {
        notes.push("It contains no checklist: no line like `- [ ] title`.".to_owned());
    }
    let drafts = reader.drafts.into_iter().map(Open::close).collect();
    let sections = reader.sections;
    Ok(TaskFile { tasks: assemble(drafts), sections, format: Format::Markdown, notes })
}

#[derive(Default)]
struct Reader {
    drafts: Vec<Open>,
    /// The items around the current line, with their indentation and their index in the list.
    around: Vec<(usize, usize)>,
    heading: Option<String>,
    sections: Vec<Section>,
    known_sections: HashSet<String>,
    /// The code block around the current line.
    fence: Option<Fence>,
    notes: Notes,
}

/// A code block, which contains no tasks.
struct Fence {
    end: &'static str,
    /// The indentation of the item around it; the block ends with the item.
    within: Option<usize>,
}

/// A task whose description may continue.
struct Open {
    draft: Draft,
    description: Vec<String>,
}

impl Open {
    fn close(mut self) -> Draft {
        let text = self.description.join("\n");
        let text = text.trim_end();
        if !text.trim().is_empty() {
            self.draft.task.description = Some(text.trim_start_matches('\n').to_owned());
        }
        self.draft
    }
}

impl Reader {
    fn take(&mut self, number: usize, line: &str) -> Result<(), ExchangeError> {
        let indent = columns(line);
        let content = line.trim_start();
        if let Some(fence) = &self.fence {
            let item_ends = fence.within.is_some_and(|outer| indent <= outer);
            let stays = content.is_empty() || !item_ends;
            if !stays || content.starts_with(fence.end) {
                self.fence = None;
            }
            if stays {
                self.describe(indent, line);
                return Ok(());
            }
        }
        if let Some(end) = ["```", "~~~"].into_iter().find(|end| content.starts_with(end)) {
            self.describe(indent, line);
            let within = self.around.last().map(|(indent, _)| *indent);
            self.fence = Some(Fence { end, within });
            return Ok(());
        }
        if let Some(heading) = heading(line) {
            self.around.clear();
            self.heading = section_name(number, heading)?;
        } else if let Some(item) = item(content) {
            self.add(number, indent, line, &item)?;
        } else {
            self.describe(indent, line);
        }
        Ok(())
    }

    fn add(
        &mut self,
        number: usize,
        indent: usize,
        line: &str,
        item: &Item<'_>,
    ) -> Result<(), ExchangeError> {
        let malformed = |problem: String| {
            let column = line.chars().count() - line.trim_start().chars().count() + 1;
            ExchangeError::Malformed { line: number, column, problem }
        };
        let (title, attributes) = attributes(item.text);
        if title.is_empty() {
            return Err(malformed("a task needs a title after its box".into()));
        }
        let Some(status) = status(item.mark) else {
            let mark = item.mark;
            return Err(malformed(format!(
                "[{mark}] is not a status: use [ ], [x], [~], [/] or [-]"
            )));
        };
        let object = object(title, status, self.heading.as_deref(), attributes);
        let read = record::read(object, self.drafts.len() + 1, Format::Markdown, &mut self.notes);
        let draft = read.map_err(|error| match error {
            ExchangeError::Field { field, problem, .. } => malformed(format!("{field}: {problem}")),
            other => malformed(other.to_string()),
        })?;
        self.note_section();
        while self.around.last().is_some_and(|(outer, _)| *outer >= indent) {
            self.around.pop();
        }
        let index = self.drafts.len();
        if let Some((_, parent)) = self.around.last() {
            self.drafts[*parent].draft.after_drafts.push(index);
        }
        self.around.push((indent, index));
        self.drafts.push(Open { draft, description: vec![] });
        Ok(())
    }

    /// Adds the current section if it has tasks, in the order of the headings.
    fn note_section(&mut self) {
        let Some(name) = &self.heading else { return };
        if self.known_sections.insert(name.clone()) {
            let position = self.sections.len() as i64;
            // A heading orders tasks. It says nothing about how many may be worked on at once.
            self.sections.push(Section { position, max_runners: None, ..Section::named(name) });
        }
    }

    /// Adds a line to the item that it is indented under; a line without indentation ends all
    /// items.
    fn describe(&mut self, indent: usize, line: &str) {
        let blank = line.trim().is_empty();
        if !blank {
            while self.around.last().is_some_and(|(outer, _)| *outer >= indent) {
                self.around.pop();
            }
        }
        if let Some((outer, index)) = self.around.last() {
            let text = without_columns(line, outer + 2).trim_end();
            self.drafts[*index].description.push(unescaped(text));
        }
    }
}

fn status(mark: char) -> Option<&'static str> {
    Some(match mark {
        ' ' => "pending",
        'x' | 'X' => "completed",
        '~' | '/' => "in_progress",
        '-' => "cancelled",
        _ => return None,
    })
}

fn object(
    title: &str,
    status: &str,
    section: Option<&str>,
    attributes: Vec<(&'static str, String)>,
) -> Value {
    let mut object = Map::new();
    object.insert("title".into(), title.into());
    object.insert("status".into(), status.into());
    if let Some(section) = section {
        object.insert("section".into(), section.into());
    }
    for (name, value) in attributes {
        let name = match name {
            "after" => "depends_on",
            "label" => "labels",
            "file" => "files",
            name => name,
        };
        match (name, object.get_mut(name)) {
            (_, Some(Value::Array(list))) => list.push(value.into()),
            ("depends_on" | "labels" | "files", _) => {
                object.insert(name.into(), json!([value]));
            }
            _ => {
                object.insert(name.into(), value.into());
            }
        }
    }
    Value::Object(object)
}

/// The text of a heading such as `## Build ##`.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let is_heading = (1..=6).contains(&level) && (text.is_empty() || text.starts_with([' ', '\t']));
    is_heading.then(|| text.trim().trim_end_matches('#').trim_end())
}

/// A heading without text ends the section before it.
fn section_name(line: usize, heading: &str) -> Result<Option<String>, ExchangeError> {
    if heading.is_empty() {
        return Ok(None);
    }
    match Resource::new(Kind::Section, heading) {
        Ok(_) => Ok(Some(heading.to_owned())),
        Err(error) => Err(ExchangeError::Malformed { line, column: 1, problem: error.to_string() }),
    }
}

/// Removes the escape of `- \[ ] text` in a description, which is not a task.
fn unescaped(line: &str) -> String {
    match after_bullet(line.trim_start()) {
        Some(text) if text.trim_start().starts_with("\\[") => line.replacen("\\[", "[", 1),
        _ => line.to_owned(),
    }
}

/// Escapes a line of a description so that it is not read as a task.
pub(super) fn escaped(line: &str) -> String {
    let text = after_bullet(line.trim_start()).map(str::trim_start);
    match text.is_some_and(|text| text.starts_with('[') || text.starts_with("\\[")) {
        true => line.replacen('[', "\\[", 1),
        false => line.to_owned(),
    }
}

/// The indentation of a line in columns.
fn columns(line: &str) -> usize {
    let mut columns = 0;
    for character in line.chars() {
        match character {
            ' ' => columns += 1,
            '\t' => columns += TAB_COLUMNS - columns % TAB_COLUMNS,
            _ => break,
        }
    }
    columns
}

/// The line without this many columns of indentation, or without all of it if there is less.
fn without_columns(line: &str, mut wanted: usize) -> &str {
    let mut rest = line;
    while wanted > 0 {
        let width = match rest.chars().next() {
            Some(' ') => 1,
            Some('\t') => TAB_COLUMNS,
            _ => break,
        };
        rest = &rest[1..];
        wanted = wanted.saturating_sub(width);
    }
    rest
}
