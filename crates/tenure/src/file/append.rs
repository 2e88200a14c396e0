//! Appends whole lines to a file with many writers.

use super::original::{do_not_wait, refuse_other_kinds};
use super::stamp::same_file;
use super::{FileError, real_path};
use crate::kernel_lock::lock_within;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest line; a line is kept in memory until it is complete.
pub const LINE_MAX_BYTES: usize = 64 * 1024 * 1024;

/// How often a file that is replaced all the time is opened again.
const ATTEMPTS: usize = 1000;

/// Appends lines to a file, which is created if it does not exist. Lines of several writers, also
/// in several processes, never mix.
///
/// Each call holds the kernel's lock on the file while it writes. A writer that is killed meanwhile
/// may leave the beginning of a line; the next writer ends that line first.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    limit: Option<Duration>,
    sync: bool,
}

/// The result of appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Whether the last line of the file was unfinished and got a line break first: its writer was
    /// killed, or does not end files with a line break.
    pub closed_a_line: bool,
}

impl Appender {
    /// Opens the file at `path`, following links. It waits for other writers up to `limit` at a
    /// time, forever without one. With `sync`, appended lines are on disk when the call returns.
    pub fn open(path: &Path, limit: Option<Duration>, sync: bool) -> Result<Appender, FileError> {
        let path = real_path(path)?;
        let file = open(&path)?;
        Ok(Appender { path, file, limit, sync })
    }

    /// The path of the file, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines, all or none. They must be complete: the last one ends with a line break, too.
    pub fn append(&mut self, lines: &[u8]) -> Result<Appended, FileError> {
        debug_assert!(lines.ends_with(b"\n"));
        self.lock()?;
        let appended = self.append_locked(lines);
        let unlocked = self.file.unlock();
        let appended = appended.map_err(|error| self.refused(error))?;
        unlocked.map_err(|error| self.refused(error))?;
        Ok(appended)
    }

    /// Locks the file that is at the path now: it may have been replaced while this writer waited.
    fn lock(&mut self) -> Result<(), FileError> {
        for _ in 0..ATTEMPTS {
            let locked = lock_within(&self.file, self.limit);
            if !locked.map_err(|error| self.refused(error))? {
                return Err(FileError::Locked { path: self.path.clone() });
            }
            let own = self.file.metadata().map_err(|error| self.refused(error))?;
            if std::fs::metadata(&self.path).is_ok_and(|there| same_file(&there, &own)) {
                return Ok(());
            }
            self.file = open(&self.path)?;
        }
        Err(FileError::Locked { path: self.path.clone() })
    }

    fn append_locked(&mut self, lines: &[u8]) -> io::Result<Appended> {
        let length = self.file.metadata()?.len();
        let closed_a_line = length > 0 && last_byte(&self.file, length)? != b'\n';
        let written = if closed_a_line {
            // In one write with the rest, so that the writer cannot be killed in between.
            self.write(length, &[b"\n", lines].concat())
        } else {
            self.write(length, lines)
        };
        written?;
        if self.sync {
            self.file.sync_data()?;
        }
        Ok(Appended { closed_a_line })
    }

    /// Writes all bytes, or removes what was written of them.
    fn write(&mut self, length: u64, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(written @ 1..) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                stuck => {
                    let error = stuck.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    let written = (bytes.len() - rest.len()) as u64;
                    // Unless a program that takes no lock has appended since.
                    if self.file.metadata()?.len() == length + written {
                        self.file.set_len(length)?;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn refused(&self, error: io::Error) -> FileError {
        FileError::from_attempt(&self.path, "appended to", error)
    }
}

fn open(path: &Path) -> Result<File, FileError> {
    let refused = |error| FileError::from_attempt(path, "appended to", error);
    if let Ok(metadata) = std::fs::metadata(path) {
        refuse_other_kinds(path, &metadata)?;
    }
    let mut options = File::options();
    options.read(true).append(true).create(true);
    do_not_wait(&mut options);
    let file = options.open(path).map_err(refused)?;
    refuse_other_kinds(path, &file.metadata().map_err(refused)?)?;
    Ok(file)
}

fn last_byte(file: &File, length: u64) -> io::Result<u8> {
    let mut byte = [0];
    std::os::unix::fs::FileExt::read_exact_at(file, &mut byte, length - 1)?;
    Ok(byte[0])
}
