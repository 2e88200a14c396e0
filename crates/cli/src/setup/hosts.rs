//! The hosts of agents: where each reads its hooks, MCP servers and instructions.
//!
//! Sources, read in November 2026: the hooks reference and settings pages of Claude Code;
//! `codex-rs/hooks` and `codex-rs/config` of openai/codex and its hooks page; the hooks page of
//! Cursor; `docs/hooks` and `packages/core/src/hooks` of google-gemini/gemini-cli; the plugins, MCP
//! and config pages of opencode.

use super::hook_entries::{HookEntries, Shape};
use super::host::{HookFile, Host};
use super::host_trust;
use super::instructions::{agents_file, claude_file, gemini_file};
use super::mcp_entry::McpFormat;
use super::project::Signs;
use crate::commands::hook;
use serde_json::{Value, json};
use std::path::Path;

/// Claude Code. `SessionStart` also comes after compaction.
pub(crate) static CLAUDE_CODE: Host = Host {
    word: "claude-code",
    signs: Signs {
        files: &[".claude", "CLAUDE.md", ".mcp.json"],
        variables: &["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"],
        programs: &["claude"],
    },
    hooks: HookFile::Entries {
        file: ".claude/settings.json",
        entries: HookEntries {
            host: "claude-code",
            shape: Shape::Groups,
            events: &[
                ("PreToolUse", Some("Edit|Write|MultiEdit|NotebookEdit|Bash|mcp__tenure__.*")),
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("Stop", None),
                ("SubagentStop", None),
                ("SessionEnd", None),
            ],
            is_of_user: false,
        },
    },
    mcp_files: &[".mcp.json"],
    mcp: McpFormat::TypedMcpServers,
    instructions: claude_file,
    folders: &[".claude"],
    edit_event: claude_code_edit,
    is_refusal: denies_permission,
    untrusted: |_| None,
    advice: Some(
        "Start claude in this folder: in a subfolder it does not run a project's hooks, unless you \
         also run `tenure setup --user claude-code`.",
    ),
};

/// Codex. It knows its edit tool as `apply_patch`, and accepts `Edit` and `Write` as names of it.
pub(crate) static CODEX: Host = Host {
    word: "codex",
    signs: Signs {
        files: &[".codex"],
        variables: &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
        programs: &["codex"],
    },
    hooks: HookFile::Entries {
        file: ".codex/hooks.json",
        entries: HookEntries {
            host: "codex",
            shape: Shape::Groups,
            events: &[
                ("PreToolUse", Some("apply_patch|Edit|Write|Bash")),
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("Stop", None),
                ("SubagentStop", None),
                ("SessionEnd", None),
            ],
            is_of_user: false,
        },
    },
    mcp_files: &[".codex/config.toml"],
    mcp: McpFormat::CodexToml,
    instructions: agents_file,
    folders: &[".codex"],
    edit_event: codex_edit,
    is_refusal: denies_permission,
    untrusted: host_trust::codex,
    advice: Some(
        "Codex runs new hooks only after you trust them: start codex here, trust the project, and \
         accept the hooks in /hooks.",
    ),
};

/// Cursor. `failClosed` stays off: it would stop agents where tenure is not installed.
pub(crate) static CURSOR: Host = Host {
    word: "cursor",
    signs: Signs {
        files: &[".cursor", ".cursorrules"],
        variables: &["CURSOR_AGENT", "CURSOR_TRACE_ID", "CURSOR_VERSION"],
        programs: &["cursor", "cursor-agent"],
    },
    hooks: HookFile::Entries {
        file: ".cursor/hooks.json",
        entries: HookEntries {
            host: "cursor",
            shape: Shape::Versioned,
            events: &[
                ("preToolUse", Some("Write|Edit|MultiEdit|StrReplace|EditNotebook|Delete|Shell")),
                ("sessionStart", None),
                ("beforeSubmitPrompt", None),
                ("stop", None),
                ("subagentStop", None),
                ("sessionEnd", None),
            ],
            is_of_user: false,
        },
    },
    mcp_files: &[".cursor/mcp.json"],
    mcp: McpFormat::CursorMcpServers,
    instructions: agents_file,
    folders: &[".cursor"],
    edit_event: cursor_edit,
    is_refusal: |answer| answer["permission"] == "deny",
    untrusted: |_| None,
    advice: Some(
        "Cursor asks once whether the MCP server \"tenure\" may run: enable it in its settings.",
    ),
};

