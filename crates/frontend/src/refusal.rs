//! Refusals: why a request was not done, as one sentence, an error code and a hint. They are the
//! same on the command line, over HTTP and for agents.

use crate::duration::format_duration;
use crate::hint::Hint;
use crate::view::{self, spelling::name};
use serde_json::{Value, json};
use tenure::core::rules::tasks::{AddError, EditError, SectionError};
use tenure::core::{Blocker, HoldSnapshot, Kind, Mode, Proof, Resource, Task, Token};
use tenure::store::StoreError;
use tenure::{Busy, ClaimRequest, Error, Left};

/// The kind of a refusal. Each front end derives its own code from it: the command line an exit
/// code, HTTP a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request is invalid.
    Usage,
    /// The request is valid, but contradicts the present state.
    Contradiction,
    /// Configuration is wrong, or the store cannot be used.
    StoreUnusable,
    /// The store failed at this request; another attempt may succeed.
    StoreFailed,
    /// It does not exist.
    NotFound,
    /// It belongs to another caller, or the caller's role does not allow it.
    NotAllowed,
    /// It is locked, or was not obtained in time.
    Locked,
    /// The lease was lost, or the token was refused.
    Lost,
    /// A task's status does not allow it.
    WrongStatus,
}

impl RefusalKind {
    /// All kinds.
    pub const ALL: [RefusalKind; 9] = [
        RefusalKind::Usage,
        RefusalKind::Contradiction,
        RefusalKind::StoreUnusable,
        RefusalKind::StoreFailed,
        RefusalKind::NotFound,
        RefusalKind::NotAllowed,
        RefusalKind::Locked,
        RefusalKind::Lost,
        RefusalKind::WrongStatus,
    ];
}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The kind of refusal.
    pub kind: RefusalKind,
    /// The error code in JSON.
    pub code: &'static str,
    /// One sentence for people.
    pub message: String,
    /// Further lines for people.
    pub more: Vec<String>,
    /// The next step for the user.
    pub hint: Option<String>,
    /// Further data in JSON.
    pub details: Value,
}

