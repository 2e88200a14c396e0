//! The statements by which a scope is looked at, and what their answers show.

use super::error::PgError;
use super::pick;
use super::plain_tasks;
use super::read::{self, Gathered};
use super::row::Row;
use super::session::Ask;
use super::tasks::TaskLook;
use tenure_core::Scope;

/// The statements by which a scope is looked at.
pub(super) enum Look<'a> {
    At { resources: &'a [tenure_core::Resource], ticket: Option<u64>, whole: bool },
    Other(Vec<Ask>, &'a Scope),
    Tasks(TaskLook),
}

impl Look<'_> {
    pub(super) fn new(scope: &Scope, way: pick::Way) -> Look<'_> {
        match scope {
            Scope::At { resources, ticket } => {
                Look::At { resources, ticket: *ticket, whole: false }
            }
            Scope::Queues(resources) => Look::At { resources, ticket: None, whole: true },
            Scope::Everything => Look::Other(read::everything(), scope),
            Scope::Waits { resources, owner } => {
                Look::Other(read::all_waits(resources, owner), scope)
            }
            Scope::Tasks(scope) => Look::Tasks(TaskLook::new(scope, way)),
        }
    }

    pub(super) fn pick(&self) -> Option<Ask> {
        match self {
            Look::Tasks(look) => look.pick.clone(),
            _ => None,
        }
    }

    /// One statement that draws a number and reads, if there is one for this scope.
    pub(super) fn numbered(&self) -> Option<Ask> {
        match self {
            Look::At { resources, ticket, whole: false } => read::numbered_at(resources, *ticket),
            Look::Tasks(look) => look.numbered.clone(),
            _ => None,
        }
    }

    /// What is asked beside [`numbered`](Look::numbered).
    pub(super) fn asks_beside_number(&self) -> Vec<Ask> {
        match self {
            Look::Tasks(look) => look.asks.clone(),
            _ => vec![],
        }
    }

    /// Puts the answers to [`numbered`](Look::numbered), without its first row, and to
    /// [`asks_beside_number`](Look::asks_beside_number) into a snapshot.
    pub(super) fn gather_numbered(
        &self,
        entries: &[Row],
        beside: &[Vec<Row>],
        into: &mut Gathered,
    ) -> Result<(), PgError> {
        match self {
            Look::Tasks(_) => plain_tasks::gather(entries, &beside[0], into),
            _ => into.entries_at(entries),
        }
    }

    pub(super) fn asks(&self) -> Vec<Ask> {
        match self {
            Look::At { resources, ticket, whole } => read::at(resources, *ticket, *whole),
            Look::Other(asks, _) => asks.clone(),
            Look::Tasks(look) => look.asks.clone(),
        }
    }

    /// Puts the answers to [`Look::asks`] into a snapshot.
    pub(super) fn gather(&self, rows: &[Vec<Row>], into: &mut Gathered) -> Result<(), PgError> {
        match self {
            Look::At { resources, whole, .. } => into.at(resources, rows, *whole),
            Look::Other(_, scope) => {
                into.snapshot.whole = **scope == Scope::Everything;
                into.snapshot.shows_waits = matches!(scope, Scope::Waits { .. });
                into.holds(&rows[0], |_| true)?;
                into.waits(&rows[1], |_| true)
            }
            Look::Tasks(look) => look.gather(rows, into),
        }
    }
}
