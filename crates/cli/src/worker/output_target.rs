//! Where the output of a worker's commands goes: passed on, or to log files.

use crate::output::Output;
use crate::output::aside::{self, Stream};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tenure::core::Task;

/// The destination of the commands' output.
#[derive(Debug)]
pub(crate) enum OutputTarget {
    /// Passed on to tenure's own output.
    PassOn(Output),
    /// A file for each attempt, in this folder.
    Files(PathBuf),
}

/// The destination of one attempt's output.
pub(super) enum AttemptOutput {
    PassOn(Output),
    File(LogFile),
}

/// A file that is created at the first write.
pub(super) struct LogFile {
    path: PathBuf,
    file: Option<File>,
}

impl LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            // A task that was snoozed or returned can have the same attempt twice.
            none => none.insert(
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    // A pipe in its place would keep the worker from stopping; a file is never waited for.
                    .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                    .open(&self.path)?,
            ),
        };
        file.write_all(bytes)
    }
}

/// A file name can have 255 bytes; this leaves room for the attempt.
const NAME_MAX_BYTES: usize = 200;

impl OutputTarget {
    pub(super) fn open(&self, task: &Task) -> io::Result<AttemptOutput> {
        match self {
            OutputTarget::PassOn(output) => Ok(AttemptOutput::PassOn(output.clone())),
            OutputTarget::Files(folder) => {
                std::fs::create_dir_all(folder)?;
                // A read-only folder is reported before the command runs.
                writable(folder)?;
                Ok(AttemptOutput::File(LogFile { path: log_path(folder, task), file: None }))
            }
        }
    }
}

/// Fails if files cannot be created in this folder.
fn writable(folder: &Path) -> io::Result<()> {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    Ok(rustix::fs::access(folder, access)?)
}

/// The file of the task's current attempt.
fn log_path(folder: &Path, task: &Task) -> PathBuf {
    folder.join(format!("{}-{}.log", file_name(task.id.as_str()), task.attempts))
}

/// The id, with all characters that do not belong in a file name written as `%XX`.
fn file_name(id: &str) -> String {
    let mut name = String::new();
    for (index, byte) in id.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        match plain || (byte == b'.' && index > 0) {
            true => name.push(char::from(byte)),
            false => name += &format!("%{byte:02X}"),
        }
    }
    name.truncate(NAME_MAX_BYTES);
    name
}

/// Where a stream of the command is passed on to: with `--json`, stdout is for events.
fn target(output: &Output, stream: Stream) -> Stream {
    if output.json { Stream::Stderr } else { stream }
}

impl AttemptOutput {
    /// Returns when what the command prints next can be taken in. Cancel-safe.
    pub(super) async fn room(&self, stream: Stream) {
        if let AttemptOutput::PassOn(output) = self {
            aside::room(target(output, stream)).await;
        }
    }

    /// Takes in what the command printed, without waiting.
    pub(super) fn write(&mut self, stream: Stream, bytes: Vec<u8>) {
        match self {
            AttemptOutput::PassOn(output) => output.pass_on(target(output, stream), bytes),
            // A full disk must not fail the task.
            AttemptOutput::File(file) => drop(file.write(&bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_name_a_file_elsewhere() {
        assert_eq!(file_name("t17.a_b-c"), "t17.a_b-c");
        assert_eq!(file_name("../x"), "%2E.%2Fx");
        assert_eq!(file_name("a/b"), "a%2Fb");
        assert!(file_name(&"ü".repeat(400)).len() <= NAME_MAX_BYTES);
    }
}
