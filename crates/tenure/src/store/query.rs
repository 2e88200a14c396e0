//! Reads, waits and maintenance as values, so that a server, a meter or a test double passes them
//! on without a method for each.
//!
//! A new read needs a variant of [`Query`] and of [`Answer`], a line in the table of `reads!`, and
//! an arm in each store.

use super::{Finding, Store, StoreError, Tally, TaskFilter};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::time::Duration;
use tenure_core::{Event, GrantId, Revision, Scope, Snapshot, Task};

/// A question to a store. To answer it changes nothing and keeps no writer waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// What is held, waited for and to be done in a part of the store, at one moment.
    Snapshot(Scope),
    /// Events after a revision, oldest first.
    Events(EventsAfter),
    /// The newest events, oldest first.
    NewestEvents(NewestEvents),
    /// Tasks, oldest first.
    Tasks(TaskFilter),
    /// The number of tasks of each section and status.
    TaskCounts,
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Query::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Query::Events`] and [`Query::NewestEvents`].
    Events(Vec<Event>),
    /// To [`Query::Tasks`].
    Tasks(Vec<Task>),
    /// To [`Query::TaskCounts`].
    TaskCounts(Vec<Tally>),
}

/// Asks for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsAfter {
    /// Only events with a higher revision.
    pub after: Revision,
    /// The largest number of events in the answer.
    pub limit: u32,
}

/// Asks for the newest events, however far their revisions lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestEvents {
    /// The largest number of events in the answer.
    pub limit: u32,
}

/// Asks for the number of tasks of each section and status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCounts;

/// A query whose answer has a type of its own.
pub trait Read {
    /// What the caller gets.
    type Answer;

    /// The query as a value.
    fn query(self) -> Query;

    /// The typed answer; none if the answer belongs to another query.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

/// The table of typed reads: the type that asks, its query, and the type of its answer.
macro_rules! reads {
    ($($asks:ty: |$read:pat_param| $query:expr, |$found:pat_param| $answer:expr => $typed:ty;)+) => {$(
        impl Read for $asks {
            type Answer = $typed;

            fn query(self) -> Query {
                let $read = self;
                $query
            }

            fn answer(answer: Answer) -> Option<$typed> {
                match answer {
                    $found => Some($answer),
                    _ => None,
                }
            }
        }
    )+};
}

reads! {
    &Scope: |scope| Query::Snapshot(scope.clone()),
        |Answer::Snapshot(snapshot)| *snapshot => Snapshot;
    EventsAfter: |after| Query::Events(after), |Answer::Events(events)| events => Vec<Event>;
    NewestEvents: |newest| Query::NewestEvents(newest),
        |Answer::Events(events)| events => Vec<Event>;
    &TaskFilter: |filter| Query::Tasks(filter.clone()), |Answer::Tasks(tasks)| tasks => Vec<Task>;
    TaskCounts: |_| Query::TaskCounts, |Answer::TaskCounts(counts)| counts => Vec<Tally>;
}

impl Query {
    /// A word for it, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Query::Snapshot(_) => "read",
            Query::Events(_) | Query::NewestEvents(_) => "events",
            Query::Tasks(_) => "tasks",
            Query::TaskCounts => "tallies",
        }
    }
}

/// What a caller can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The store's revision passes this one.
    Change {
        /// The newest revision that the caller knows.
        since: Revision,
    },
    /// A queued request is woken because its turn may have come.
    Turn {
        /// Which request.
        grant: GrantId,
    },
}

impl Signal {
    /// A word for it, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Signal::Change { .. } => "changed",
            Signal::Turn { .. } => "turn",
        }
    }
}

/// How a wait ended. Both ends are possible: the signal came, or patience ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waited {
    /// Of [`Signal::Change`]: the store's revision now.
    Change(Revision),
    /// Of [`Signal::Turn`].
    Turn,
}

/// Work on a store that is no change of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maintenance {
    /// Removes what crashed processes left behind beside the records.
    Tidy,
    /// Checks that the store is in order.
    Check,
}

impl Maintenance {
    /// A word for it, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Maintenance::Tidy => "tidy",
            Maintenance::Check => "check",
        }
    }
}

/// What came of [`Maintenance`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maintained {
    /// So many things were removed.
    Tidied(usize),
    /// One sentence for each thing that was checked.
    Checked(Vec<Finding>),
}

/// The typed forms of [`Store::query`], [`Store::wait`] and [`Store::maintain`].
pub trait StoreExt: Store {
    /// Answers a typed query.
    fn read<R: Read + Send>(
        &self,
        read: R,
    ) -> impl Future<Output = Result<R::Answer, StoreError>> + Send;

    /// Events after a revision, oldest first.
    fn events(
        &self,
        after: Revision,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Event>, StoreError>> + Send {
        self.read(EventsAfter { after, limit })
    }

    /// Waits until the store's revision is beyond `since`, or patience ends; returns it.
    fn changed(
        &self,
        since: Revision,
        patience: Duration,
    ) -> impl Future<Output = Result<Revision, StoreError>> + Send;

    /// Waits until this queued request is woken, or patience ends.
    fn turn(
        &self,
        grant: GrantId,
        patience: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes what crashed processes left behind; returns how many things.
    fn tidy(&self) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Checks that the store is in order.
    fn check(&self) -> impl Future<Output = Result<Vec<Finding>, StoreError>> + Send;
}

impl<S: Store + ?Sized> StoreExt for S {
    async fn read<R: Read + Send>(&self, read: R) -> Result<R::Answer, StoreError> {
        let answer = self.query(read.query()).await?;
        typed(R::answer(answer), || self.info().url)
    }

    async fn changed(&self, since: Revision, patience: Duration) -> Result<Revision, StoreError> {
        let waited = self.wait(Signal::Change { since }, patience).await?;
        typed(waited.revision(), || self.info().url)
    }

    async fn turn(&self, grant: GrantId, patience: Duration) -> Result<(), StoreError> {
        self.wait(Signal::Turn { grant }, patience).await.map(drop)
    }

    async fn tidy(&self) -> Result<usize, StoreError> {
        let maintained = self.maintain(Maintenance::Tidy).await?;
        typed(maintained.tidied(), || self.info().url)
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let maintained = self.maintain(Maintenance::Check).await?;
        typed(maintained.checked(), || self.info().url)
    }
}

impl Waited {
    /// The revision, if this is the end of a wait for a change.
    pub fn revision(self) -> Option<Revision> {
        match self {
            Waited::Change(revision) => Some(revision),
            Waited::Turn => None,
        }
    }
}

impl Maintained {
    /// How much was removed, if this is the outcome of tidying.
    pub fn tidied(self) -> Option<usize> {
        match self {
            Maintained::Tidied(count) => Some(count),
            Maintained::Checked(_) => None,
        }
    }

    /// The findings, if this is the outcome of a check.
    pub fn checked(self) -> Option<Vec<Finding>> {
        match self {
            Maintained::Checked(findings) => Some(findings),
            Maintained::Tidied(_) => None,
        }
    }
}

/// The answer that was asked for, or an error where a store or a server answered something else.
pub(crate) fn typed<T>(answer: Option<T>, store: impl Fn() -> String) -> Result<T, StoreError> {
    answer.ok_or_else(|| StoreError::Unsupported {
        what: format!("{} answers another question than it was asked", store()),
        instead: "Use the same version of tenure on both sides.".to_owned(),
    })
}
