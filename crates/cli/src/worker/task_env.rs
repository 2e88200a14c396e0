//! What a command is told about its task: environment variables, and a JSON object on its standard
//! input.

use crate::context::{AGENT_VARIABLE, GRANT_VARIABLE, KEEPS_VARIABLE};
use crate::show;
use serde_json::{Value, json};
use std::ffi::OsString;
use tenure::Work;
use tenure::core::{GrantId, Resource, Task};
use tenure_frontend::git::WorkerTree;
use tenure_frontend::{rescue, view};

/// A longer payload is only on standard input: no system accepts a variable of more than 128 KiB.
const PAYLOAD_MAX_BYTES: usize = 64 * 1024;

/// The command's variables. `keeps` are the grants of enclosing commands.
pub(super) fn environment(
    work: &Work,
    task: &Task,
    tree: Option<&WorkerTree>,
    keeps: &[GrantId],
    store_url: &str,
) -> Vec<(OsString, OsString)> {
    let lease = work.lease();
    let names: Vec<String> = work.resources().iter().map(Resource::to_string).collect();
    let keeps = keeps.iter().chain([&lease.grant]).map(GrantId::to_string);
    let payload = task.payload.clone().unwrap_or_default();
    let fits = payload.len() <= PAYLOAD_MAX_BYTES;
    let variables = [
        ("TENURE_TASK_ID", task.id.to_string()),
        ("TENURE_TASK_TITLE", task.title.clone()),
        ("TENURE_TASK_SECTION", task.section.clone().unwrap_or_default()),
        ("TENURE_TASK_ATTEMPT", task.attempts.to_string()),
        ("TENURE_TASK_PAYLOAD", if fits { payload } else { String::new() }),
        ("TENURE_TASK_FILES", task.files.join("\n")),
        ("TENURE_RESOURCE", names.join("\n")),
        ("TENURE_TOKEN", lease.token.to_string()),
        (GRANT_VARIABLE, lease.grant.to_string()),
        (KEEPS_VARIABLE, keeps.collect::<Vec<_>>().join(",")),
        ("TENURE_STORE", store_url.to_owned()),
        ("TENURE_DEADLINE", show::time(lease.expires_at)),
    ];
    // Calls of tenure inside the command use the worker's label.
    let agent = task.claim.as_ref().map(|claim| (AGENT_VARIABLE, claim.by.clone()));
    let mut all: Vec<(OsString, OsString)> = variables
        .into_iter()
        .chain(agent)
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    // Set even if empty: those of an enclosing worker are about another task.
    let rescue = rescue::reference(task).unwrap_or_default();
    all.push(("TENURE_RESCUE_REF".into(), rescue.into()));
    if let Some(tree) = tree {
        all.push(("TENURE_WORKTREE".into(), tree.path.clone().into()));
        all.push(("TENURE_BRANCH".into(), tree.branch.clone().into()));
    }
    all
}

/// The task as one line of JSON.
pub(super) fn standard_input(work: &Work, task: &Task, tree: Option<&WorkerTree>) -> Vec<u8> {
    let payload = task.payload.as_ref().map(|text| match serde_json::from_str(text) {
        Ok(payload) => payload,
        Err(_) => Value::String(text.clone()),
    });
    let ids: Vec<&str> = task.depends_on.iter().map(|id| id.as_str()).collect();
    let brief = json!({
        "id": task.id.as_str(),
        "title": task.title,
        "description": task.description,
        "section": task.section,
        "priority": task.priority,
        "depends_on": ids,
        "labels": task.labels,
        "files": task.files,
        "payload": payload,
        "attempt": task.attempts,
        "max_attempts": task.max_attempts,
        "timeout_seconds": task.timeout.map(|timeout| timeout.as_secs_f64()),
        "last_error": task.error,
        "feedback": task.feedback,
        "notes": task.notes.iter().map(view::Note::from).collect::<Vec<_>>(),
        "tries": task.ended_tries().map(|one| view::Try::of(&task.id, one)).collect::<Vec<_>>(),
        "token": work.lease().token,
        "rescue_ref": rescue::reference(task),
        "worktree": tree.map(|tree| tree.path.to_string_lossy()),
        "branch": tree.map(|tree| &tree.branch),
    });
    format!("{brief}\n").into_bytes()
}
