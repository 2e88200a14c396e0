//! Errors of changing a file.

use super::LINE_MAX_BYTES;
use std::io;
use std::path::{Path, PathBuf};

/// A file was not changed. Each error names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path leads to something without content that could be replaced.
    #[error("{} is {what}, not a file", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is: "a folder", "a pipe".
        what: &'static str,
    },
    /// The folder of the file does not exist.
    #[error("the folder of {} does not exist", .path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// The file exists and is write-protected.
    #[error("{} is read-only", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another program changed, replaced, created or removed the file in the meantime.
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
    /// Another program holds the kernel's lock on the file.
    #[error("{} is locked by another program", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no space for {}: {source}", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line is longer than the limit.
    #[error("a line for {} is longer than {LINE_MAX_BYTES} bytes", .path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
    },
    /// Any other error of the system.
    #[error("{} cannot be {doing}: {source}", .path.display())]
    Refused {
        /// The path.
        path: PathBuf,
        /// What was attempted, as in "cannot be read".
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl FileError {
    /// Classifies an error of the system.
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
