//! Why a measurement could not be made.

use crate::exit::Exit;
use crate::failure::Failure;
use std::path::PathBuf;

/// A measurement broke.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// There is nowhere to measure.
    #[error("{} cannot be used to measure in: {source}", folder.display())]
    Folder {
        /// Where it was tried.
        folder: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A process that takes part could not be started or watched.
    #[error("{program} cannot be run: {source}")]
    Process {
        /// Which one.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A process that takes part ended with an error of its own, or said what makes no sense.
    #[error("a worker failed: it said {said:?} where {expected:?} was expected")]
    Worker {
        /// Its last words.
        said: String,
        /// What should have come.
        expected: &'static str,
    },
    /// Something did not happen within the bound set for it.
    #[error("{what} did not happen within {seconds} seconds")]
    TooSlow {
        /// What was waited for.
        what: &'static str,
        /// For how long.
        seconds: u64,
    },
    /// Two held the same lock at once: worse than any number.
    #[error(
        "exclusion was violated: token {later} was granted before token {earlier} was released"
    )]
    NotExclusive {
        /// The first holder's token.
        earlier: u64,
        /// The second holder's.
        later: u64,
    },
    /// Tasks were lost or done twice: worse than any number.
    #[error("the tasks do not add up: {store} {what} in the store, {workers} by the workers")]
    Miscounted {
        /// Which tasks.
        what: &'static str,
        /// How many the store has.
        store: usize,
        /// How many the workers say there should be.
        workers: usize,
    },
    /// The store that was named has tasks already.
    #[error("the store {url} has {tasks} tasks already")]
    UsedStore {
        /// Which store.
        url: String,
        /// How many.
        tasks: usize,
    },
    /// The picture could not be written.
    #[error("{} cannot be written: {source}", file.display())]
    Plot {
        /// Where to.
        file: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] tenure::Error),
    /// Bare files failed.
    #[error("bare files failed: {0}")]
    Links(#[from] std::io::Error),
    /// Bare SQLite failed.
    #[error("bare SQLite failed: {0}")]
    Floor(#[from] rusqlite::Error),
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        let failure = Failure::new(Exit::Error, "BENCH", error.to_string());
        match error {
            BenchError::Folder { .. } => failure.hint("Name a folder of yours with --dir DIR."),
            BenchError::UsedStore { .. } => {
                failure.hint("Name a new store: it is filled with tasks, and they stay in it.")
            }
            _ => failure,
        }
    }
}
