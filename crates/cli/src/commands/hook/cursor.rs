//! The hooks of Cursor.
//!
//! Source: its documentation (`cursor.com/docs/hooks`), and recorded sessions of version 3.18. A
//! subagent has a conversation of its own that names no parent, so it is an owner of its own; the
//! end of a subagent names the parent only.

use super::event::{Event, Verdict, What, edit, path, text};
use serde_json::{Value, json};
use tenure::agent::Host;

/// Reads an event.
pub(super) fn event(input: &Value) -> Event {
    let name = text(input, "hook_event_name").unwrap_or_default();
    let what = match name.as_str() {
        "preToolUse" => tool(input),
        "beforeShellExecution" => match text(input, "command") {
            Some(command) => What::BeforeShell { command, folder: path(input, "cwd") },
            None => What::Other,
        },
        "sessionStart" => What::SessionStart,
        "stop" => What::TurnEnd,
        "sessionEnd" => What::SessionEnd,
        _ => What::Other,
    };
    let first_root = input.get("workspace_roots").and_then(|roots| roots.get(0)?.as_str());
    let folder = path(input, "cwd").or(first_root.map(Into::into));
    let session = text(input, "conversation_id").or(text(input, "session_id"));
    Event { name, host: Host::Cursor, session, subagent: None, call: None, folder, what }
}

fn tool(input: &Value) -> What {
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    match text(input, "tool_name").unwrap_or_default().as_str() {
        "Write" | "StrReplace" | "Edit" | "MultiEdit" | "Delete" | "EditNotebook" => {
            let names = ["file_path", "path", "target_file", "target_notebook"];
            edit(names.iter().find_map(|name| path(arguments, name)))
        }
        "Shell" => match text(arguments, "command") {
            Some(command) => {
                What::BeforeShell { command, folder: path(arguments, "working_directory") }
            }
            None => What::Other,
        },
        _ => What::Other,
    }
}

/// Words the answer. An event that asks for a permission is always given one: silence may count as
/// a failure.
pub(super) fn answer(event: &Event, verdict: &Verdict) -> Option<Value> {
    let asks_permission = matches!(
        event.name.as_str(),
        "preToolUse"
            | "beforeShellExecution"
            | "beforeMCPExecution"
            | "beforeReadFile"
            | "subagentStart"
    );
    Some(match verdict {
        Verdict::Deny { reason } => {
            json!({ "permission": "deny", "user_message": reason, "agent_message": reason })
        }
        Verdict::Context { text } => json!({ "additional_context": text }),
        Verdict::Warn { text } => {
            json!({ "permission": "allow", "user_message": text, "agent_message": text })
        }
        Verdict::Allow if asks_permission => json!({ "permission": "allow" }),
        Verdict::Allow if event.name == "beforeSubmitPrompt" => json!({ "continue": true }),
        Verdict::Allow => return None,
    })
}
