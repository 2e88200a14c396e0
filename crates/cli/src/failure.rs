//! Errors of commands: a message, a hint, an exit code, and a code for scripts.

use crate::child::SpawnError;
use crate::exit::Exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};
use std::error::Error as _;
use tenure::core::{Mode, Resource, ResourceError};
use tenure::file::FileError;
use tenure::locate::{LocateError, TokenError as ServerTokenError};
use tenure::place::{PathError, PlaceError};
use tenure::server_support::local_server::ServerFolderError;
use tenure::{Busy, Error};
use tenure_frontend::config::ConfigError;
use tenure_frontend::hint::Hint;
use tenure_frontend::refusal::Refusal;
use tenure_server::http::ServeError;
use tenure_server::http::tokens::TokenError;

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The exit code of the process.
    pub(crate) exit: i32,
    /// The error code in JSON.
    pub(crate) code: &'static str,
    /// One sentence for people.
    pub(crate) message: String,
    /// Further lines for people.
    pub(crate) more: Vec<String>,
    /// The next step for the user.
    pub(crate) hint: Option<String>,
    /// Further data in JSON.
    pub(crate) details: Value,
    /// Whether the exit code alone answers the caller, so that `--quiet` prints nothing: the
    /// resource is held by another, or no task is ready.
    pub(crate) is_answer: bool,
}

impl Failure {
    /// The resource is held, or was not obtained in time.
    pub(crate) fn locked(wanted: &[Resource], busy: &Busy) -> Failure {
        Refusal::locked(wanted, busy).into()
    }

    /// As [`Failure::locked`], for a request in this mode. It names holders that disagree on the
    /// number of slots.
    pub(crate) fn locked_as(wanted: &[Resource], mode: Mode, busy: &Busy) -> Failure {
        Refusal::locked_as(wanted, mode, busy).into()
    }

    pub(crate) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            exit: exit.code(),
            code,
            message: message.into(),
            more: vec![],
            hint: None,
            details: Value::Null,
            is_answer: is_answer(exit, code),
        }
    }

    /// The result could not be printed, and what the command did was undone.
    pub(crate) fn unprinted(error: &std::io::Error) -> Failure {
        let message = format!("cannot write the result: {error}; nothing was kept");
        Failure::new(Exit::Error, "OUTPUT", message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, "USAGE", message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn details(mut self, details: Value) -> Failure {
        self.details = details;
        self
    }
}

/// Whether the exit code is enough for a caller that wants no output: the resource is held by
/// another, or there is nothing to do. A deadlock is an error.
fn is_answer(exit: Exit, code: &str) -> bool {
    (exit == Exit::Locked && code != "DEADLOCK") || code == "NOTHING_READY"
}

/// A command line that does not parse. For a refused value the message is written here, because
/// clap would repeat the whole value, even if it is ten kilobytes long or has line breaks.
impl From<&clap::Error> for Failure {
    fn from(error: &clap::Error) -> Failure {
        let reason = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation);
        let Some(reason) = reason else { return Failure::usage(first_paragraph(error)) };
        let failure = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(option)) if option.starts_with('-') => {
                Failure::usage(format!("{option}: {reason}"))
            }
            _ => Failure::usage(reason.to_string()),
        };
        let hint = reason.downcast_ref().and_then(|error: &ResourceError| match error {
            ResourceError::Path(error) => error.hint(),
            _ => None,
        });
        failure.hint(hint.unwrap_or("See --help."))
    }
}

/// The error text of clap before its usage lines and tips, as one line.
fn first_paragraph(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a subcommand is missing".to_owned();
    }
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let Refusal { kind, code, message, more, hint, details } = refusal;
        let exit = Exit::from(kind);
        let is_answer = is_answer(exit, code);
        Failure { exit: exit.code(), code, message, more, hint, details, is_answer }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Refusal::from(error).into()
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        let failure = Failure::new(Exit::Configuration, "CONFIG", error.to_string());
        failure.hint(sentence(&error.hint()))
    }
}

