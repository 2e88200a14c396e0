//! Opening a store by its URL.

use crate::clock::Clock;
use crate::error::Error;
use crate::store::Store;
use crate::store::memory::MemoryStore;
use std::sync::Arc;

/// The text does not name a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It begins with no word that we know.
    #[error("{url:?} does not name a store")]
    Unknown {
        /// What was given.
        url: String,
    },
    /// It names a store that this build does not have.
    #[error("{url:?} names a store that this tenure does not have")]
    Absent {
        /// What was given.
        url: String,
    },
    /// There is nothing after the colon.
    #[error("{url:?} names no file")]
    NoPath {
        /// What was given.
        url: String,
    },
}

impl UrlError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> String {
        match self {
            UrlError::Unknown { .. } | UrlError::Absent { .. } => {
                "Stores are written sqlite:PATH or memory: (for one process).".to_owned()
            }
            UrlError::NoPath { .. } => "Write sqlite:PATH, for example sqlite:locks.db.".to_owned(),
        }
    }
}

/// How a store is opened; what a store cannot use it ignores.
pub(crate) struct OpenOptions {
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the process ends soon: it then keeps the log short for the next one.
    pub(crate) one_shot: bool,
    pub(crate) poll_interval: std::time::Duration,
}

/// After so many pages a one-shot command folds the log into the database: some twenty-five commands
/// share that cost, and each reads at most so much at its start.
#[cfg(feature = "sqlite")]
const ONE_SHOT_CHECKPOINT_PAGES: u32 = 128;

pub(crate) fn open_store(url: &str, options: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    let owned = || url.to_owned();
    let (scheme, rest) = url.split_once(':').ok_or_else(|| UrlError::Unknown { url: owned() })?;
    match scheme {
        "memory" => Ok(Arc::new(MemoryStore::with_clock(options.clock))),
        "sqlite" if rest.is_empty() => Err(UrlError::NoPath { url: owned() }.into()),
        "sqlite" => open_sqlite(rest, options),
        "file" | "postgres" | "postgresql" | "etcd" | "http" | "https" => {
            Err(UrlError::Absent { url: owned() }.into())
        }
        _ => Err(UrlError::Unknown { url: owned() }.into()),
    }
}

#[cfg(feature = "sqlite")]
fn open_sqlite(path: &str, options: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    use crate::store::sqlite::{SqliteOptions, SqliteStore};
    let defaults = SqliteOptions::default();
    let checkpoint_pages =
        if options.one_shot { ONE_SHOT_CHECKPOINT_PAGES } else { defaults.checkpoint_pages };
    let options = SqliteOptions {
        clock: options.clock,
        checkpoint_pages,
        one_shot: options.one_shot,
        poll_interval: options.poll_interval,
    };
    Ok(Arc::new(SqliteStore::open_with(std::path::Path::new(path), options)?))
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(path: &str, _: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    Err(UrlError::Absent { url: format!("sqlite:{path}") }.into())
}
