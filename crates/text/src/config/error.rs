//! Errors of reading or changing settings.

use std::io;
use std::path::PathBuf;

use super::Origin;
use super::document::Position;
use super::keys::{Key, ValueError};

/// Settings cannot be read or changed. Each error names the file or layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A named file does not exist.
    #[error("the settings file {} does not exist", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A folder is in the place of the file.
    #[error("the settings file {} is a directory", .path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// A pipe, a socket or a device is in the place of the file.
    #[error("the settings file {} is not a plain file", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A broken link is in the place of the file.
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
        /// The cause.
        source: io::Error,
    },
    /// The file is far larger than settings can be.
    #[error("the settings file {} is larger than {limit_bytes} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit_bytes: u64,
    },
    /// The file is not UTF-8.
    #[error("the settings file {} is not UTF-8 text (line {line})", .path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first invalid line.
        line: usize,
    },
    /// The file is not YAML, has a key twice, or has an invalid shape.
    #[error("{}:{position}: {problem}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The position in the file.
        position: Position,
        /// The problem.
        problem: String,
    },
    /// The key does not exist.
    #[error("{}: unknown key {key:?}; the nearest known key is {nearest}", whence(.origin, .position))]
    UnknownKey {
        /// The unknown key, with its group.
        key: String,
        /// Its layer.
        origin: Origin,
        /// The position in the file, if the layer is one.
        position: Option<Position>,
        /// The most similar known key.
        nearest: &'static str,
    },
    /// The value does not fit its key.
    #[error("{}: {}: {problem}", whence(.origin, .position), .key.name())]
    BadValue {
        /// The key.
        key: Key,
        /// The layer of the value.
        origin: Origin,
        /// The position in the file, if the layer is one.
        position: Option<Position>,
        /// The problem.
        problem: ValueError,
    },
    /// The file could not be written and is unchanged.
    #[error("cannot write the settings file {}: {source}", .path.display())]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is written in a way that [`set`](super::edit::set) cannot change safely. It is
    /// unchanged.
    #[error("cannot change {} in {} without changing something else", .key.name(), .path.display())]
    NotEditable {
        /// The file.
        path: PathBuf,
        /// The key to change.
        key: Key,
    },
}

impl ConfigError {
    /// The next step for the user, in one sentence.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { .. } => "check the path, or omit it to use the default files".into(),
            Self::Directory { path } => {
                format!("remove the directory, or use {} in it", path.join("config.yaml").display())
            }
            Self::NotAFile { .. } => "replace it with a file, or remove it".into(),
            Self::DanglingLink { .. } => {
                "create the file that the link points to, or remove the link".into()
            }
            Self::Unreadable { .. } => "check that it is readable".into(),
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
