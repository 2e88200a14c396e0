//! Why a task file cannot be read or written.

use std::io;
use std::path::PathBuf;

/// A task file that cannot be read or written. Nothing of it was taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is larger than any list of tasks.
    #[error("the file is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The most that is read.
        limit_bytes: u64,
    },
    /// The file is not UTF-8.
    #[error("line {line} is not UTF-8 text")]
    NotUtf8 {
        /// The first line that is not.
        line: usize,
    },
    /// The text is not of its format: torn, nested too deeply, or with a key given twice.
    #[error("line {line}, column {column}: {problem}")]
    Malformed {
        /// The line, from one.
        line: usize,
        /// The column, from one.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The text is of its format but is no list of tasks.
    #[error("{place} is {found}; expected {expected}")]
    Shape {
        /// Which part of the file.
        place: String,
        /// What stands there.
        found: &'static str,
        /// What should.
        expected: &'static str,
    },
    /// A field of a task or section does not make sense.
    #[error("{place}: {field}: {problem}")]
    Field {
        /// Which task or section.
        place: String,
        /// Which field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file was written by a version that knows more.
    #[error("the file has version {version}; this tenure supports version {known} and below")]
    Newer {
        /// What the file says.
        version: u64,
        /// What is known.
        known: u64,
    },
    /// The tasks cannot be expressed in the format.
    #[error("the tasks cannot be written as {format}: {problem}")]
    NotWritable {
        /// Which format.
        format: super::Format,
        /// Why.
        problem: String,
    },
}

impl ExchangeError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "Check the path and that you may read it.",
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

/// At most this much of a text is quoted in a message.
const QUOTED_CHARACTERS: usize = 40;

/// The text, quoted and shortened, for messages.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
