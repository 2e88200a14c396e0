//! The log of a process that ends soon.
//!
//! SQLite notes in shared memory how much of its log is in the database already. Where one
//! command follows another and none overlap, that note is lost with each: the log is read whole by
//! the next, never begun anew, and once it is long, every command folds all of it again. So a process
//! that ends soon and finds it long empties it.

use super::open::PAGE_BYTES;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What SQLite writes before each page in its log.
const FRAME_BYTES: u64 = 24;

/// The log beside a database, and how long it may become.
pub(super) struct Log {
    file: PathBuf,
    most_bytes: u64,
}

impl Log {
    /// The log of the database at this path, to be emptied beyond so many pages.
    pub(super) fn new(path: &Path, pages: u32) -> Log {
        let mut file = path.as_os_str().to_owned();
        file.push("-wal");
        let most_bytes = u64::from(pages) * (u64::from(PAGE_BYTES) + FRAME_BYTES);
        Log { file: file.into(), most_bytes }
    }

    /// Empties the log if it is long, unless a reader uses it just now: then a later process will.
    /// To be called by the writer, outside of a transaction.
    pub(super) fn fold(&self, connection: &Connection, patience: Duration) {
        let is_long = std::fs::metadata(&self.file).is_ok_and(|meta| meta.len() > self.most_bytes);
        if !is_long {
            return;
        }
        // What was asked for is on disk already: nothing that fails here is worth a word.
        let _ = connection.busy_timeout(Duration::ZERO);
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = connection.busy_timeout(patience);
    }
}
