//! The programs in which coding agents run, and how each is recognised.

use super::ancestors::{Ancestors, SystemProcesses};
use std::fmt;
use std::str::FromStr;

/// A program in which coding agents run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor's command-line agent, and hooks of the editor.
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// GitHub Copilot CLI.
    Copilot,
    /// goose.
    Goose,
    /// Amp.
    Amp,
    /// aider.
    Aider,
    /// Qwen Code.
    Qwen,
    /// Crush.
    Crush,
}

/// One row of the table.
struct HostInfo {
    host: Host,
    word: &'static str,
    /// How labels of its agents begin.
    prefix: &'static str,
    /// The names of its process, and of the script if an interpreter runs it.
    names: &'static [&'static str],
    /// What the path of its script contains, where the script has a name that says little.
    package: &'static str,
    /// The variables that it sets to the id of the session, the first that is set counts.
    sessions: &'static [&'static str],
    /// The variable that it sets to the id of the thread in the session: in the session itself the same,
    /// in a subagent another.
    thread: Option<&'static str>,
}

/// All programs. A variable stands here if the program's documentation, release notes or source say that
/// it sets it for the commands of its shell.
static HOSTS: [HostInfo; 11] = [
    HostInfo {
        host: Host::ClaudeCode,
        word: "claude-code",
        prefix: "claude",
        names: &["claude"],
        package: "@anthropic-ai/claude-code",
        sessions: &["CLAUDE_CODE_SESSION_ID"],
        thread: None,
    },
    HostInfo {
        host: Host::Codex,
        word: "codex",
        prefix: "codex",
        names: &["codex"],
        package: "@openai/codex",
        sessions: &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
        thread: Some("CODEX_THREAD_ID"),
    },
    HostInfo {
        host: Host::Cursor,
        word: "cursor",
        prefix: "cursor",
        names: &["cursor-agent", EDITOR],
        package: "/cursor-agent/",
        sessions: &["CURSOR_CONVERSATION_ID"],
        thread: None,
    },
    HostInfo {
        host: Host::Gemini,
        word: "gemini",
        prefix: "gemini",
        names: &["gemini"],
        package: "@google/gemini-cli",
        sessions: &["GEMINI_SESSION_ID"],
        thread: None,
    },
    HostInfo {
        host: Host::Opencode,
        word: "opencode",
        prefix: "opencode",
        names: &["opencode"],
        package: "opencode-ai",
        // Its plugin of ours sets both; see `tenure hook opencode`.
        sessions: &["OPENCODE_SESSION_ID"],
        thread: Some("OPENCODE_SUBAGENT_SESSION_ID"),
    },
    HostInfo {
        host: Host::Copilot,
        word: "copilot",
        prefix: "copilot",
        names: &["copilot"],
        package: "@github/copilot",
        sessions: &["COPILOT_AGENT_SESSION_ID"],
        thread: None,
    },
    HostInfo {
        host: Host::Goose,
        word: "goose",
        prefix: "goose",
        names: &["goose"],
        package: "",
        sessions: &["AGENT_SESSION_ID"],
        thread: None,
    },
    HostInfo {
        host: Host::Amp,
        word: "amp",
        prefix: "amp",
        names: &["amp"],
        package: "@sourcegraph/amp",
        sessions: &[],
        thread: None,
    },
    HostInfo {
        host: Host::Aider,
        word: "aider",
        prefix: "aider",
        names: &["aider"],
        package: "",
        sessions: &[],
        thread: None,
    },
    HostInfo {
        host: Host::Qwen,
        word: "qwen",
        prefix: "qwen",
        names: &["qwen"],
        package: "@qwen-code/qwen-code",
        sessions: &["QWEN_CODE_SESSION_ID"],
        thread: Some("QWEN_CODE_AGENT_ID"),
    },
    HostInfo {
        host: Host::Crush,
        word: "crush",
        prefix: "crush",
        names: &["crush"],
        package: "",
        sessions: &[],
        thread: None,
    },
];

/// The process of Cursor's editor, which serves the agents of all its windows.
const EDITOR: &str = "cursor";

/// The words on the command line of a program with which one process of it serves many sessions.
const SERVERS: [(Host, &[&str]); 2] = [
    (Host::Codex, &["app-server", "mcp-server", "exec-server"]),
    (Host::Opencode, &["serve", "web", "acp"]),
];

