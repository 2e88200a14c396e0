//! Text for people about tasks. [`tenure_frontend::view`] has the JSON.

use crate::output::{BAD, DIM, GOOD, NAME, WARN, styled};
use crate::show::{table, time};
use tenure::core::{Note, Status, Task, TaskId, Try, WallTime};
use tenure::world::{Clock, SystemClock};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view::{self, Claims, spelling};

pub(crate) use tenure_frontend::view::hold_of;

/// An id for tables: long ones are cut, and still name the task if they are unique.
fn short(id: &TaskId) -> String {
    id.as_str().chars().take(12).collect()
}

/// Title and id, for a sentence.
pub(crate) fn name(task: &Task) -> String {
    format!("{} ({})", styled(NAME, format!("{:?}", task.title)), task.id)
}

fn status(status: Status) -> String {
    let style = match status {
        Status::Completed | Status::Skipped => GOOD,
        Status::Failed | Status::Blocked => BAD,
        Status::InProgress | Status::Review => WARN,
        Status::Pending | Status::Cancelled => DIM,
    };
    styled(style, status)
}

/// A table of tasks.
pub(crate) fn task_table(tasks: &[Task], claims: &Claims<'_>) -> String {
    let header = ["ID", "STATUS", "PRIO", "SECTION", "TITLE", "WHO", "SINCE", "LEFT"];
    let rows = tasks.iter().map(|task| {
        let hold = claims.hold(task);
        let left = || hold.map(view::left).unwrap_or_default();
        let left = claims.stale_reason(task).unwrap_or_else(left);
        [
            short(&task.id),
            task.status.to_string(),
            task.priority.to_string(),
            task.section.clone().unwrap_or_default(),
            one_line(&task.title),
            who(task),
            hold.map(|seen| format_duration(seen.held_for)).unwrap_or_default(),
            left,
        ]
    });
    table(&std::iter::once(header.map(str::to_owned)).chain(rows).collect::<Vec<_>>())
}

/// The worker that has the task, or that finished it.
fn who(task: &Task) -> String {
    let claimed = task.claim.as_ref().map(|claim| &claim.by);
    claimed.or(task.finished_by.as_ref()).cloned().unwrap_or_default()
}

/// A text on one line, without control characters that could change the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// A task in full.
pub(crate) fn task_text(task: &Task, claims: &Claims<'_>) -> String {
    let mut lines =
        vec![format!("{}  {}", styled(NAME, one_line(&task.title)), status(task.status))];
    let mut line = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            let indented: Vec<String> = text.lines().map(one_line).collect();
            lines.push(format!("  {name:<12} {}", indented.join("\n               ")));
        }
    };
    let list = |list: &[String]| (!list.is_empty()).then(|| list.join(", "));
    let depends_on: Vec<String> = task.depends_on.iter().map(TaskId::to_string).collect();
    line("id", Some(task.id.to_string()));
    line("section", task.section.clone());
    line("priority", Some(task.priority.to_string()));
    line("description", task.description.clone());
    line("after", list(&depends_on));
    line("labels", list(&task.labels));
    let files: Vec<String> = task.files.iter().map(|glob| spelling::glob(glob)).collect();
    line("files", list(&files));
    line("payload", task.payload.clone());
    line("attempts", Some(format!("{} of {}", task.attempts, task.max_attempts)));
    line("timeout", task.timeout.map(format_duration));
    line("not before", task.not_before.map(time));
    line("claimed by", task.claim.as_ref().map(|claim| claim.by.clone()));
    line("lease", lease_text(task, claims));
    line("result", task.result.clone());
    line("error", task.error.clone());
    line("feedback", task.feedback.clone());
    line("created", Some(time(task.created_at)));
    line("claimed", task.claimed_at.map(time));
    line("started", task.started_at.map(time));
    line("finished", task.finished_at.map(time));
    line("finished by", task.finished_by.clone());
    for one in &task.tries {
        line(&format!("try {}", one.number), Some(try_text(&task.id, one)));
    }
    for note in &task.notes {
        line("note", Some(note_text(note)));
    }
    lines.join("\n")
}

/// How many notes and tries a worker is shown with its claim; `tasks show` has all of them.
const HISTORY_SHOWN: usize = 5;

/// What a worker that just claimed a task should know of it: how the last tries ended, and the last
/// notes. Begins with a line end; empty for a task without a history.
pub(crate) fn history_text(task: &Task) -> String {
    let indent = |name: &str, text: String| {
        let lines: Vec<String> = text.lines().map(one_line).collect();
        format!("\n  {name:<8} {}", lines.join("\n           "))
    };
    let tries: Vec<&Try> = task.ended_tries().collect();
    let hidden_tries = tries.len().saturating_sub(HISTORY_SHOWN);
    let hidden_notes = task.notes.len().saturating_sub(HISTORY_SHOWN);
    let mut text = String::new();
    for one in &tries[hidden_tries..] {
        text += &indent(&format!("try {}", one.number), try_text(&task.id, one));
    }
    for note in &task.notes[hidden_notes..] {
        text += &indent("note", note_text(note));
    }
    if hidden_tries + hidden_notes > 0 {
        text += &indent("more", format!("tenure tasks show {}", task.id));
    }
    text
}

/// How a try went, in a line or two.
fn try_text(task: &TaskId, one: &Try) -> String {
    let by = &one.by;
    let mut text = match (one.outcome, one.ended_at) {
        (Some(outcome), Some(at)) => {
            let took_ms = u64::try_from(at.0 - one.claimed_at.0).unwrap_or(0);
            let took = format_duration(std::time::Duration::from_millis(took_ms));
            format!("{by}: {outcome} at {}, after {took}", time(at))
        }
        _ => format!("{by}: since {}", time(one.claimed_at)),
    };
    if let Some(error) = &one.error {
        text += &format!(" ({})", one_line(error));
    }
    let host = one.workspace.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
    if let Some(worktree) = &one.workspace.worktree {
        text += &format!("\nin {worktree}{host}");
    }
    if let Some(branch) = &one.workspace.branch {
        text += &format!("\nbranch {branch}");
    }
    if let Some(rescue) = one.rescue_of(task) {
        text += &format!("\nunfinished work kept in {rescue}");
    }
    text
}

fn note_text(note: &Note) -> String {
    format!("{} at {}:\n{}", note.by, time(note.at), note.text)
}

fn lease_text(task: &Task, claims: &Claims<'_>) -> Option<String> {
    match claims.stale_reason(task) {
        Some(reason) => Some(format!("no longer valid: {reason}")),
        None => Some(match claims.hold(task)? {
            hold if hold.has_no_limit() => "no limit".to_owned(),
            hold => format!("ends in {} if not renewed", format_duration(hold.left)),
        }),
    }
}

/// The time from now until `at`, for a sentence; `None` if it has passed.
pub(crate) fn in_how_long(at: WallTime) -> Option<String> {
    let left_ms = u64::try_from(at.0 - SystemClock.wall().0).ok().filter(|left_ms| *left_ms > 0)?;
    Some(format!("in {}", format_duration(std::time::Duration::from_millis(left_ms))))
}
