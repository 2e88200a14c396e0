//! What a host reports and what it is answered, in words that no host has of its own.

use serde_json::Value;
use std::path::PathBuf;
use tenure::agent::Host;

/// An event of an agent's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The host's name of the event, which some answers repeat.
    pub(crate) name: String,
    /// The host whose session it is. It differs from the configured one if a host runs the hooks
    /// of another.
    pub(crate) host: Host,
    /// The id of the session.
    pub(crate) session: Option<String>,
    /// The id of the subagent in which it happened.
    pub(crate) subagent: Option<String>,
    /// The id of a call of tenure's own tools that is about to be made, where the host names it to
    /// the MCP server too.
    pub(crate) call: Option<String>,
    /// The folder that the agent works in.
    pub(crate) folder: Option<PathBuf>,
    /// What happened.
    pub(crate) what: What,
}

/// What happened, or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// These files are about to be changed by a tool of the host.
    BeforeEdit {
        /// The files, as the agent named them.
        paths: Vec<PathBuf>,
    },
    /// A shell command is about to run.
    BeforeShell {
        /// The command.
        command: String,
        /// The folder that it runs in, if it is not the agent's.
        folder: Option<PathBuf>,
    },
    /// A session begins, is resumed, or forgot what it knew.
    SessionStart,
    /// The agent finished a turn.
    TurnEnd,
    /// A subagent finished.
    SubagentEnd,
    /// The session is over.
    SessionEnd,
    /// Anything else: a sign of life.
    Other,
}

/// What the host is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may go on.
    Allow,
    /// It may go on; this should be known.
    Warn {
        /// A few sentences for the model or the user.
        text: String,
    },
    /// It must not.
    Deny {
        /// Who is in the way, and what to do meanwhile.
        reason: String,
    },
    /// Something for the model to know.
    Context {
        /// The text of `tenure prime`.
        text: String,
    },
}

/// A text field of a JSON object, unless it is empty.
pub(crate) fn text(object: &Value, name: &str) -> Option<String> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A field with the path of a file or folder.
pub(crate) fn path(object: &Value, name: &str) -> Option<PathBuf> {
    text(object, name).map(PathBuf::from)
}

/// An edit of these files, or nothing of interest if there are none.
pub(crate) fn edit(paths: impl IntoIterator<Item = PathBuf>) -> What {
    let paths: Vec<PathBuf> = paths.into_iter().collect();
    match paths.is_empty() {
        true => What::Other,
        false => What::BeforeEdit { paths },
    }
}
