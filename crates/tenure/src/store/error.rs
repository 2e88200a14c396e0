//! What can go wrong in a store, named by what the caller can do.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use tenure_core::text::TextError;

/// A store could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing was written. Trying again later may help.
    #[error("the store at {store} is not available: {reason}")]
    Unavailable {
        /// Which store.
        store: String,
        /// Why.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// Nothing was written: after a failover or a restore nothing is granted for a time.
    #[error(
        "the store at {store} grants nothing for the next {}s: another server took over, or an older state was put back",
        left.as_millis().div_ceil(1000)
    )]
    Withheld {
        /// Which store.
        store: String,
        /// For how long still.
        #[serde(rename = "left_ms", with = "tenure_core::millis")]
        left: Duration,
    },
    /// It may or may not have been written: look by grant id before trying again.
    #[error("unknown whether the store at {store} made the change: {reason}")]
    Unknown {
        /// Which store.
        store: String,
        /// Why.
        reason: String,
    },
    /// What is stored cannot be trusted. It is never treated as free.
    #[error("the store at {store} is damaged: {reason}")]
    Corrupt {
        /// Which store.
        store: String,
        /// What was found.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The store's file was removed or replaced while it was open. What was held in it is lost, and
    /// no change to it counts. Open the store again to use the one that is there now.
    #[error("the store at {store} is gone: {reason}")]
    Gone {
        /// Which store.
        store: String,
        /// What became of it.
        reason: String,
    },
    /// This store, or this version, cannot do that.
    #[error("{what}")]
    Unsupported {
        /// What cannot be done.
        what: String,
        /// What to use instead.
        instead: String,
    },
    /// The server does not allow the caller to do this.
    #[error("{}{reason}", refused_by(store))]
    Refused {
        /// Which store; empty if the caller knows it only through a server.
        store: String,
        /// Why.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The request has a text that is longer than a store keeps. Nothing was written.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Others were faster too many times in a row; nothing was written.
    #[error("the store at {store} is too busy: gave up after {tries} attempts")]
    Contended {
        /// Which store.
        store: String,
        /// How often it was tried.
        tries: u32,
    },
}

fn refused_by(store: &str) -> String {
    match store {
        "" => String::new(),
        store => format!("the store at {store} refuses this: "),
    }
}

impl StoreError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> Option<String> {
        match self {
            StoreError::Unavailable { hint, .. }
            | StoreError::Corrupt { hint, .. }
            | StoreError::Refused { hint, .. } => hint.clone(),
            StoreError::Withheld { .. } => Some(
                "Wait: leases that the store may not know of end by then. A request that waits is \
                 granted after that."
                    .to_owned(),
            ),
            StoreError::Unknown { .. } => {
                Some("Look at the store before trying again.".to_owned())
            }
            StoreError::Gone { .. } => Some(
                "All that was held in it is lost. Start the command or the server again to use the \
                 store that is there now."
                    .to_owned(),
            ),
            StoreError::Unsupported { instead, .. } => Some(instead.clone()),
            StoreError::Text(_) => {
                Some("Put a long text into a file, and its name here.".to_owned())
            }
            StoreError::Contended { .. } => Some("Try again in a moment.".to_owned()),
        }
    }

    /// Whether trying again later may help.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            StoreError::Unavailable { .. }
                | StoreError::Withheld { .. }
                | StoreError::Unknown { .. }
                | StoreError::Contended { .. }
        )
    }
}
