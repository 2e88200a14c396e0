//! What a store promises, and the stores that come with the library.
//!
//! A store remembers and decides nothing: it shows a rule what is there, and writes what the rule
//! chose, in one step. The crate `tenure-conformance` is the test that every store passes whole.

mod boot;
mod error;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "file-store")]
pub(crate) mod file;
pub(crate) mod format;
mod ipc;
mod ledger;
mod limits;
pub(crate) mod memory;
mod memory_records;
mod path_prefixes;
mod per_process;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod query;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
mod store_time;
pub(crate) mod transaction;
mod wake_registry;

pub use error::StoreError;
#[cfg(feature = "etcd")]
pub use etcd::{EtcdOptions, EtcdStore};
#[cfg(feature = "file-store")]
#[doc(hidden)]
pub use file::{DIALECT_STEPS, STEPS};
#[cfg(feature = "file-store")]
pub use file::{Dialect, DialectError, FileOptions, FileStore, HoldDefaults, TakeoverRules};
pub use limits::Limits;
pub use memory::MemoryStore;
pub(crate) use per_process::PerProcessStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
use query::cannot_move;
pub use query::{
    Answer, EventSearch, EventsAfter, Maintained, Maintenance, NewestEvents, Prefer, Query, Read,
    RecordSearch, Signal, StoreExt, SurplusTasks, TaskCounts, Trim, Waited,
};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use transaction::{Chosen, Committed, Decide, RequestId, Step, Transaction, transact_with};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tenure_core::{Evidence, GrantId, Resource, Status, Task, Token};

/// How many ended boots are remembered: leases of earlier ones have lapsed long since.
const ENDED_BOOTS_MAX: usize = 64;

/// How long an answer to a request that may be repeated is kept, by the machine's monotonic clock:
/// several times as long as a client repeats one.
const ANSWERS_KEPT: Duration = Duration::from_secs(600);

/// How many answers are kept at most. Each one-shot client leaves one or two behind; beyond this
/// many the oldest go before their time, so that neither memory nor journal grows with how many
/// clients come.
const ANSWERS_MAX: usize = 10_000;

/// Remembers who holds what. Decides nothing.
///
/// Only durations cross this trait: a store judges lapse with its own clock, inside the operation.
/// A store owes its callers that
///
/// - `transact` is atomic against all other calls, in all processes that share the store, and
///   makes a change with its events whole or not at all;
/// - [`Snapshot::next`](tenure_core::Snapshot) is higher than every number in its scope, and rises
///   with every change there: across restarts, pruning and power loss, a resource never gets the
///   same token twice. Numbers may have gaps, and unrelated scopes may see the same ones;
/// - events get their revisions from the store, rising in the order in which the events become
///   visible, with gaps or without. No event appears below one that was shown, nor below the
///   [`Snapshot::revision`](tenure_core::Snapshot) of a query;
/// - what was reported is never lost while the machine stays up; a durable change not even when
///   the power fails;
/// - a change whose outcome is unknown, because the call failed or was dropped, is made before any
///   later change sees its scope, or never. It does not arrive late;
/// - a renewal succeeds only where grant and token match and the lease has not lapsed;
/// - a small record ([`Write::PutRecord`](tenure_core::Write)) is shown from its change until it is
///   dropped, or until its time is over by the store's clock; beyond
///   [`RECORDS_MAX`](tenure_core::record::RECORDS_MAX) of a kind the oldest may go earlier;
/// - a wait for a change cannot miss one that a query did not show, and a wait for a turn cannot
///   miss a wake.
#[async_trait]
pub trait Store: Send + Sync {
    /// Describes this store.
    fn info(&self) -> StoreInfo;

    /// Shows the scope to the rule, lets it choose, and writes what it chose with its events, or
    /// nothing. Where the rule needs to see more, the store shows that and asks again:
    /// [`Transaction::choose`] is that loop. Wakes the requests that the change names.
    ///
    /// [`Write::touches`](tenure_core::Write) names what a change writes, for a store that locks or
    /// compares records one by one. It may touch more than the scope named: a place in several
    /// queues. Such a store then begins again with the union.
    ///
    /// A change that is larger than [`Limits`] allow is refused whole: see [`Limits::check`].
    ///
    /// For a request that may be repeated the rule is also shown the reply that was stored under
    /// its slot, by [`Snapshot::answered`](tenure_core::Snapshot), and stores its own by
    /// [`Write::Answer`](tenure_core::Write). A reply is kept as safely as the change that it is
    /// part of, until the next one under its slot, or for ten minutes at least by a clock that
    /// cannot be set. Where more than ten thousand slots came since, it may go earlier.
    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError>;