impl Failure {
    /// No folder can be used for the store.
    pub(crate) fn from_place(error: &PlaceError) -> Failure {
        let failure = Failure::new(Exit::Configuration, "STORE_PLACE", error.to_string());
        failure.hint(sentence(&error.hint().unwrap_or_default()))
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Failure {
        Failure::from_place(&error)
    }
}

impl From<ServerFolderError> for Failure {
    fn from(error: ServerFolderError) -> Failure {
        let mut failure = Failure::new(Exit::Configuration, "OWN_TOKEN", error.to_string());
        failure.hint = error.hint();
        failure
    }
}

impl From<LocateError> for Failure {
    fn from(error: LocateError) -> Failure {
        let (code, details) = match &error {
            LocateError::Url(_) => ("STORE_URL", Value::Null),
            LocateError::Untrusted(untrusted) => {
                let settings = untrusted.settings.iter().map(|(key, _)| key.name());
                let links = untrusted.links.iter().map(|link| &link.path);
                let details = json!({
                    "file": untrusted.file,
                    "settings": settings.collect::<Vec<_>>(),
                    "links": links.collect::<Vec<_>>(),
                });
                ("UNTRUSTED", details)
            }
            LocateError::Foreign(foreign) => {
                ("FOREIGN_OWNER", json!({ "path": foreign.path, "owner": foreign.owner }))
            }
            LocateError::Trust(_) => ("TRUST", Value::Null),
            _ => ("STORE_PLACE", Value::Null),
        };
        let mut failure =
            Failure::new(Exit::Configuration, code, error.to_string()).details(details);
        failure.hint = error.hint();
        failure
    }
}

impl From<ServerTokenError> for Failure {
    fn from(error: ServerTokenError) -> Failure {
        let message = error.to_string();
        match error {
            ServerTokenError::ServerUrl { .. } => {
                Failure::new(Exit::Configuration, "CONFIG", message)
                    .hint("Write http://HOST:PORT, https://HOST:PORT or unix:SOCKET.")
            }
            _ => Failure::new(Exit::Configuration, "SERVER_TOKEN", message),
        }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        if let PathError::StoreLocation(error) = error {
            return error.into();
        }
        let mut failure = Failure::usage(error.to_string());
        failure.hint = error.hint().map(|hint| sentence(&hint));
        failure
    }
}

/// Begins a phrase with a capital letter. It is only for fixed phrases: a hint that begins with a
/// name must keep its spelling.
fn sentence(phrase: &str) -> String {
    let mut rest = phrase.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        let (exit, code) = match &error {
            FileError::Locked { .. } => (Exit::Locked, "FILE_LOCKED"),
            FileError::NoFolder { .. } => (Exit::NotFound, "FILE_NOT_FOUND"),
            FileError::Changed { .. } => (Exit::Error, "FILE_CHANGED"),
            FileError::Linked { .. } => (Exit::Error, "FILE_LINKED"),
            FileError::Full { .. } => (Exit::Error, "DISK_FULL"),
            _ => (Exit::Error, "FILE"),
        };
        let mut failure = Failure::new(exit, code, error.to_string());
        failure.hint = error.hint();
        failure
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        let mut failure = Failure::new(Exit::Configuration, error.code(), error.to_string());
        failure.hint = error.hint();
        failure
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Failure {
        let (exit, code) = match error {
            TokenError::Unwritten(error) => return error.into(),
            TokenError::Name { .. } => (Exit::Usage, "USAGE"),
            TokenError::Exists { .. } => (Exit::Error, "TOKEN_EXISTS"),
            TokenError::NotFound { .. } => (Exit::NotFound, "TOKEN_NOT_FOUND"),
            _ => (Exit::Configuration, "TOKENS"),
        };
        let mut failure = Failure::new(exit, code, error.to_string());
        failure.hint = error.hint();
        failure
    }
}

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Failure {
        let code = match error {
            SpawnError::TooLate { .. } => "LEASE_LOST",
            _ => "COMMAND",
        };
        let mut failure = Failure::new(Exit::Error, code, error.to_string());
        failure.exit = error.exit_code();
        failure.hint(error.hint())
    }
}
