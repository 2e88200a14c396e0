//! The hooks of Claude Code.
//!
//! Source: the hooks reference of its documentation (`code.claude.com/docs/en/hooks`), and recorded
//! sessions of version 2.1. Exit code 0 with JSON decides; exit code 2 would refuse as well, and
//! any other code lets the call through.

use super::event::{Event, Verdict, What, edit, path, text};
use serde_json::{Value, json};
use tenure::agent::Host;

/// Reads an event. Codex has the same fields, with tools of its own.
pub(super) fn event(input: &Value) -> Event {
    let name = text(input, "hook_event_name").unwrap_or_default();
    let what = match name.as_str() {
        "PreToolUse" => tool(input),
        name => session_event(name),
    };
    // Cursor runs the hooks of Claude Code too: the owner is still the Cursor session.
    let is_cursor = input.get("cursor_version").is_some();
    let (host, session) = match is_cursor {
        true => (Host::Cursor, text(input, "conversation_id").or(text(input, "session_id"))),
        false => (Host::ClaudeCode, text(input, "session_id")),
    };
    let subagent = text(input, "agent_id").filter(|_| !is_cursor);
    let is_own = text(input, "tool_name").is_some_and(|tool| tool.starts_with(OWN_TOOLS));
    let call = text(input, "tool_use_id").filter(|_| is_own && name == "PreToolUse");
    Event { name, host, session, subagent, call, folder: path(input, "cwd"), what }
}

/// How tools of the MCP server are called that `tenure setup` names.
const OWN_TOOLS: &str = "mcp__tenure__";

/// The events of a session, as Claude Code and Codex name them.
pub(super) fn session_event(name: &str) -> What {
    match name {
        "SessionStart" => What::SessionStart,
        "Stop" => What::TurnEnd,
        "SubagentStop" => What::SubagentEnd,
        "SessionEnd" => What::SessionEnd,
        _ => What::Other,
    }
}

fn tool(input: &Value) -> What {
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    match text(input, "tool_name").unwrap_or_default().as_str() {
        "Edit" | "Write" | "MultiEdit" => edit(path(arguments, "file_path")),
        "NotebookEdit" => edit(path(arguments, "notebook_path")),
        "Bash" => match text(arguments, "command") {
            Some(command) => What::BeforeShell { command, folder: None },
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
        // The user and the model both read it.
        Verdict::Warn { text } => {
            let mut answer = context(&event.name, text);
            answer["systemMessage"] = json!(text);
            Some(answer)
        }
    }
}

/// A refusal, as Claude Code and Codex read it.
pub(super) fn denial(name: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": name,
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    } })
}

/// A text for the model, as Claude Code, Codex and Gemini read it.
pub(super) fn context(name: &str, text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": text } })
}