impl Refusal {
    /// A refusal of this kind.
    pub fn new(kind: RefusalKind, code: &'static str, message: impl Into<String>) -> Refusal {
        let message = message.into();
        Refusal { kind, code, message, more: vec![], hint: None, details: Value::Null }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    /// Adds data for JSON.
    pub fn details(mut self, details: Value) -> Refusal {
        self.details = details;
        self
    }

    /// The request is invalid.
    pub fn usage(message: impl Into<String>) -> Refusal {
        Refusal::new(RefusalKind::Usage, "USAGE", message)
    }

    /// The lease is lost: another holder may have worked at the same time.
    pub fn lost(message: impl Into<String>) -> Refusal {
        Refusal::new(RefusalKind::Lost, "LEASE_LOST", message)
            .hint("It lapsed, was released, or an operator broke it; see `tenure events`.")
    }

    /// The proof covers none of these resources. A grant that holds nothing was lost; a label may
    /// simply hold nothing.
    pub fn nothing_held(proof: &Proof, resources: &[Resource]) -> Refusal {
        let what = match resources {
            [] => "anything".to_owned(),
            some => view::names(some),
        };
        match proof {
            Proof::Grant(_) => Refusal::lost(format!("This grant no longer holds {what}")),
            Proof::Label(label) => {
                let message = format!("{label} does not hold {what}");
                Refusal::new(RefusalKind::NotFound, "NOT_HELD", message)
                    .hint("List what is held with `tenure locks`.")
            }
        }
    }

    /// It belongs to another holder.
    pub fn not_yours(seen: &HoldSnapshot) -> Refusal {
        let holder = &seen.hold.holder.label;
        let resource = name(&seen.hold.want.resource);
        let message = format!("{resource} is held by {holder}, not by you");
        Refusal::new(RefusalKind::NotAllowed, "NOT_YOURS", message)
            .hint("Wait for the holder to release it; `tenure why` shows what would free it.")
            .details(json!({ "lockedBy": holder, "expiresAt": seen.limit().map(view::time) }))
    }

    /// The token does not hold this.
    pub fn token_refused(resource: &Resource, token: Token, current: Option<Token>) -> Refusal {
        let now = match current {
            Some(token) => format!("token {token} holds it now"),
            None => "it is free".to_owned(),
        };
        let message = format!("Token {token} does not hold {}: {now}", name(resource));
        Refusal::new(RefusalKind::Lost, "TOKEN_REFUSED", message)
            .details(json!({ "token": token, "currentToken": current }))
    }

    /// There is no hold with this token to break.
    pub fn nothing_to_break(resource: &Resource, token: Option<Token>) -> Refusal {
        let resource = name(resource);
        let message = match token {
            Some(token) => format!("No lock to break: {resource} is not held under token {token}"),
            None => format!("No lock to break: {resource} is free"),
        };
        Refusal::new(RefusalKind::NotFound, "NOT_HELD", message)
    }

    /// No task was ready: none is left, or the remaining ones cannot be claimed now.
    pub fn none_ready(request: &ClaimRequest, left: &Left) -> Refusal {
        let section = request.section.iter().map(|name| format!(" in section {name:?}"));
        let labels = request.labels.iter().map(|label| format!(" with the label {label:?}"));
        let wanted: String = section.chain(labels).collect();
        if left.is_empty() {
            let message = format!("No task{wanted} is left to do");
            return Refusal::new(RefusalKind::NotFound, "NOTHING_READY", message)
                .hint("Wait for one with -w SECS, or run `tenure tasks list`.");
        }
        let why = left.clauses();
        let message = format!("No task{wanted} is ready: {}", why.join("; "));
        Refusal::new(RefusalKind::Locked, "NOT_READY", message)
            .hint("Wait for one with -w SECS, or run `tenure tasks list`.")
            .details(json!({ "why": why, "workers": left.workers }))
    }

    /// The caller no longer has the task. Nothing was changed.
    pub fn late(task: &Task, token: Option<Token>) -> Refusal {
        let title = &task.title;
        let claim = task.claim.as_ref();
        let now = match claim {
            Some(claim) => format!("{} has it", claim.by),
            None => format!("it is {}", task.status),
        };
        let other_token = token.filter(|token| claim.is_some_and(|claim| claim.token != *token));
        let (code, message) = match other_token {
            Some(token) => (
                "TOKEN_REFUSED",
                format!("Token {token} does not hold task {title:?}: {now}; nothing was changed"),
            ),
            None => {
                ("LEASE_LOST", format!("Task {title:?} is not yours: {now}; nothing was changed"))
            }
        };
        Refusal::new(RefusalKind::Lost, code, message)
            .hint("Its lease lapsed, or it was recovered or never yours; see `tenure events`.")
            .details(json!({
                "taskId": task.id.as_str(),
                "status": task.status.word(),
                "lockedBy": claim.map(|claim| &claim.by),
                "token": token,
                "finishedAt": task.finished_at.map(view::time),
            }))
    }

    /// A part of the caller's claim ended or went to another holder, so the claim is lost. Nothing
    /// was changed.
    pub fn claim_lost(task: &Task, part: &Resource) -> Refusal {
        let (title, lost) = (&task.title, name(part));
        let message = format!(
            "The claim of task {title:?} is lost: its {lost} lapsed, was released or went to \
             another holder; nothing was changed"
        );
        Refusal::new(RefusalKind::Lost, "LEASE_LOST", message)
            .hint("Stop working on it; claim it again with `tenure tasks claim`.")
            .details(json!({
                "taskId": task.id.as_str(),
                "status": task.status.word(),
                "lost": part.to_string(),
            }))
    }

    /// There is no section with this name.
    pub fn no_such_section(name: &str) -> Refusal {
        Refusal::new(RefusalKind::NotFound, "SECTION_NOT_FOUND", format!("no section {name:?}"))
            .hint("List all sections with `tenure sections list`.")
    }

    /// As [`Refusal::locked`], for a request in this mode. It names holders that disagree on the
    /// number of slots.
    pub fn locked_as(wanted: &[Resource], mode: Mode, busy: &Busy) -> Refusal {
        let mut refusal = Refusal::locked(wanted, busy);
        if let Some((asked, counts)) = view::slots_mismatch(mode, &busy.blockers) {
            refusal.message += &format!("; {}", view::mismatch_words(asked, counts));
            refusal.details["slotsAsked"] = json!(asked);
            refusal.details["slotsOfHolders"] = json!(counts);
        }
        refusal
    }

    /// It is locked, or was not obtained in time. The message names the holder, its operation and
    /// how long the caller waited; never how to force it, because agents read it too.
    pub fn locked(wanted: &[Resource], busy: &Busy) -> Refusal {
        let holder = busy.blockers.iter().find_map(|blocker| match blocker {
            Blocker::Hold(seen) => Some(seen),
            Blocker::Waiter(_) => None,
        });
        match holder {
            Some(seen) => locked_by(seen, busy),
            None => {
                let names = view::names(wanted);
                let message = format!("{names} is free, but others have waited longer for it");
                Refusal::new(RefusalKind::Locked, "LOCKED", message)
                    .hint("Wait for your turn with -w SECS.")
            }
        }
    }
}

fn locked_by(seen: &HoldSnapshot, busy: &Busy) -> Refusal {
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
        Kind::Lock | Kind::Path => ("LOCKED", format!("{} is held by {holder}", name(resource))),
    };
    message += &format!(" for {}", format_duration(seen.held_for));
    if let Some(operation) = &hold.operation {
        message += &format!(" ({:?})", view::one_line(operation));
    }
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
    let expires = seen.limit().map(view::time);
    let id = resource.name();
    let mut refusal = Refusal::new(RefusalKind::Locked, code, message).details(json!({
        "resource": resource.to_string(),
        "lockedBy": holder,
        "runnerId": holder,
        "expiresAt": expires,
        "operation": hold.operation,
        "waitedSeconds": view::seconds(busy.waited),
    }));
    if resource.kind() == Kind::Task {
        refusal.details["taskId"] = json!(id);
    }
    refusal.more.push(match expires {
        Some(expires) => format!("Lock expires at: {expires} unless renewed"),
        None => "Lock expires at: no limit".to_owned(),
    });
    refusal
}

