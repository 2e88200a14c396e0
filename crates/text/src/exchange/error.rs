//! Errors of reading or writing a task file.

use std::io;
use std::path::PathBuf;

/// A task file cannot be read or written. Nothing was added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is larger than the limit.
    #[error("the file is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The file is not UTF-8.
    #[error("line {line} is not UTF-8 text")]
    NotUtf8 {
        /// The first invalid line.
        line: usize,
    },
    /// The text is not valid: incomplete, nested too deeply, or with a key given twice.
    #[error("line {line}, column {column}: {problem}")]
    Malformed {
        /// The line, from one.
        line: usize,
        /// The column, from one.
        column: usize,
        /// The problem.
        problem: String,
    },
    /// The text is valid but not a list of tasks.
    #[error("{place} is {found}; expected {expected}")]
    Shape {
        /// The part of the file.
        place: String,
        /// What it is.
        found: &'static str,
        /// What is expected.
        expected: &'static str,
    },
    /// A field of a task or section is invalid.
    #[error("{place}: {field}: {problem}")]
    Field {
        /// The task or section.
        place: String,
        /// The field.
        field: String,
        /// The problem.
        problem: String,
    },
    /// A newer version wrote the file.
    #[error("the file has version {version}; this tenure supports version {known} and below")]
    Newer {
        /// The version of the file.
        version: u64,
        /// The newest known version.
        known: u64,
    },
    /// The tasks cannot be expressed in the format.
    #[error("the tasks cannot be written as {format}: {problem}")]
    NotWritable {
        /// The format.
        format: super::Format,
        /// The cause.
        problem: String,
    },
}

impl ExchangeError {
    /// The next step for the user, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "Check the path and its permissions.",
            Self::TooLarge { .. } => "Split it into several files.",
            Self::NotUtf8 { .. } => "Save the file as UTF-8.",
            Self::Malformed { .. } | Self::Field { .. } => {
                "Correct the file and import it again; nothing was added."
            }
            Self::Shape { .. } => {
                "Write a list of tasks, or an object with `tasks`; set the format with --format."
            }
            Self::Newer { .. } => "Use a newer tenure.",
            Self::NotWritable { .. } => "Choose another format.",
        }
    }
}

/// How much of a text a message quotes.
const QUOTED_CHARACTERS: usize = 40;

/// A text, quoted and shortened, for messages.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
