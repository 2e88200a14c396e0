//! Why it could not be tried.

use crate::exit::Exit;
use crate::failure::Failure;
use std::path::PathBuf;

/// The check itself broke, and says nothing of exclusion.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelftestError {
    /// There is nowhere to try.
    #[error("{} cannot be used to try in: {source}", folder.display())]
    Folder {
        /// Where it was tried.
        folder: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A process that takes part could not be started or heard.
    #[error("a worker cannot be run: {source}")]
    Process {
        /// Why not.
        source: std::io::Error,
    },
    /// A process that takes part ended, and nobody had killed it.
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
