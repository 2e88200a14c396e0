//! Copies a SQLite database that may be in use.

use crate::exit::Exit;
use crate::failure::Failure;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long to wait for a program that keeps readers out, as a recovery after a crash does.
const PATIENCE: Duration = Duration::from_secs(20);

/// Copies the database at one moment, with all that was committed before the call. SQLite does it as a
/// reader: writers go on meanwhile, and no file of the database is opened by anything else.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    vacuum(from, to).map_err(|error| {
        let message = format!("cannot copy {}: {error}", from.display());
        let hint = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => "It is not a backup, or it is damaged.",
            Some(rusqlite::ErrorCode::CannotOpen) => "Check the path and its permissions.",
            Some(rusqlite::ErrorCode::DiskFull) => "Free space on the disk of the backup.",
            _ => "Run `tenure doctor` on the store.",
        };
        Failure::new(Exit::Error, "BACKUP_COPY", message).hint(hint)
    })
}

fn vacuum(from: &Path, to: &Path) -> rusqlite::Result<()> {
    // Without the flag that creates: a path that is wrong must not become an empty database.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(from, flags).or_else(|_| {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(from, flags)
    })?;
    connection.busy_timeout(PATIENCE)?;
    connection.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    drop(connection);
    let made = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: String = made.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    match found == "ok" {
        true => Ok(()),
        false => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some(found),
        )),
    }
}