/// The error as a sentence, with paths as they can be typed.
fn sentence(error: &Error) -> String {
    match error {
        Error::Deadlock(cycle) => format!("Deadlock: {}", cycle.words(name)),
        error => error.to_string(),
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        use RefusalKind as Kind;
        let (kind, code) = match &error {
            Error::Store(StoreError::Corrupt { .. }) => (Kind::StoreUnusable, "STORE_CORRUPT"),
            Error::Store(StoreError::Gone { .. }) => (Kind::StoreUnusable, "STORE_GONE"),
            Error::Store(StoreError::Unsupported { .. }) => (Kind::StoreUnusable, "UNSUPPORTED"),
            Error::Store(StoreError::Unavailable { .. } | StoreError::Withheld { .. }) => {
                (Kind::StoreUnusable, "STORE_UNAVAILABLE")
            }
            Error::Store(StoreError::Unknown { .. }) => (Kind::StoreFailed, "OUTCOME_UNKNOWN"),
            Error::Store(StoreError::Refused { .. }) => (Kind::NotAllowed, "FORBIDDEN"),
            Error::Store(StoreError::Contended { .. }) => (Kind::StoreFailed, "STORE_CONTENDED"),
            Error::Store(StoreError::Text(_)) => (Kind::Usage, "USAGE"),
            Error::Resource(_) | Error::Label(_) | Error::Request(_) => (Kind::Usage, "USAGE"),
            Error::Url(_) => (Kind::StoreUnusable, "STORE_URL"),
            Error::Deadlock(_) => (Kind::Locked, "DEADLOCK"),
            Error::TooLate => (Kind::Lost, "LEASE_LOST"),
            Error::Add(AddError::Exists { .. } | AddError::NoSuchDependency { .. }) => {
                (Kind::Contradiction, "TASK_REFUSED")
            }
            Error::Add(_) => (Kind::Usage, "TASK_REFUSED"),
            Error::Edit(EditError::NotFound { .. }) | Error::NoSuchTask { .. } => {
                (Kind::NotFound, "TASK_NOT_FOUND")
            }
            Error::Edit(EditError::InProgress { .. }) => (Kind::Locked, "TASK_LOCKED"),
            Error::Edit(EditError::WrongStatus { .. } | EditError::HasDependents { .. }) => {
                (Kind::WrongStatus, "TASK_STATUS")
            }
            Error::Edit(EditError::NotYours { .. }) => (Kind::Lost, "LEASE_LOST"),
            Error::Edit(EditError::TryGoesOn { .. }) => (Kind::WrongStatus, "TASK_STATUS"),
            Error::Edit(EditError::NoSuchTry { .. }) => (Kind::NotFound, "TRY_NOT_FOUND"),
            Error::Edit(_) => (Kind::Usage, "TASK_REFUSED"),
            Error::Section(SectionError::NoSuchDependency { .. }) => {
                (Kind::NotFound, "SECTION_NOT_FOUND")
            }
            Error::Section(SectionError::Cycle { .. }) => (Kind::Contradiction, "SECTION_REFUSED"),
            Error::Section(_) => (Kind::Usage, "SECTION_REFUSED"),
            Error::Ambiguous { .. } => (Kind::Usage, "TASK_AMBIGUOUS"),
            _ => (Kind::StoreFailed, "ERROR"),
        };
        let mut refusal = Refusal::new(kind, code, sentence(&error));
        refusal.hint = error.hint();
        if let Error::Deadlock(cycle) = &error {
            let steps = cycle.steps.iter().map(|step| {
                json!({
                    "waiter": step.waiter,
                    "resource": step.resource.to_string(),
                    "blockedBy": step.blocked_by,
                })
            });
            refusal.details = json!({ "cycle": steps.collect::<Vec<_>>() });
        }
        refusal
    }
}
