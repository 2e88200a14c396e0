//! What can go wrong with files, and what it means to a caller.

use crate::store::StoreError;
use crate::store::ipc::stopped;
use std::io;
use std::path::Path;

/// A file could not be read, written or understood.
#[derive(Debug)]
pub(super) enum FileStoreError {
    Io(io::Error),
    Corrupt(String),
    /// Another program's file cannot be understood.
    ForeignFile(String),
    /// The store's files were removed or replaced while they were open.
    Gone,
    /// Another program is in the way.
    Busy(String),
    Newer {
        version: u32,
        known: u32,
    },
    /// Something lies where another program's lock file should be.
    Obstacle {
        what: String,
    },
    /// A resource of the kind that is shared with other programs, which has no place among theirs.
    NoLockFile {
        resource: String,
    },
    /// The folder has one lock for everything, and something else was asked for.
    OnlyLock {
        resource: String,
        only: String,
    },
    /// The dialect has locks and no tasks.
    NoTaskList {
        dialect: &'static str,
    },
    /// Other programs know nothing of shared holds.
    OnlyExclusive {
        resource: String,
    },
    /// Others were faster too many times in a row.
    Contended {
        tries: u32,
    },
    /// The current or the next writer is a stopped process.
    Stopped {
        pid: u32,
    },
}

const GONE: &str = "its folder was removed or replaced while it was in use";

impl From<io::Error> for FileStoreError {
    fn from(error: io::Error) -> FileStoreError {
        FileStoreError::Io(error)
    }
}

impl FileStoreError {
    pub(super) fn corrupt(reason: &str) -> FileStoreError {
        FileStoreError::Corrupt(reason.to_owned())
    }

    pub(super) fn obstacle(path: &Path, reason: &str) -> FileStoreError {
        FileStoreError::Obstacle { what: format!("{} {reason}", path.display()) }
    }

    pub(super) fn corrupt_file(path: &Path, reason: &str) -> FileStoreError {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        FileStoreError::Corrupt(format!("{name}: {reason}"))
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, FileStoreError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// What went wrong, for a finding.
    pub(super) fn into_message(self) -> String {
        match self {
            FileStoreError::Io(error) => error.to_string(),
            FileStoreError::Corrupt(reason)
            | FileStoreError::ForeignFile(reason)
            | FileStoreError::Busy(reason) => reason,
            FileStoreError::Gone => GONE.to_owned(),
            FileStoreError::Newer { version, .. } => format!("it has the newer version {version}"),
            FileStoreError::Obstacle { what } => what,
            FileStoreError::NoLockFile { resource } => {
                format!("{resource} cannot have a lock file")
            }
            FileStoreError::OnlyExclusive { resource } => {
                format!("{resource} can only be held alone")
            }
            FileStoreError::OnlyLock { resource, only } => {
                format!("{resource} is part of {only} here")
            }
            FileStoreError::NoTaskList { dialect } => {
                format!("the dialect {dialect} has no task list")
            }
            FileStoreError::Contended { tries } => format!("gave up after {tries} tries"),
            FileStoreError::Stopped { pid } => format!("process {pid} is stopped"),
        }
    }

    /// Nothing of the change was written.
    pub(super) fn report(self, store: &str) -> StoreError {
        let store = store.to_owned();
        match self {
            FileStoreError::Io(error) => from_io(store, &error),
            FileStoreError::Corrupt(reason) => StoreError::Corrupt {
                hint: Some(format!(
                    "Nothing was changed. Move the folder of {store} aside to begin with an empty \
                     store, or restore a backup."
                )),
                store,
                reason,
            },
            FileStoreError::ForeignFile(reason) => StoreError::Corrupt {
                hint: Some(
                    "That file is another program's: mend it, or let that program write it anew. \
                     Nothing was changed, and tenure's own records are whole."
                        .to_owned(),
                ),
                store,
                reason,
            },
            FileStoreError::Gone => StoreError::Gone { store, reason: GONE.to_owned() },
            FileStoreError::Busy(reason) => StoreError::Unavailable {
                store,
                reason,
                hint: Some(
                    "Look for a program that is stopped or hangs; nothing was lost.".to_owned(),
                ),
            },
            FileStoreError::Obstacle { what } => StoreError::Unavailable {
                store,
                reason: what,
                hint: Some("Nothing was changed. Move it away, then try again.".to_owned()),
            },
            FileStoreError::NoLockFile { resource } => StoreError::Unsupported {
                what: format!(
                    "{resource} cannot have a lock file here, so other programs would not see it held"
                ),
                instead: "Use a name that they can have too, or another store.".to_owned(),
            },
            FileStoreError::OnlyLock { resource, only } => StoreError::Unsupported {
                what: format!(
                    "{resource} cannot be held: the folder of {store} has a single lock, {only:?}"
                ),
                instead: format!("Hold {only:?} instead, or use another store."),
            },
            FileStoreError::NoTaskList { dialect } => StoreError::Unsupported {
                what: format!(
                    "{store} has no tasks: the dialect {dialect} has one lock and no task list"
                ),
                instead: "Keep tasks in another store, for example sqlite:PATH.".to_owned(),
            },
            FileStoreError::OnlyExclusive { resource } => StoreError::Unsupported {
                what: format!("{resource} is shared with other programs, which only hold it alone"),
                instead: "Hold it alone, or use a name that is not theirs.".to_owned(),
            },
            FileStoreError::Contended { tries } => StoreError::Contended { store, tries },
            FileStoreError::Stopped { pid } => stopped(store, pid),
            FileStoreError::Newer { version, known } => StoreError::Unsupported {
                what: format!(
                    "the store at {store} has version {version}; this tenure supports versions up to {known}"
                ),
                instead: "Use a newer tenure, or another store.".to_owned(),
            },
        }
    }
}

pub(super) fn from_io(store: String, error: &io::Error) -> StoreError {
    use io::ErrorKind as Kind;
    let (reason, hint) = match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => (
            "the disk is full".to_owned(),
            "Free some space, then try again; nothing was lost.".to_owned(),
        ),
        Kind::ReadOnlyFilesystem | Kind::PermissionDenied => (
            "no write permission".to_owned(),
            "Get write permission for the folder, or choose another store.".to_owned(),
        ),
        Kind::NotADirectory | Kind::IsADirectory => (
            format!("something else is where its files should be: {error}"),
            "Move it away, or choose another store.".to_owned(),
        ),
        _ if is_out_of_files(error) => (
            "this process has too many files open".to_owned(),
            "Raise the limit (`ulimit -n`), then try again; nothing was lost.".to_owned(),
        ),
        _ => (
            error.to_string(),
            "Check that the folder exists and is writable, or choose another store.".to_owned(),
        ),
    };
    StoreError::Unavailable { store, reason, hint: Some(hint) }
}

fn is_out_of_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}
