//! The hooks of Codex.
//!
//! Source: `codex-rs/hooks` of `openai/codex` (its schemas and its output parser), and recorded
//! sessions of version 0.147. Edits come as `apply_patch` with the patch as the command. Before a
//! tool, only a refusal and `systemMessage` are accepted: any other decision, and a text for the
//! model in some versions, make the hook fail, which lets the call through.

use super::claude_code::{context, denial, session_event};
use super::event::{Event, Verdict, What, edit, path, text};
use super::patch;
use serde_json::{Value, json};
use tenure::agent::Host;

/// Reads an event.
pub(super) fn event(input: &Value) -> Event {
    let name = text(input, "hook_event_name").unwrap_or_default();
    let what = match name.as_str() {
        "PreToolUse" => tool(input),
        name => session_event(name),
    };
    Event {
        name,
        host: Host::Codex,
        session: text(input, "session_id"),
        subagent: text(input, "agent_id"),
        call: None,
        folder: path(input, "cwd"),
        what,
    }
}

fn tool(input: &Value) -> What {
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    let command = text(arguments, "command");
    match text(input, "tool_name").unwrap_or_default().as_str() {
        // Some versions name the tool after what Claude Code calls it.
        "apply_patch" | "Edit" | "Write" => {
            let patched = patch::files(&command.unwrap_or_default());
            edit(patched.into_iter().chain(path(arguments, "file_path")))
        }
        "Bash" => match command {
            Some(command) => What::BeforeShell { command, folder: path(arguments, "workdir") },
            None => What::Other,
        },
        _ => What::Other,
    }
}

/// Words the answer; silence allows.
pub(super) fn answer(event: &Event, verdict: &Verdict) -> Option<Value> {
    match verdict {
        Verdict::Allow => None,
        Verdict::Deny { reason } => Some(denial(&event.name, reason)),
        Verdict::Context { text } => Some(context(&event.name, text)),
        Verdict::Warn { text } => Some(json!({ "systemMessage": text })),
    }
}
