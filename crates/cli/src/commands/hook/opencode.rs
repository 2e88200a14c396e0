//! opencode, which runs plugins instead of commands: a plugin of ours calls `tenure hook opencode`
//! with events in a form of its own.
//!
//! Source: `packages/plugin/src/index.ts` of `anomalyco/opencode` (formerly `sst/opencode`), whose
//! plugin refuses a tool by throwing an error; the message reaches the model.

use super::event::{Event, Verdict, What, edit, path, text};
use super::patch;
use serde_json::{Value, json};
use tenure::agent::Host;

/// The plugin, to be written to `.opencode/plugins/tenure.js`.
pub(crate) fn plugin() -> &'static str {
    include_str!("opencode_plugin.js")
}

/// Reads an event of the plugin.
pub(super) fn event(input: &Value) -> Event {
    let name = text(input, "event").unwrap_or_default();
    let what = match name.as_str() {
        "tool.execute.before" => tool(input),
        "session.start" => What::SessionStart,
        "session.idle" if text(input, "parent").is_some() => What::SubagentEnd,
        "session.idle" => What::TurnEnd,
        "session.deleted" if text(input, "parent").is_some() => What::SubagentEnd,
        "session.deleted" => What::SessionEnd,
        _ => What::Other,
    };
    // A subagent is a session with a parent.
    let (session, subagent) = match (text(input, "parent"), text(input, "session")) {
        (Some(parent), session) => (Some(parent), session),
        (None, session) => (session, None),
    };
    let folder = path(input, "directory");
    Event { name, host: Host::Opencode, session, subagent, call: None, folder, what }
}

fn tool(input: &Value) -> What {
    let arguments = input.get("args").unwrap_or(&Value::Null);
    match text(input, "tool").unwrap_or_default().as_str() {
        "edit" | "write" | "multiedit" => edit(path(arguments, "filePath")),
        "patch" | "apply_patch" => {
            edit(patch::files(&text(arguments, "patchText").unwrap_or_default()))
        }
        "bash" => match text(arguments, "command") {
            Some(command) => What::BeforeShell { command, folder: path(arguments, "workdir") },
            None => What::Other,
        },
        _ => What::Other,
    }
}

/// Words the answer for the plugin.
pub(super) fn answer(_: &Event, verdict: &Verdict) -> Option<Value> {
    match verdict {
        Verdict::Allow => None,
        Verdict::Deny { reason } => Some(json!({ "deny": reason })),
        Verdict::Context { text } => Some(json!({ "context": text })),
        Verdict::Warn { text } => Some(json!({ "warn": text })),
    }
}
