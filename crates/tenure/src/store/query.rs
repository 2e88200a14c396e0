//! Reads, waits and maintenance as values, so that a server, a meter or a test double passes them
//! on without a method for each.
//!
//! A new read needs a variant of [`Query`] and of [`Answer`], a line in the table of `reads!`, and
//! an arm in each store.

use super::{Finding, Store, StoreError, Tally, TaskFilter};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::time::Duration;
use tenure_core::{
    EndedTask, Event, EventFilter, GrantId, Keep, RecordRange, RecordSnapshot, Revision, Scope,
    Snapshot, Status, Task,
};

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
    /// Events that a filter admits, oldest first.
    SearchEvents(EventSearch),
    /// Small records, by their keys. One whose time is over is not among them.
    Records(RecordSearch),
    /// Tasks, oldest first.
    Tasks(TaskFilter),
    /// The number of tasks of each section and status.
    TaskCounts,
    /// Finished tasks that are beyond what is kept, in the order in which they ended.
    SurplusTasks(SurplusTasks),
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Query::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Query::Events`], [`Query::NewestEvents`] and [`Query::SearchEvents`].
    Events(Vec<Event>),
    /// To [`Query::Records`].
    Records(Vec<RecordSnapshot>),
    /// To [`Query::Tasks`].
    Tasks(Vec<Task>),
    /// To [`Query::TaskCounts`].
    TaskCounts(Vec<Tally>),
    /// To [`Query::SurplusTasks`].
    SurplusTasks(Vec<EndedTask>),
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

/// Asks for events that a filter admits. What it costs does not grow with the history of other
/// resources where the store has an index of resources; other stores read from the end that is asked
/// for until they have found enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSearch {
    /// Which events.
    pub filter: EventFilter,
    /// Only events with a higher revision.
    pub after: Revision,
    /// Only events with a lower revision, if this is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Revision>,
    /// Which events are answered where more are admitted than the limit allows.
    pub prefer: Prefer,
    /// The largest number of events in the answer.
    pub limit: u32,
}

/// Which end of a list counts where not all of it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prefer {
    /// The oldest events.
    Oldest,
    /// The newest events.
    Newest,
}

impl EventSearch {
    /// The newest events that a filter admits.
    pub fn newest(filter: EventFilter, limit: u32) -> EventSearch {
        EventSearch { filter, after: Revision(0), before: None, prefer: Prefer::Newest, limit }
    }

    /// The first events after a revision that a filter admits.
    pub fn after(filter: EventFilter, after: Revision, limit: u32) -> EventSearch {
        EventSearch { filter, after, before: None, prefer: Prefer::Oldest, limit }
    }

    /// Whether this event is asked for, the limit aside.
    pub fn admits(&self, event: &Event) -> bool {
        event.revision > self.after
            && self.before.is_none_or(|before| event.revision < before)
            && self.filter.admits(event)
    }
}

/// Asks for small records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordSearch {
    /// Which records.
    pub range: RecordRange,
    /// Only with a key behind this one, for paging; from the first, if it is empty.
    #[serde(default)]
    pub after: String,
    /// The largest number of records in the answer.
    pub limit: u32,
}

impl RecordSearch {
    /// All that a range has.
    pub fn all(range: RecordRange) -> RecordSearch {
        RecordSearch { range, after: String::new(), limit: u32::MAX }
    }

    /// The lowest and the highest key that is asked for, both included: no text that begins with the
    /// prefix is higher.
    pub(crate) fn bounds(&self) -> (String, String) {
        let RecordRange { prefix, .. } = &self.range;
        let first = match self.after.is_empty() {
            true => prefix.clone(),
            // The next text behind it.
            false => prefix.clone().max(format!("{}\u{1}", self.after)),
        };
        (first, format!("{prefix}{}", char::MAX))
    }
}

/// Asks for the number of tasks of each section and status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCounts;

/// Asks for finished tasks that are beyond what is kept: the oldest, by when they ended. They are found
/// and counted at one moment, by [`Keep::surplus`].
///
/// A store for which it would be costly to find the oldest of very many may look at a part of them, at
/// another part each time, and answer for that part: then some that are beyond the limit are named
/// later, and a few are kept that are older than others that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurplusTasks {
    /// Tasks with this status.
    pub status: Status,
    /// What is kept of them.
    pub keep: Keep,
    /// So many of the oldest are left out: they were named before and had to stay.
    pub skip: u32,
    /// The largest number of tasks in the answer.
    pub limit: u32,
}

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
    EventSearch: |search| Query::SearchEvents(search), |Answer::Events(events)| events => Vec<Event>;
    RecordSearch: |search| Query::Records(search),
        |Answer::Records(records)| records => Vec<RecordSnapshot>;
    &TaskFilter: |filter| Query::Tasks(filter.clone()), |Answer::Tasks(tasks)| tasks => Vec<Task>;
    TaskCounts: |_| Query::TaskCounts, |Answer::TaskCounts(counts)| counts => Vec<Tally>;
    SurplusTasks: |surplus| Query::SurplusTasks(surplus),
        |Answer::SurplusTasks(tasks)| tasks => Vec<EndedTask>;
}

impl Query {
    /// A word for it, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Query::Snapshot(_) => "read",
            Query::Events(_) | Query::NewestEvents(_) | Query::SearchEvents(_) => "events",
            Query::Records(_) => "records",
            Query::Tasks(_) => "tasks",
            Query::TaskCounts => "tallies",
            Query::SurplusTasks(_) => "surplus",
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
    /// Removes what crashed processes left behind beside the records, and folds what the store counts.
    /// Clients do this now and then after a change.
    Tidy,
    /// Counts what [`Maintenance::Tidy`] would remove, and changes nothing. What a process makes at this
    /// moment may be counted.
    Leftovers,
    /// Checks that the store is in order.
    Check,
    /// Removes old events.
    Trim(Trim),
    /// Notes that an older state of the store was put back, so that changes which were reported are missing:
    /// numbers jump ahead of all that were given out, and a store that can tell how long leases are grants
    /// nothing until those that are missing have ended.
    Moved,
}

/// Says which events may be removed: the oldest that are beyond what is kept, as
/// [`Keep::surplus_events`] decides. The newest event stays, and so does every event after one that
/// stays. A store that keeps events in larger units removes whole units and so keeps more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// What is kept.
    pub keep: Keep,
    /// About the largest number of events that are removed now.
    pub limit: u32,
    /// Whether they are only counted.
    pub dry_run: bool,
}

impl Maintenance {
    /// A word for it, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Maintenance::Tidy => "tidy",
            Maintenance::Leftovers => "leftovers",
            Maintenance::Check => "check",
            Maintenance::Trim(_) => "trim",
            Maintenance::Moved => "moved",
        }
    }
}

/// What came of [`Maintenance`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maintained {
    /// So many things were removed.
    Tidied(usize),
    /// So many things would be removed.
    Left(usize),
    /// One sentence for each thing that was checked.
    Checked(Vec<Finding>),
    /// So many events were removed, or would be.
    Trimmed(u64),
    /// It was noted that an older state was put back.
    Moved {
        /// For how long nothing is granted.
        #[serde(rename = "withheld_ms", with = "tenure_core::millis")]
        withheld: Duration,
    },
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

    /// Counts what [`StoreExt::tidy`] would remove.
    fn leftovers(&self) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Checks that the store is in order.
    fn check(&self) -> impl Future<Output = Result<Vec<Finding>, StoreError>> + Send;

    /// Removes old events; returns how many.
    fn trim(&self, trim: Trim) -> impl Future<Output = Result<u64, StoreError>> + Send;
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

    async fn leftovers(&self) -> Result<usize, StoreError> {
        let maintained = self.maintain(Maintenance::Leftovers).await?;
        typed(maintained.left(), || self.info().url)
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let maintained = self.maintain(Maintenance::Check).await?;
        typed(maintained.checked(), || self.info().url)
    }

    async fn trim(&self, trim: Trim) -> Result<u64, StoreError> {
        let maintained = self.maintain(Maintenance::Trim(trim)).await?;
        typed(maintained.trimmed(), || self.info().url)
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
            _ => None,
        }
    }

    /// How much would be removed, if this is the outcome of counting it.
    pub fn left(self) -> Option<usize> {
        match self {
            Maintained::Left(count) => Some(count),
            _ => None,
        }
    }

    /// The findings, if this is the outcome of a check.
    pub fn checked(self) -> Option<Vec<Finding>> {
        match self {
            Maintained::Checked(findings) => Some(findings),
            _ => None,
        }
    }

    /// How many events were removed, if this is the outcome of trimming.
    pub fn trimmed(self) -> Option<u64> {
        match self {
            Maintained::Trimmed(count) => Some(count),
            _ => None,
        }
    }

    /// For how long nothing is granted, if this is the outcome of noting that an older state was put back.
    pub fn moved(self) -> Option<Duration> {
        match self {
            Maintained::Moved { withheld } => Some(withheld),
            _ => None,
        }
    }
}

/// Why a store on this machine does not take [`Maintenance::Moved`].
pub(crate) fn cannot_move() -> StoreError {
    StoreError::Unsupported {
        what: "this store cannot be told that an older copy of its files was put back".to_owned(),
        instead:
            "Use `tenure backup` and `tenure restore`: what they restore accepts no old token."
                .to_owned(),
    }
}

/// The answer that was asked for, or an error where a store or a server answered something else.
pub(crate) fn typed<T>(answer: Option<T>, store: impl Fn() -> String) -> Result<T, StoreError> {
    answer.ok_or_else(|| StoreError::Unsupported {
        what: format!("{} answers another question than it was asked", store()),
        instead: "Use the same version of tenure on both sides.".to_owned(),
    })
}
