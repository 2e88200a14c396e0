//! Why settings cannot be read or changed.

use std::io;
use std::path::PathBuf;

use super::Origin;
use super::document::Position;
use super::keys::{Key, ValueError};

/// Settings that cannot be read or changed. Each names the file or layer in question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that was asked for does not exist.
    #[error("the settings file {} does not exist", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A folder stands where a file is expected.
    #[error("the settings file {} is a directory", .path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// A pipe, a socket or a device stands where a file is expected.
    #[error("the settings file {} is not a plain file", .path.display())]
    NotAFile {
        /// What is there.
        path: PathBuf,
    },
    /// A link stands where a file is expected, and leads nowhere.
    #[error("the settings file {} is a link to a missing file", .path.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read the settings file {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is far larger than settings can be.
    #[error("the settings file {} is larger than {limit_bytes} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// The file is not UTF-8.
    #[error("the settings file {} is not UTF-8 text (line {line})", .path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first line that is not.
        line: usize,
    },
    /// The file is not YAML, has a key twice, or has a shape that settings do not have.
    #[error("{}:{position}: {problem}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        position: Position,
        /// What is wrong there.
        problem: String,
    },
    /// A key that does not exist.
    #[error("{}: unknown key {key:?}; the nearest known key is {nearest}", whence(.origin, .position))]
    UnknownKey {
        /// The unknown key, with its group.
        key: String,
        /// The layer that has it.
        origin: Origin,
        /// Where in the file, if it is one.
        position: Option<Position>,
        /// The known key that looks most like it.
        nearest: &'static str,
    },
    /// A value that does not fit its key.
    #[error("{}: {}: {problem}", whence(.origin, .position), .key.name())]
    BadValue {
        /// The key.
        key: Key,
        /// The layer that has the value.
        origin: Origin,
        /// Where in the file, if it is one.
        position: Option<Position>,
        /// What is wrong with the value.
        problem: ValueError,
    },
    /// The file could not be written. It is as it was.
    #[error("cannot write the settings file {}: {source}", .path.display())]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is written in a way that [`set`](super::edit::set) cannot change safely. It is as
    /// it was.
    #[error("cannot change {} in {} without changing something else", .key.name(), .path.display())]
    NotEditable {
        /// The file.
        path: PathBuf,
        /// The key that was to be changed.
        key: Key,
    },
}

impl ConfigError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { .. } => "check the path, or leave it out to use the usual files".into(),
            Self::Directory { path } => {
                format!(
                    "move the directory away, or use {} in it",
                    path.join("config.yaml").display()
                )
            }
            Self::NotAFile { .. } => "replace it by a file, or remove it".into(),
            Self::DanglingLink { .. } => {
                "create the file that the link points to, or remove the link".into()
            }
            Self::Unreadable { .. } => "check that you may read it".into(),
            Self::TooLarge { .. } => "check that it is the right file".into(),
            Self::NotUtf8 { .. } => "save the file as UTF-8".into(),
            Self::Malformed { .. } => {
                "write `key: value` lines, and indent the keys of a group below it".into()
            }
            Self::UnknownKey { nearest, .. } => format!("did you mean {nearest}?"),
            Self::BadValue { key, .. } => match key.info().default {
                "" => "write one line of text".into(),
                default => format!("the built-in value is {default}"),
            },
            Self::NotWritable { .. } => {
                "check the owner of the file and its folder, and whether the disk is full".into()
            }
            Self::NotEditable { .. } => "change it in an editor".into(),
        }
    }
}

/// `FILE:LINE:COLUMN`, or the layer alone.
fn whence(origin: &Origin, position: &Option<Position>) -> String {
    match position {
        Some(position) => format!("{origin}:{position}"),
        None => origin.to_string(),
    }
}
