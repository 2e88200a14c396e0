//! Errors of a measurement.

use std::path::PathBuf;
use std::process::ExitCode;
use tenure::place::PlaceError;

/// A measurement failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The command line asks for what cannot be measured.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: &'static str,
        /// What to ask for.
        hint: &'static str,
    },
    /// The `tenure` command that should be measured does not exist.
    #[error("there is no tenure command at {}", path.display())]
    NoProgram {
        /// Where it was expected.
        path: PathBuf,
    },
    /// The file system cannot keep a store.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The folder cannot be used.
    #[error("cannot use the folder {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A process could not be started or read.
    #[error("cannot run {program}: {source}")]
    Process {
        /// The program.
        program: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A worker process failed, or printed something unexpected.
    #[error("a worker failed: it printed {said:?} instead of {expected:?}")]
    Worker {
        /// Its last line.
        said: String,
        /// The expected line.
        expected: &'static str,
    },
    /// Something took longer than its limit.
    #[error("{what} did not happen within {seconds} seconds")]
    TooSlow {
        /// What was waited for.
        what: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// Two processes held the same lock at once.
    #[error(
        "exclusion was violated: token {later} was granted before token {earlier} was released"
    )]
    NotExclusive {
        /// The first holder's token.
        earlier: u64,
        /// The second holder's token.
        later: u64,
    },
    /// Tasks were lost or done twice.
    #[error("the tasks do not add up: {store} {what} in the store, {workers} by the workers")]
    Miscounted {
        /// The status of the tasks.
        what: &'static str,
        /// The number in the store.
        store: usize,
        /// The number that the workers reported.
        workers: usize,
    },
    /// The named store already has tasks.
    #[error("the store {url} already has {tasks} tasks")]
    UsedStore {
        /// The store.
        url: String,
        /// The number of tasks.
        tasks: usize,
    },
    /// The plot could not be written.
    #[error("cannot write {}: {source}", file.display())]
    Plot {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] tenure::Error),
    /// A bare file operation failed.
    #[error("bare files failed: {0}")]
    FileBaseline(#[from] std::io::Error),
    /// A bare call to etcd failed.
    #[error("bare etcd failed: {0}")]
    EtcdBaseline(#[from] etcd_client::Error),
    /// A bare connection to PostgreSQL failed.
    #[error("bare PostgreSQL failed: {0}")]
    PostgresBaseline(#[from] tokio_postgres::Error),
    /// Bare SQLite failed.
    #[error("bare SQLite failed: {0}")]
    SqliteBaseline(#[from] rusqlite::Error),
}

impl BenchError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            BenchError::Usage { hint, .. } => Some(hint),
            BenchError::NoProgram { .. } => {
                Some("Run scripts/bench, which builds it, or name one with --program PATH.")
            }
            BenchError::Folder { .. } | BenchError::Place(_) => {
                Some("Choose another folder with --dir DIR.")
            }
            BenchError::UsedStore { .. } => {
                Some("Name a new store: it is filled with tasks that stay in it.")
            }
            _ => None,
        }
    }

    /// 2 for a command line that asks for what cannot be measured, else 1.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            BenchError::Usage { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}
