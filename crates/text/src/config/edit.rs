//! Changes one value in a settings file and keeps everything else as the user wrote it.
//!
//! The new text is the old one with one piece replaced or inserted. Before it is written, it is
//! parsed again: unless exactly the wanted value changed, the file is not changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::document::{Entry, Mapping, Node};
use super::keys::{Key, Kind};
use super::layers::{self, VALUE};
use super::{ConfigError, Origin};

/// Sets a key in a file, creating the file and its folders if needed.
///
/// The file gets its new content in one step. Several processes may do this at once; no change is
/// lost. A file behind a symbolic link is changed where it is. This function creates folders, but no
/// `.gitignore`.
pub fn set(file: &Path, key: &str, value: &str) -> Result<(), ConfigError> {
    let key = layers::known(key, Origin::Flag, None)?;
    layers::check(key, value, Origin::Flag, None)?;
    let value = &match key.info().kind {
        Kind::Text => value.to_owned(),
        _ => value.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let not_writable = |source| ConfigError::NotWritable { path: file.to_owned(), source };
    let target = resolve(file).map_err(not_writable)?;
    let folder = folder_of(&target);
    fs::create_dir_all(folder).map_err(not_writable)?;
    let _turn = Turn::take(folder);

    let before = layers::read_text(&target, false)?.unwrap_or_default();
    let after = edited(&before, file, key, value)?;
    if after == before {
        return Ok(());
    }
    replace(&target, &after).map_err(not_writable)
}

/// The text of a file with one key changed.
fn edited(before: &str, file: &Path, key: Key, value: &str) -> Result<String, ConfigError> {
    let root = layers::parse(before, file)?;
    if let Some(root) = &root {
        layers::values(root, file)?;
    }
    let mut expected = root.as_ref().map(flatten).unwrap_or_default();
    let change = change(before, root.as_ref(), key, value);
    let mut after = before.to_owned();
    after.replace_range(change.range, &change.text);

    expected.insert(change.path, value.to_owned());
    match layers::parse(&after, file) {
        Ok(Some(root)) if flatten(&root) == expected => Ok(after),
        _ => Err(ConfigError::NotEditable { path: file.to_owned(), key }),
    }
}

/// A replacement of a piece of text, and the path of the value that it changes.
struct Change {
    range: Range<usize>,
    text: String,
    path: String,
}

fn change(before: &str, root: Option<&Mapping>, key: Key, value: &str) -> Change {
    let value = match key.info().kind {
        Kind::Text => format!("'{}'", value.replace('\'', "''")),
        _ => value.to_owned(),
    };
    let mut path: Vec<&str> = key.name().split('.').collect();
    let (range, text) = match root {
        Some(root) => change_in(before, root, &mut path, &value),
        None => {
            let text = on_own_lines(before, before.len(), &block(before, &path, &value, 0));
            (before.len()..before.len(), text)
        }
    };
    let path = path.join(".");
    Change { range, text, path }
}

/// Follows `path` down from `mapping` as far as it exists, and changes or adds there.
///
/// Adds the last step to `path` if the key turns out to have a description.
fn change_in(
    before: &str,
    mut mapping: &Mapping,
    path: &mut Vec<&str>,
    value: &str,
) -> (Range<usize>, String) {
    let mut depth = 0;
    loop {
        let Some(entry) = mapping.get(path[depth]) else {
            return add_to(before, mapping, &path[depth..], value);
        };
        depth += 1;
        match &entry.node {
            Node::Mapping(inner) => {
                mapping = inner;
                if depth == path.len() {
                    path.push(VALUE);
                }
            }
            Node::Scalar(_) if depth < path.len() => {
                return add_below(before, entry, &path[depth..], value);
            }
            Node::Scalar(scalar) if scalar.range.is_empty() => {
                return add_after_colon(before, entry, value);
            }
            Node::Scalar(scalar) => return (scalar.range.clone(), value.to_owned()),
        }
    }
}

/// A new entry at the end of a mapping.
fn add_to(before: &str, mapping: &Mapping, path: &[&str], value: &str) -> (Range<usize>, String) {
    match mapping.entries.as_slice() {
        [] => {
            let at = mapping.range.start + 1;
            (at..at, flow(path, value))
        }
        [.., last] if mapping.is_flow => {
            let at = end_of(last);
            (at..at, format!(", {}", flow(path, value)))
        }
        [first, ..] => {
            let at = end_of_line(before, mapping.entries.last().map_or(0, end_of));
            let indent = indent_of(before, first);
            let lines = block(before, path, value, indent);
            (at..at, on_own_lines(before, at, &lines))
        }
    }
}

/// The first entry of an empty group.
fn add_below(before: &str, group: &Entry, path: &[&str], value: &str) -> (Range<usize>, String) {
    let at = end_of_line(before, end_of(group));
    let lines = block(before, path, value, indent_of(before, group) + 2);
    (at..at, on_own_lines(before, at, &lines))
}

/// The value of a key without one.
fn add_after_colon(before: &str, entry: &Entry, value: &str) -> (Range<usize>, String) {
    let end = entry.key.range.end;
    let colon = before[end..].find(':').map_or(end, |offset| end + offset + 1);
    (colon..colon, format!(" {value}"))
}

/// The end of an entry.
fn end_of(entry: &Entry) -> usize {
    match &entry.node {
        Node::Scalar(scalar) if scalar.range.is_empty() => entry.key.range.end,
        Node::Scalar(scalar) => scalar.range.end,
        Node::Mapping(mapping) if mapping.is_flow => mapping.range.end,
        Node::Mapping(mapping) => mapping.entries.last().map_or(entry.key.range.end, end_of),
    }
}

/// The start of the line after `position`, past a trailing comment.
fn end_of_line(text: &str, position: usize) -> usize {
    // A value over several lines ends where the next line starts.
    if text[..position].ends_with('\n') {
        return position;
    }
    let rest = &text[position..];
    rest.find('\n').map_or(text.len(), |offset| position + offset + 1)
}

fn indent_of(text: &str, entry: &Entry) -> usize {
    let start = entry.key.range.start;
    start - text[..start].rfind('\n').map_or(0, |offset| offset + 1)
}

/// `a: {b: value}`
fn flow(path: &[&str], value: &str) -> String {
    let nested = path.join(": {");
    let close = "}".repeat(path.len().saturating_sub(1));
    format!("{nested}: {value}{close}")
}

/// `a:` and below it, indented, `b: value`, with the line ends of the file.
fn block(text: &str, path: &[&str], value: &str, indent: usize) -> String {
    let line_end = line_end(text);
    let mut lines = String::new();
    for (depth, name) in path.iter().enumerate() {
        let indent = " ".repeat(indent + 2 * depth);
        let is_last = depth + 1 == path.len();
        let value = if is_last { format!(" {value}") } else { String::new() };
        lines.push_str(&format!("{indent}{name}:{value}{line_end}"));
    }
    lines
}

/// Starts a new line if the text before `at` does not end with one.
fn on_own_lines(text: &str, at: usize, lines: &str) -> String {
    if text[..at].is_empty() || text[..at].ends_with('\n') {
        lines.to_owned()
    } else {
        format!("{}{lines}", line_end(text))
    }
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Every value in the file by its path, including descriptions.
fn flatten(root: &Mapping) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut ahead: Vec<(String, &Mapping)> = vec![(String::new(), root)];
    while let Some((prefix, mapping)) = ahead.pop() {
        for entry in &mapping.entries {
            let path = format!("{prefix}{}", entry.key.text);
            match &entry.node {
                Node::Mapping(inner) => ahead.push((format!("{path}."), inner)),
                Node::Scalar(scalar) if scalar.is_null => {}
                Node::Scalar(scalar) => {
                    values.insert(path, scalar.text.clone());
                }
            }
        }
    }
    values
}

/// The file behind a symbolic link, so that the link is kept.
fn resolve(file: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(file) {
        Ok(metadata) if metadata.is_symlink() => fs::canonicalize(file),
        _ => Ok(file.to_owned()),
    }
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Lets one process at a time read and replace a file.
///
/// The kernel lock is on the folder, because the file itself is replaced, and so that no extra file
/// is left. If a folder cannot be locked, as on some network file systems, the change is made
/// without: the replacement is still complete, but the last one wins.
struct Turn {
    _folder: Option<fs::File>,
}

impl Turn {
    #[expect(clippy::disallowed_methods, reason = "settings are edited under a lock of their own")]
    fn take(folder: &Path) -> Self {
        let opened = fs::File::open(folder).ok();
        Self { _folder: opened.filter(|folder| folder.lock().is_ok()) }
    }
}

/// Writes a temporary file, then renames it over the file.
fn replace(file: &Path, content: &str) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let temporary = file.with_file_name(format!(".{name}.{}.tmp", uuid::Uuid::new_v4()));
    let replaced =
        write_synced(&temporary, file, content).and_then(|()| fs::rename(&temporary, file));
    if replaced.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    replaced?;
    // The rename itself must survive a power cut too; not every system can sync a folder.
    if let Ok(folder) = fs::File::open(folder_of(file)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn write_synced(temporary: &Path, file: &Path, content: &str) -> io::Result<()> {
    let mut created = fs::File::create_new(temporary)?;
    if let Ok(metadata) = fs::metadata(file) {
        created.set_permissions(metadata.permissions())?;
    }
    created.write_all(content.as_bytes())?;
    created.sync_all()
}

#[cfg(test)]
mod tests;
