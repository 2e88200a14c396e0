//! The hooks of Gemini CLI.
//!
//! Source: `docs/hooks/reference.md` of `google-gemini/gemini-cli`. Its standard output must be
//! JSON only. It does not wait for the end of a session, and has no event after compaction.

use super::claude_code::context;
use super::event::{Event, Verdict, What, edit, path, text};
use serde_json::{Value, json};
use tenure::agent::Host;

/// Reads an event.
pub(super) fn event(input: &Value) -> Event {
    let name = text(input, "hook_event_name").unwrap_or_default();
    let what = match name.as_str() {
        "BeforeTool" => tool(input),
        "SessionStart" => What::SessionStart,
        "AfterAgent" => What::TurnEnd,
        "SessionEnd" => What::SessionEnd,
        _ => What::Other,
    };
    let session = text(input, "session_id");
    let folder = path(input, "cwd");
    Event { name, host: Host::Gemini, session, subagent: None, call: None, folder, what }
}

fn tool(input: &Value) -> What {
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    match text(input, "tool_name").unwrap_or_default().as_str() {
        "write_file" | "replace" | "edit" => edit(path(arguments, "file_path")),
        "run_shell_command" => match text(arguments, "command") {
            Some(command) => {
                let folder = path(arguments, "dir_path").or(path(arguments, "directory"));
                What::BeforeShell { command, folder }
            }
            None => What::Other,
        },
        _ => What::Other,
    }
}

/// Words the answer; an empty object allows.
pub(super) fn answer(event: &Event, verdict: &Verdict) -> Option<Value> {
    Some(match verdict {
        Verdict::Allow => json!({}),
        Verdict::Deny { reason } => json!({ "decision": "deny", "reason": reason }),
        Verdict::Context { text } => context(&event.name, text),
        Verdict::Warn { text } => json!({ "systemMessage": text }),
    })
}
