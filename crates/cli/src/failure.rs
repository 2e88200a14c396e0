//! A command that did not do what was asked: one sentence, a hint, a code for scripts.

use crate::child::SpawnError;
use crate::exit::Exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};
use std::error::Error as _;
use tenure::config::ConfigError;
use tenure::core::rules::tasks::{EditError, SectionError};
use tenure::core::{Blocker, Kind, Resource, ResourceError, SeenHold};
use tenure::duration::format_duration;
use tenure::file::FileError;
use tenure::place::{PathError, PlaceError};
use tenure::store::StoreError;
use tenure::{Busy, Error};

use crate::show;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What the process ends with.
    pub(crate) exit: i32,
    /// A word for scripts.
    pub(crate) code: &'static str,
    /// One sentence.
    pub(crate) message: String,
    /// More lines for people.
    pub(crate) more: Vec<String>,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// More for scripts.
    pub(crate) details: Value,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            exit: exit.code(),
            code,
            message: message.into(),
            more: vec![],
            hint: None,
            details: Value::Null,
        }
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

    /// It is locked, or was not obtained in time. Names who, doing what, and how long was waited;
    /// never how to force it: agents read this too.
    pub(crate) fn locked(wanted: &[Resource], busy: &Busy) -> Failure {
        let holder = busy.blockers.iter().find_map(|blocker| match blocker {
            Blocker::Hold(seen) => Some(seen),
            Blocker::Waiter(_) => None,
        });
        match holder {
            Some(seen) => locked_by(seen, busy),
            None => {
                let names = show::names(wanted);
                let message = format!("{names} is free but others wait for it since longer");
                Failure::new(Exit::Locked, "LOCKED", message).hint("Wait for your turn with -w.")
            }
        }
    }
}

fn locked_by(seen: &SeenHold, busy: &Busy) -> Failure {
    let hold = &seen.hold;
    let resource = &hold.want.resource;
    let holder = &hold.holder.label;
    let (code, mut message) = match resource.kind() {
        Kind::Task => {
            ("TASK_LOCKED", format!("Task {:?} is locked by runner {holder}", resource.name()))
        }
        Kind::Section => (
            "SECTION_LOCKED",
            format!("Section {:?} is locked by runner {holder}", resource.name()),
        ),
        Kind::Lock | Kind::Path => ("LOCKED", format!("{resource} is held by {holder}")),
    };
    if let Some(operation) = &hold.operation {
        message += &format!(" for {:?}", show::one_line(operation));
    }
    message += &format!(" since {} ago", format_duration(seen.held_for));
    let holders = busy.blockers.iter().filter(
        |blocker| matches!(blocker, Blocker::Hold(other) if other.hold.want.resource == *resource),
    );
    match holders.count() {
        0 | 1 => {}
        many => message += &format!(", and by {} more", many - 1),
    }
    if !busy.waited.is_zero() {
        message += &format!("; waited {}", format_duration(busy.waited));
    }
    let expires = show::time(seen.expires_at);
    let id = resource.name();
    let mut failure = Failure::new(Exit::Locked, code, message).details(json!({
        "resource": resource.to_string(),
        "lockedBy": holder,
        "runnerId": holder,
        "expiresAt": expires,
        "operation": hold.operation,
        "waitedSeconds": show::seconds(busy.waited),
    }));
    if resource.kind() == Kind::Task {
        failure.details["taskId"] = json!(id);
    }
    failure.more.push(format!("Lock expires at: {expires} unless renewed"));
    failure
}

/// A command line that makes no sense. Where a value was refused, the sentence is ours: clap's would
/// repeat the whole value as it is, be it ten kilobytes long or full of line breaks.
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
        failure.hint(hint.unwrap_or("See --help for what is possible."))
    }
}

/// What clap says before its usage lines and tips, as one line.
fn first_paragraph(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a subcommand is needed".to_owned();
    }
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (exit, code) = match &error {
            Error::Store(StoreError::Corrupt { .. }) => (Exit::Configuration, "STORE_CORRUPT"),
            Error::Store(StoreError::Unsupported { .. }) => (Exit::Configuration, "UNSUPPORTED"),
            Error::Store(StoreError::Unavailable { .. }) => {
                (Exit::Configuration, "STORE_UNAVAILABLE")
            }
            Error::Store(StoreError::Unknown { .. }) => (Exit::Error, "OUTCOME_UNKNOWN"),
            Error::Store(StoreError::Contended { .. }) => (Exit::Error, "STORE_CONTENDED"),
            Error::Resource(_) | Error::Label(_) | Error::Request(_) => (Exit::Usage, "USAGE"),
            Error::Url(_) => (Exit::Configuration, "STORE_URL"),
            Error::Deadlock(_) => (Exit::Locked, "DEADLOCK"),
            Error::Add(_) => (Exit::Usage, "TASK_REFUSED"),
            Error::Edit(EditError::NotFound { .. }) | Error::NoSuchTask { .. } => {
                (Exit::NotFound, "TASK_NOT_FOUND")
            }
            Error::Edit(EditError::InProgress { .. }) => (Exit::Locked, "TASK_LOCKED"),
            Error::Edit(EditError::WrongStatus { .. } | EditError::HasDependents { .. }) => {
                (Exit::Error, "TASK_STATUS")
            }
            Error::Edit(_) => (Exit::Usage, "TASK_REFUSED"),
            Error::Section(SectionError::NoSuchDependency { .. }) => {
                (Exit::NotFound, "SECTION_NOT_FOUND")
            }
            Error::Section(_) => (Exit::Usage, "SECTION_REFUSED"),
            Error::Ambiguous { .. } => (Exit::Usage, "TASK_AMBIGUOUS"),
        };
        let mut failure = Failure::new(exit, code, error.to_string());
        failure.hint = error.hint();
        if let Error::Deadlock(cycle) = &error {
            let steps = cycle.steps.iter().map(|step| {
                json!({
                    "waiter": step.waiter,
                    "resource": step.resource.to_string(),
                    "blockedBy": step.blocked_by,
                })
            });
            failure.details = json!({ "cycle": steps.collect::<Vec<_>>() });
        }
        failure
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        let failure = Failure::new(Exit::Configuration, "CONFIG", error.to_string());
        failure.hint(error.hint())
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Failure {
        let failure = Failure::new(Exit::Configuration, "STORE_PLACE", error.to_string());
        failure.hint(error.hint())
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        if let PathError::Place(error) = error {
            return error.into();
        }
        let mut failure = Failure::usage(error.to_string());
        failure.hint = error.hint();
        failure
    }
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
        failure.hint = error.hint().map(str::to_owned);
        failure
    }
}

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Failure {
        let mut failure = Failure::new(Exit::Error, "COMMAND", error.to_string());
        failure.exit = error.exit_code();
        failure.hint(error.hint())
    }
}
