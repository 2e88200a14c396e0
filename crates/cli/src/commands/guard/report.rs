//! What the guard says about files that others hold. Agents read it: it never says how to get past
//! the guard.

use super::conflicts::Conflict;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{NAME, Output, WARN, styled};
use crate::show::{self, one_line};
use serde_json::{Value, json};
use tenure::core::Resource;
use tenure::core::glob::Glob;
use tenure_frontend::duration::format_duration;

/// Most lines about files: a folder of thousands may be held as one glob.
const LINES_MAX: usize = 20;

/// Refuses the commit, or lets it go without a word.
pub(super) fn commit(output: &Output, conflicts: &[Conflict]) -> i32 {
    if conflicts.is_empty() {
        output.done(data(conflicts), String::new);
        return Exit::Ok.code();
    }
    let message = match files(conflicts) {
        1 => "not committed: another holds a file that this commit changes".to_owned(),
        many => format!("not committed: others hold {many} of the files that this commit changes"),
    };
    let mut failure = Failure::new(Exit::Error, "FILES_HELD", message)
        .details(data(conflicts))
        .hint(hint(conflicts));
    failure.more = lines(conflicts);
    output.fail(&failure);
    failure.exit
}

/// Warns of a push.
pub(super) fn push(output: &Output, conflicts: &[Conflict]) -> i32 {
    if !conflicts.is_empty() && !output.json {
        let warning = match files(conflicts) {
            1 => "another holds a file that this push changes".to_owned(),
            many => format!("others hold {many} of the files that this push changes"),
        };
        output.note(&format!("{}: {warning}", styled(WARN, "Warning")));
        lines(conflicts).iter().for_each(|line| output.note(line));
    }
    output.done(data(conflicts), String::new);
    Exit::Ok.code()
}

/// Says why nothing was checked. The commit or push goes on.
pub(super) fn unjudged(output: &Output, failure: &Failure) -> i32 {
    let (code, message) = (failure.code, &failure.message);
    output.note(&format!("{}: not checked: {message}", styled(WARN, "tenure guard")));
    let data = json!({ "checked": false, "code": code, "message": message, "held": [] });
    output.done(data, String::new);
    Exit::Ok.code()
}

fn data(conflicts: &[Conflict]) -> Value {
    let held =
        conflicts.iter().map(|conflict| json!({ "path": conflict.path, "hold": conflict.hold }));
    json!({ "checked": true, "held": held.collect::<Vec<Value>>() })
}

/// How many files there are: each may be held by several.
fn files(conflicts: &[Conflict]) -> usize {
    let mut paths: Vec<&str> = conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    paths.dedup();
    paths.len()
}

fn lines(conflicts: &[Conflict]) -> Vec<String> {
    let mut lines: Vec<String> = conflicts.iter().take(LINES_MAX).map(line).collect();
    if conflicts.len() > LINES_MAX {
        lines.push(format!("  … and {} more", conflicts.len() - LINES_MAX));
    }
    lines
}

/// A file, its holder, what for, and how long it may take.
fn line(conflict: &Conflict) -> String {
    let hold = &conflict.seen.hold;
    let mut text =
        format!("  {}: held by {}", shown(&conflict.path), styled(NAME, &hold.holder.label));
    if !is_whole(conflict) {
        text += &format!(" as {}", show::name(&hold.want.resource));
    }
    text += &format!(" for {}", format_duration(conflict.seen.held_for));
    if let Some(operation) = &hold.operation {
        text += &format!(" ({:?})", one_line(operation));
    }
    text + &format!(", lease ends in {} unless renewed", format_duration(conflict.seen.left))
}

/// Whether the hold names just this file.
fn is_whole(conflict: &Conflict) -> bool {
    let glob = conflict.seen.hold.want.resource.glob();
    glob.is_some_and(|glob| glob.literal_prefix() == conflict.path)
}

/// A name on one line. Names with line breaks or other control characters are quoted.
fn shown(path: &str) -> String {
    let is_plain = |character: char| !character.is_control();
    if path.chars().all(is_plain) { path.to_owned() } else { format!("{path:?}") }
}

/// What to do meanwhile.
fn hint(conflicts: &[Conflict]) -> String {
    let wait = conflicts.iter().find_map(|conflict| {
        let glob = Glob::literal(&conflict.path).ok()?;
        Some(format!(": `tenure wait {}`", word(&show::name(&Resource::path(glob)))))
    });
    format!("Commit the other files now, or wait until these are free{}.", wait.unwrap_or_default())
}

/// A word as a shell reads it.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:+@%,".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