/// Gemini CLI. `AfterAgent` is the end of a turn.
pub(crate) static GEMINI: Host = Host {
    word: "gemini",
    signs: Signs {
        files: &[".gemini", "GEMINI.md"],
        variables: &["GEMINI_CLI"],
        programs: &["gemini"],
    },
    hooks: HookFile::Entries {
        file: ".gemini/settings.json",
        entries: HookEntries {
            host: "gemini",
            shape: Shape::Groups,
            events: &[
                ("BeforeTool", Some("write_file|replace|run_shell_command")),
                ("SessionStart", None),
                ("BeforeAgent", None),
                ("AfterAgent", None),
                ("SessionEnd", None),
            ],
            is_of_user: false,
        },
    },
    mcp_files: &[".gemini/settings.json"],
    mcp: McpFormat::McpServers,
    instructions: gemini_file,
    folders: &[".gemini"],
    edit_event: gemini_edit,
    is_refusal: |answer| answer["decision"] == "deny",
    untrusted: host_trust::gemini,
    advice: Some(
        "Gemini CLI runs a project's hooks only in folders that you trust. Start gemini in this \
         folder: in a subfolder it does not run them, unless you also run `tenure setup --user gemini`.",
    ),
};

/// opencode. Its hooks are a plugin, which calls `tenure hook opencode`.
pub(crate) static OPENCODE: Host = Host {
    word: "opencode",
    signs: Signs {
        files: &[".opencode", "opencode.json", "opencode.jsonc"],
        variables: &["OPENCODE"],
        programs: &["opencode"],
    },
    hooks: HookFile::Plugin { file: ".opencode/plugins/tenure.js", text: plugin },
    mcp_files: &[
        "opencode.json",
        "opencode.jsonc",
        ".opencode/opencode.json",
        ".opencode/opencode.jsonc",
    ],
    mcp: McpFormat::Opencode,
    instructions: agents_file,
    folders: &[".opencode/plugins", ".opencode"],
    edit_event: opencode_edit,
    is_refusal: |answer| answer["deny"].is_string(),
    untrusted: |_| None,
    advice: None,
};

fn plugin() -> String {
    hook::opencode::plugin().to_owned()
}

/// A session that no agent has, for events of trials.
const SESSION: &str = "tenure-doctor";

fn claude_code_edit(folder: &Path, file: &Path) -> Value {
    json!({
        "session_id": SESSION,
        "cwd": folder,
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": { "file_path": file, "content": "" },
    })
}

fn codex_edit(folder: &Path, file: &Path) -> Value {
    let name = file.strip_prefix(folder).unwrap_or(file).display();
    let patch = format!("*** Begin Patch\n*** Update File: {name}\n@@\n-a\n+b\n*** End Patch\n");
    json!({
        "session_id": SESSION,
        "cwd": folder,
        "hook_event_name": "PreToolUse",
        "tool_name": "apply_patch",
        "tool_input": { "command": patch },
    })
}

fn cursor_edit(folder: &Path, file: &Path) -> Value {
    json!({
        "conversation_id": SESSION,
        "workspace_roots": [folder],
        "hook_event_name": "preToolUse",
        "tool_name": "Write",
        "tool_input": { "file_path": file, "content": "" },
    })
}

fn gemini_edit(folder: &Path, file: &Path) -> Value {
    json!({
        "session_id": SESSION,
        "cwd": folder,
        "hook_event_name": "BeforeTool",
        "tool_name": "write_file",
        "tool_input": { "file_path": file, "content": "" },
    })
}

fn opencode_edit(folder: &Path, file: &Path) -> Value {
    json!({
        "event": "tool.execute.before",
        "session": SESSION,
        "directory": folder,
        "tool": "write",
        "args": { "filePath": file, "content": "" },
    })
}

/// The answer of Claude Code and Codex.
fn denies_permission(answer: &Value) -> bool {
    answer["hookSpecificOutput"]["permissionDecision"] == "deny"
}
