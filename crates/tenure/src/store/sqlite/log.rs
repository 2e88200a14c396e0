//! The log: how long it may become, and that of a process that ends soon.
//!
//! A reader that stays in one transaction keeps SQLite from beginning the log anew, so that it grows with
//! every change. Once the reader has ended, the next writer that begins it anew also makes it short
//! again (`journal_size_limit`).
//!
//! SQLite notes in shared memory how much of its log is in the database already. Where one
//! command follows another and none overlap, that note is lost with each: the log is read whole by
//! the next, never begun anew, and once it is long, every command folds all of it again. So a process
//! that ends soon and finds it long empties it.

use super::open::PAGE_BYTES;
use crate::store::Finding;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// To how many bytes a log is cut that begins anew: one of usual length stays as it is.
pub(super) const KEPT_BYTES: u32 = 8 * 1024 * 1024;

/// A log of this length tells of a reader that does not end.
const LONG_BYTES: u64 = 64 * 1024 * 1024;

/// What SQLite writes before each page in its log.
const FRAME_BYTES: u64 = 24;

fn path_of(database: &Path) -> PathBuf {
    let mut file = database.as_os_str().to_owned();
    file.push("-wal");
    file.into()
}

/// Says if the log is long.
pub(super) fn check(database: &Path) -> Option<Finding> {
    let file = path_of(database);
    let bytes = std::fs::metadata(&file).map_or(0, |meta| meta.len());
    (bytes >= LONG_BYTES).then(|| Finding {
        subject: "log".to_owned(),
        ok: false,
        message: format!(
            "{} has {} MB: a program that reads the database without end keeps it from becoming \
             shorter. Look for one that opened it directly, such as a backup or a sqlite3 shell in \
             a transaction; the log becomes short again when that ends",
            file.display(),
            bytes / (1024 * 1024)
        ),
    })
}

/// The log beside a database, and how long it may become.
pub(super) struct Log {
    file: PathBuf,
    most_bytes: u64,
}

impl Log {
    /// The log of the database at this path, to be emptied beyond so many pages.
    pub(super) fn new(path: &Path, pages: u32) -> Log {
        let most_bytes = u64::from(pages) * (u64::from(PAGE_BYTES) + FRAME_BYTES);
        Log { file: path_of(path), most_bytes }
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