/// Whether one process of this program serves many agents.
pub(super) fn is_shared(host: Host, name: &str, arguments: &[String]) -> bool {
    let is_server = |(server, words): &(Host, &[&str])| {
        *server == host && arguments.iter().any(|argument| words.contains(&argument.as_str()))
    };
    name == EDITOR
        || arguments.first().is_some_and(|program| file_name(program) == EDITOR)
        || SERVERS.iter().any(is_server)
}

/// Interpreters, whose script names the program.
const INTERPRETERS: [&str; 7] = ["node", "nodejs", "bun", "deno", "python", "perl", "ruby"];

/// The longest id of a session that counts; ids are far shorter.
const SESSION_MAX_BYTES: usize = 512;

/// A session, as the environment names it.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) subagent: Option<String>,
    pub(super) variable: &'static str,
}

impl Host {
    /// All programs that are known.
    pub const ALL: [Host; 11] = [
        Host::ClaudeCode,
        Host::Codex,
        Host::Cursor,
        Host::Gemini,
        Host::Opencode,
        Host::Copilot,
        Host::Goose,
        Host::Amp,
        Host::Aider,
        Host::Qwen,
        Host::Crush,
    ];

    /// The nearest program of agents that started this process.
    pub fn around_this_process() -> Option<Host> {
        let around = Ancestors::of(&SystemProcesses, std::process::id());
        around.program().map(|found| found.host)
    }

    fn info(self) -> &'static HostInfo {
        &HOSTS[self as usize]
    }

    /// The word for it on the command line and in JSON.
    pub fn word(self) -> &'static str {
        self.info().word
    }

    /// How the labels of its agents begin.
    pub fn prefix(self) -> &'static str {
        self.info().prefix
    }

    /// The variables in which it names the session to the commands of its shell.
    pub fn session_variables(self) -> &'static [&'static str] {
        self.info().sessions
    }

    /// Whether one process of it has one session at a time, so that a session that begins ends the one
    /// before.
    pub fn has_one_session(self) -> bool {
        matches!(self, Host::ClaudeCode | Host::Gemini)
    }

    /// The names by which its process is recognised.
    pub fn process_names(self) -> &'static [&'static str] {
        self.info().names
    }

    /// The session that the environment names.
    pub(super) fn session(self, variable: &dyn Fn(&str) -> Option<String>) -> Option<Session> {
        let read = |name: &str| variable(name).filter(|id| is_session(id));
        let mut names = self.info().sessions.iter();
        let (variable, id) = names.find_map(|name| Some((*name, read(name)?)))?;
        let subagent = self.info().thread.and_then(read).filter(|thread| *thread != id);
        Some(Session { id, subagent, variable })
    }

    /// The program that a process is, by the name of the process and its arguments.
    pub(super) fn of_process(name: &str, arguments: &[String]) -> Option<Host> {
        let script = script(arguments);
        let is_one = |info: &&HostInfo| {
            let is_named = |file: &str| info.names.contains(&file_name(file));
            let in_package = |file: &str| !info.package.is_empty() && file.contains(info.package);
            let first = arguments.first().map(String::as_str);
            info.names.contains(&name)
                || first.is_some_and(is_named)
                || script.is_some_and(|file| is_named(file) || in_package(file))
        };
        HOSTS.iter().find(is_one).map(|info| info.host)
    }
}

fn is_session(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= SESSION_MAX_BYTES
}

/// The script or module that an interpreter runs, if the process is one.
pub(super) fn script(arguments: &[String]) -> Option<&str> {
    let program = file_name(arguments.first()?);
    // `python3.12` is Python too.
    let is_interpreter = INTERPRETERS.iter().any(|name| {
        program.strip_prefix(name).is_some_and(|rest| rest.trim_matches(VERSION).is_empty())
    });
    let mut rest = arguments.iter().skip(1).filter(|_| is_interpreter);
    rest.find(|argument| !argument.starts_with('-')).map(String::as_str)
}

const VERSION: [char; 11] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.'];

/// The name of a file without its folder.
fn file_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The text is no program that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an agent program that is known")]
pub struct HostError {
    /// What was given.
    pub text: String,
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Host, HostError> {
        let found = HOSTS.iter().find(|info| info.word == text || info.prefix == text);
        found
            .map(|info| info.host)
            .ok_or_else(|| HostError { text: text.chars().take(40).collect() })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
