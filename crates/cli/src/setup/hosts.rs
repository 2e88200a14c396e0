//! The hosts of agents: where each reads its hooks, MCP servers and instructions.
//!
//! Sources, read in November 2026: the hooks reference and settings pages of Claude Code;
//! `codex-rs/hooks` and `codex-rs/config` of openai/codex and its hooks page; the hooks page of
//! Cursor; `docs/hooks` and `packages/core/src/hooks` of google-gemini/gemini-cli; the plugins, MCP
//! and config pages of opencode.

use super::hook_entries::{HookEntries, Shape};
use super::host::{HookFile, Host};
use super::instructions::{agents_file, claude_file, gemini_file};
use super::mcp_entry::McpFormat;
use super::project::Signs;
use crate::commands::hook;

/// Claude Code. `SessionStart` also comes after compaction.
pub(crate) static CLAUDE_CODE: Host = Host {
    word: "claude-code",
    name: "Claude Code",
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
                ("PreToolUse", Some("Edit|Write|MultiEdit|NotebookEdit|Bash")),
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("Stop", None),
                ("SubagentStop", None),
                ("SessionEnd", None),
            ],
        },
    },
    mcp_files: &[".mcp.json"],
    mcp: McpFormat::TypedMcpServers,
    instructions: claude_file,
    folders: &[".claude"],
    advice: None,
};

/// Codex. It knows its edit tool as `apply_patch`, and accepts `Edit` and `Write` as names of it.
pub(crate) static CODEX: Host = Host {
    word: "codex",
    name: "Codex",
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
        },
    },
    mcp_files: &[".codex/config.toml"],
    mcp: McpFormat::CodexToml,
    instructions: agents_file,
    folders: &[".codex"],
    advice: Some(
        "Codex runs new hooks only after you trust them: start codex here, trust the project, and \
         accept the hooks in /hooks.",
    ),
};

/// Cursor. `failClosed` stays off: it would stop agents where tenure is not installed.
pub(crate) static CURSOR: Host = Host {
    word: "cursor",
    name: "Cursor",
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
                ("preToolUse", Some("Write|Edit|StrReplace|Delete|Shell")),
                ("sessionStart", None),
                ("beforeSubmitPrompt", None),
                ("stop", None),
                ("subagentStop", None),
                ("sessionEnd", None),
            ],
        },
    },
    mcp_files: &[".cursor/mcp.json"],
    mcp: McpFormat::CursorMcpServers,
    instructions: agents_file,
    folders: &[".cursor"],
    advice: Some(
        "Cursor asks once whether the MCP server \"tenure\" may run: enable it in its settings.",
    ),
};

/// Gemini CLI. `AfterAgent` is the end of a turn.
pub(crate) static GEMINI: Host = Host {
    word: "gemini",
    name: "Gemini CLI",
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
                ("BeforeTool", Some("write_file|replace|edit|run_shell_command")),
                ("SessionStart", None),
                ("BeforeAgent", None),
                ("AfterAgent", None),
                ("SessionEnd", None),
            ],
        },
    },
    mcp_files: &[".gemini/settings.json"],
    mcp: McpFormat::McpServers,
    instructions: gemini_file,
    folders: &[".gemini"],
    advice: Some("Gemini CLI runs a project's hooks only in folders that you trust."),
};

/// opencode. Its hooks are a plugin, which calls `tenure hook opencode`.
pub(crate) static OPENCODE: Host = Host {
    word: "opencode",
    name: "opencode",
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
    advice: None,
};

fn plugin() -> String {
    hook::opencode::plugin().to_owned()
}