    /// Starts the leases anew, each only if all that it names is still held.
    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError>;

    /// Answers a query, without changing anything and without keeping a writer waiting.
    async fn query(&self, query: Query) -> Result<Answer, StoreError>;

    /// Returns as soon as the signal comes, or when patience ends.
    ///
    /// A wait for a change ends when [`Snapshot::revision`](tenure_core::Snapshot) of a query would be
    /// beyond the one that is given, whether or not there are new events.
    ///
    /// A wait for a turn ends when the request is woken; a wake that came before the call counts.
    /// A request is woken through the handle through which it last took or kept its place. A store
    /// may also end the wait early, for example when the lease of a holder in the way lapsed: the
    /// request then asks again and keeps its place.
    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError>;

    /// Does maintenance.
    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError>;
}

/// What a store is, for people and for choosing defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreInfo {
    /// Its URL.
    pub url: String,
    /// Which engine, with its version.
    pub engine: String,
    /// Whether all who use it run on this machine, so that its clock is theirs.
    pub local: bool,
    /// What it can take.
    pub limits: Limits,
    /// Earlier boots of the machine that the store is on, which the store saw end: whatever ran
    /// under them is dead. The newest few; empty for a store that lives elsewhere or in memory.
    pub ended_boots: Vec<String>,
    /// Whether this handle made it when it was first used. A store on disk is made when it is opened: whoever
    /// opens it can look first.
    pub is_new: bool,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub subject: String,
    /// Whether it is in order.
    pub ok: bool,
    /// What was found.
    pub message: String,
}

impl Finding {
    /// Files of dead processes: harmless, so this is always in order.
    pub(crate) fn leftovers(count: usize) -> Finding {
        let message = match count {
            0 => "nothing left behind by dead processes".to_owned(),
            count => {
                format!("{count} of dead processes; a cleanup removes them")
            }
        };
        Finding { subject: "leftovers".to_owned(), ok: true, message }
    }
}

/// Which tasks to list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFilter {
    /// Only with this status.
    pub status: Option<Status>,
    /// Only of this section.
    pub section: Option<String>,
    /// Only with this label.
    pub label: Option<String>,
    /// Only whose id begins so.
    pub id_prefix: Option<String>,
    /// Only with exactly this title.
    pub title: Option<String>,
    /// Only younger than this, for paging.
    pub after_age: u64,
    /// At most so many.
    pub limit: u32,
    /// Whether notes and tries are left out: long lists do not show them, and cost less without.
    pub without_history: bool,
}

impl Default for TaskFilter {
    fn default() -> TaskFilter {
        TaskFilter {
            status: None,
            section: None,
            label: None,
            id_prefix: None,
            title: None,
            after_age: 0,
            limit: u32::MAX,
            without_history: false,
        }
    }
}

impl TaskFilter {
    /// Whether this task is to be listed, the limit aside.
    pub fn admits(&self, task: &Task) -> bool {
        self.status.is_none_or(|status| task.status == status)
            && (self.section.is_none() || self.section == task.section)
            && self.label.as_ref().is_none_or(|label| task.labels.contains(label))
            && self.id_prefix.as_ref().is_none_or(|prefix| task.id.as_str().starts_with(prefix))
            && self.title.as_ref().is_none_or(|title| task.title == *title)
            && task.age > self.after_age
    }

    /// The task as it is listed.
    pub fn listed(&self, mut task: Task) -> Task {
        if self.without_history {
            (task.notes, task.tries) = (vec![], vec![]);
        }
        task
    }
}

/// How many tasks of a section have a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Of which section; none for tasks without one.
    pub section: Option<String>,
    /// With which status.
    pub status: Status,
    /// How many.
    pub count: u64,
}

/// A lease to start anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Renewal {
    /// Under which grant.
    pub grant: GrantId,
    /// With which token.
    pub token: Token,
    /// All resources of the grant.
    pub resources: Vec<Resource>,
    /// How long from now.
    #[serde(rename = "ttl_ms", with = "tenure_core::millis")]
    pub ttl: Duration,
    /// New evidence to tie the hold to, where it changed.
    pub bind: Option<Evidence>,
}

/// What came of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Renewed {
    /// The lease started anew.
    Renewed,
    /// The grant holds it no longer: it lapsed or was broken.
    Lost,
}
