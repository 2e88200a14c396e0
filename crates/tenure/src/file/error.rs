//! Why a file could not be changed.

use super::LINE_MAX_BYTES;
use std::io;
use std::path::{Path, PathBuf};

/// A file that was not changed. Each names the file in question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path leads to something that has no content of its own to replace.
    #[error("{} is {what}, not a file", .path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is: "a folder", "a pipe".
        what: &'static str,
    },
    /// The folder that the file would be in is not there.
    #[error("the folder of {} does not exist", .path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// The file is there and may not be written to.
    #[error("{} is read-only", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Somebody who did not ask changed, replaced, made or removed the file meanwhile.
    #[error("{} was changed in the meantime by another program", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file has other names, which would keep the old content.
    #[error("{} has {names} names (hard links), and only this one would be changed", .path.display())]
    Linked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        names: u64,
    },
    /// Another program keeps the kernel's lock on the file.
    #[error("{} is locked by another program", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// There is no room for it.
    #[error("no space for {}: {source}", .path.display())]
    Full {
        /// What was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is longer than any line should be.
    #[error("a line for {} is longer than {LINE_MAX_BYTES} bytes", .path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
    },
    /// Anything else that the system refused.
    #[error("{} cannot be {doing}: {source}", .path.display())]
    Refused {
        /// What the attempt was about.
        path: PathBuf,
        /// What was tried, as in "cannot be read".
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl FileError {
    /// Sorts what the system said.
    pub(super) fn from_attempt(path: &Path, doing: &'static str, source: io::Error) -> FileError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                FileError::Full { path, source }
            }
            _ => FileError::Refused { path, doing, source },
        }
    }
}
