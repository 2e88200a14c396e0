//! Errors of the selftest itself.

use crate::exit::Exit;
use crate::failure::Failure;
use std::path::PathBuf;

/// The selftest could not run; this says nothing about exclusion.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelftestError {
    /// The folder cannot be used.
    #[error("cannot use the folder {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A worker process could not be started or read.
    #[error("cannot run a worker: {source}")]
    Process {
        /// The cause.
        source: std::io::Error,
    },
    /// A worker process ended by itself too early.
    #[error("a worker ended too early")]
    Ended,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] tenure::Error),
}

impl From<SelftestError> for Failure {
    fn from(error: SelftestError) -> Failure {
        match error {
            SelftestError::Store(error) => error.into(),
            error => Failure::new(Exit::Error, "SELFTEST", error.to_string()),
        }
    }
}
