//! What SQLite's errors mean to a caller.

use super::schema::VERSION;
use crate::store::StoreError;
use crate::store::format::columns::FormatError;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use std::path::Path;

/// Whether a change could have been written when the error came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before anything was written.
    Before,
    /// In the middle of writing: what was written must be undone.
    Within,
    /// At the commit: it may have been.
    Commit,
}

pub(super) fn store_name(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

pub(super) fn from_sqlite(path: &Path, stage: Stage, error: &rusqlite::Error) -> StoreError {
    let store = store_name(path);
    let unavailable = |reason: &str, hint: &str| StoreError::Unavailable {
        store: store.clone(),
        reason: reason.to_owned(),
        hint: Some(hint.to_owned()),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => unavailable(
            "another program has held its write lock for too long",
            "Look for a program that opened the database directly, such as a sqlite3 shell in a transaction.",
        ),
        // What cannot grow for want of space is not always reported as a full disk.
        Some(ErrorCode::SystemIoFailure) if extended_code(error) == SQLITE_IOERR_SHMSIZE => {
            unavailable("the disk is full", "Free some space, then try again; nothing was lost.")
        }
        Some(ErrorCode::DiskFull) => {
            unavailable("the disk is full", "Free some space, then try again; nothing was lost.")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => unavailable(
            "no write permission",
            "Get write permission for the folder, or choose another store.",
        ),
        Some(ErrorCode::CannotOpen) => unavailable(
            "its file cannot be opened",
            "Check that the folder exists and is writable, or choose another store.",
        ),
        Some(ErrorCode::NotADatabase) => corrupt(path, "the file is not a SQLite database"),
        Some(ErrorCode::DatabaseCorrupt) => corrupt(path, "SQLite finds it malformed"),
        _ if stage == Stage::Commit => StoreError::Unknown { store, reason: error.to_string() },
        _ => StoreError::Unavailable { store, reason: error.to_string(), hint: None },
    }
}

fn extended_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code)
}

/// Whether this is refused to us, now and later.
fn is_forbidden(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), ReadOnlyFilesystem | PermissionDenied)
}

pub(super) fn from_io(path: &Path, doing: &str, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable {
        store: store_name(path),
        reason: match is_forbidden(error) {
            true => format!("no write permission: {error}"),
            false => format!("{doing}: {error}"),
        },
        hint: Some("Check that the folder is writable, or choose another store.".to_owned()),
    }
}

/// The store has a version that this program does not know.
pub(super) fn too_new(path: &Path, version: i32) -> StoreError {
    let store = store_name(path);
    StoreError::Unsupported {
        what: format!(
            "the store at {store} has version {version}; this tenure supports versions up to {VERSION}"
        ),
        instead: "Use a newer tenure, or another store.".to_owned(),
    }
}

/// The database file is not the one that was opened.
pub(super) fn gone(path: &Path) -> StoreError {
    StoreError::Gone {
        store: store_name(path),
        reason: "its file was removed or replaced while it was in use".to_owned(),
    }
}

pub(super) fn from_format(path: &Path, error: &FormatError) -> StoreError {
    corrupt(path, &error.to_string())
}

pub(super) fn corrupt(path: &Path, reason: &str) -> StoreError {
    StoreError::Corrupt {
        store: store_name(path),
        reason: reason.to_owned(),
        hint: Some(format!(
            "Nothing was changed. Move all files whose names begin with {} aside to begin with an \
             empty store, or restore a backup.",
            path.display()
        )),
    }
}
