//! What can go wrong in the client, named by what the caller can do.

use crate::store::StoreError;
use crate::url::UrlError;
use tenure_core::rules::tasks::{AddError, EditError, SectionError};
use tenure_core::{Cycle, LabelError, ResourceError};

/// A client could not do what was asked. That something is held by another is not an error but an
/// answer: see [`Attempt`](crate::Attempt).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed; its error says whether anything was written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name of a resource is not acceptable.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// The label is not acceptable.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The URL does not name a store.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The request makes no sense, such as one for nothing.
    #[error("{0}")]
    Request(#[from] RequestError),
    /// Tasks could not be added; none of them was.
    #[error(transparent)]
    Add(#[from] AddError),
    /// A task could not be changed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// Sections could not be changed; none of them was.
    #[error(transparent)]
    Section(#[from] SectionError),
    /// No task is meant by this text.
    #[error("no task {text:?}")]
    NoSuchTask {
        /// What was given.
        text: String,
    },
    /// More than one task is meant by this text.
    #[error("{text:?} matches more than one task: {}", ids.join(", "))]
    Ambiguous {
        /// What was given.
        text: String,
        /// Those that it means.
        ids: Vec<String>,
    },
    /// The store's answers came so late, several times, that what they granted was over by then.
    /// Nothing is held.
    #[error("the store answered too late: the lease was over before it could be used")]
    TooLate,
    /// Waiting would never end: the cycle that it would close.
    #[error("Deadlock: {0}")]
    Deadlock(Cycle),
}

impl Error {
    /// Whether trying again later may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Store(error) => error.is_passing(),
            Error::TooLate => true,
            _ => false,
        }
    }
}

/// A request that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No resource was named.
    #[error("no resource given")]
    Nothing,
    /// No slots at all, which no request could ever take.
    #[error("a resource needs at least one slot")]
    NoSlots,
    /// The lease is too short or too long to be kept.
    #[error(
        "a lease of {asked:?} is not possible: it must last between {LEASE_MIN:?} and {LEASE_MAX:?}"
    )]
    Lease {
        /// What was asked.
        asked: std::time::Duration,
    },
    /// There is no process with this number, or nothing can be read about it.
    #[error("no process {pid} to bind the lease to")]
    NoProcess {
        /// The number.
        pid: u32,
    },
}

/// Shorter leases would lapse between two renewals of a busy machine.
pub const LEASE_MIN: std::time::Duration = std::time::Duration::from_millis(100);

/// Longer ones are a mistake in a unit.
pub const LEASE_MAX: std::time::Duration = std::time::Duration::from_secs(366 * 24 * 3600);
