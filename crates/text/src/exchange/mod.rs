//! Reads and writes task files of people and other programs.
//!
//! [`read`] parses text into tasks to add, [`write()`] does the reverse; only [`read_file`] touches
//! the disk. What has no field in a task goes to its payload or into the notes, so that nothing is
//! lost silently. A file is read as a whole or not at all.
//!
//! Reading order: [`Format`], then `tree` (text to values), `fields` and `record` (a value to a
//! task), `document` (lists of them), `priority` (other scales), `markdown`, `assemble` (ids and
//! dependencies), `notes`, and `export` for writing.

mod assemble;
mod detect;
mod document;
mod error;
mod export;
mod fields;
mod markdown;
mod markdown_item;
mod notes;
mod priority;
mod record;
mod tree;

pub use detect::{Format, FormatWordError};
pub use document::Problem;
pub use error::ExchangeError;
pub use export::{coordination_status, coordination_task, queue_task};
pub use export::{left_out, write};
pub use priority::from_coordination as priority_from_coordination;
pub use priority::to_coordination as priority_to_coordination;

use std::io::Read;
use std::path::Path;
use tenure_core::Section;
use tenure_core::rules::tasks::NewTask;

/// The largest file that is read: enough for a million tasks, without running out of memory.
pub const FILE_MAX_BYTES: u64 = 512 * 1024 * 1024;

/// The field of a task's payload with the files that its worker should read. They are not held.
pub const CONTEXT_FILES: &str = "context_files";

/// The content of a task file.
#[derive(Clone, Debug)]
pub struct TaskFile {
    /// The tasks, in the order of the file.
    pub tasks: Vec<NewTask>,
    /// The sections that the file describes.
    pub sections: Vec<Section>,
    /// The format of the file.
    pub format: Format,
    /// What could not be imported, one sentence each.
    pub notes: Vec<String>,
}

/// Reads one file in this format; by default the format is detected from its name and content.
pub fn read_file(path: &Path, format: Option<Format>) -> Result<TaskFile, ExchangeError> {
    let text = text_of(path)?;
    read(&text, format.unwrap_or_else(|| Format::detect(path, &text)))
}

/// Reads another program's file so that an invalid entry does not affect the others: it becomes a
/// blocked task with the reason as its error, or is omitted if it has no usable id.
pub fn read_foreign_file(
    path: &Path,
    format: Format,
) -> Result<(TaskFile, Vec<Problem>), ExchangeError> {
    let text = text_of(path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    document::read_each(tree::json(text)?, format)
}

/// The content of a text file without the byte order mark that editors and PowerShell add.
pub fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// Reads text in this format.
pub fn read(text: &str, format: Format) -> Result<TaskFile, ExchangeError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Markdown => markdown::read(text),
        Format::Yaml => document::read(tree::yaml(text)?, format),
        Format::Json | Format::Coordination | Format::Queue => {
            document::read(tree::json(text)?, format)
        }
    }
}

fn text_of(path: &Path) -> Result<String, ExchangeError> {
    let unreadable = |source| ExchangeError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(ExchangeError::TooLarge { limit_bytes: FILE_MAX_BYTES });
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        ExchangeError::NotUtf8 { line: before.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}
