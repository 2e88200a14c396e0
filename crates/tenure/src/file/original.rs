//! A file as it was found before a change.

use super::stamp::{Stamp, names};
use super::{FileError, real_path};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A file that will be replaced or created, as it was when it was opened.
#[derive(Debug)]
pub struct Original {
    path: PathBuf,
    found: Option<Found>,
}

#[derive(Debug)]
pub(super) struct Found {
    /// Only for the kernel's lock. It must not be inherited: a child process with this descriptor
    /// would keep the lock.
    pub(super) file: File,
    pub(super) metadata: Metadata,
    pub(super) stamp: Stamp,
}

impl Original {
    /// Opens the file at `path`, following links; it need not exist. Pipes and devices are refused
    /// without waiting for their other end.
    pub fn open(path: &Path) -> Result<Original, FileError> {
        let path = real_path(path)?;
        let found = match open_plain(&path) {
            Ok(file) => Some(Found::new(&path, file)?),
            Err(FileError::Refused { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                None
            }
            Err(error) => return Err(error),
        };
        if found.is_some() && !is_writable(&path) {
            return Err(FileError::ReadOnly { path });
        }
        Ok(Original { path, found })
    }

    /// The path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file existed.
    pub fn exists(&self) -> bool {
        self.found.is_some()
    }

    /// Whether the file was empty or missing.
    pub fn is_empty(&self) -> bool {
        self.found.as_ref().is_none_or(|found| found.metadata.len() == 0)
    }

    /// How many other names the file has.
    pub fn other_names(&self) -> u64 {
        self.found.as_ref().map_or(0, |found| names(&found.metadata).saturating_sub(1))
    }

    /// The content from its beginning, for another process to read; `None` if there was no file.
    pub fn content(&self) -> Result<Option<File>, FileError> {
        let Some(found) = &self.found else { return Ok(None) };
        let file = open_plain(&self.path)?;
        if Found::new(&self.path, file.try_clone().map_err(|error| self.unread(error))?)?.stamp
            != found.stamp
        {
            return Err(FileError::Changed { path: self.path.clone() });
        }
        wait_when_reading(&file).map_err(|error| self.unread(error))?;
        Ok(Some(file))
    }

    /// Whether the file is unchanged: the same file with the same content, or still missing.
    pub fn is_as_found(&self) -> bool {
        let now = std::fs::metadata(&self.path).ok().map(|metadata| Stamp::of(&metadata));
        now.as_ref() == self.found.as_ref().map(|found| &found.stamp)
    }

    pub(super) fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }

    fn unread(&self, error: io::Error) -> FileError {
        FileError::from_attempt(&self.path, "read", error)
    }
}

impl Found {
    fn new(path: &Path, file: File) -> Result<Found, FileError> {
        let metadata =
            file.metadata().map_err(|error| FileError::from_attempt(path, "read", error))?;
        let stamp = Stamp::of(&metadata);
        Ok(Found { file, metadata, stamp })
    }
}

/// Opens a plain file for reading, and refuses anything else.
fn open_plain(path: &Path) -> Result<File, FileError> {
    let refused = |error| FileError::from_attempt(path, "read", error);
    // Before opening: opening a device can have effects.
    refuse_other_kinds(path, &std::fs::metadata(path).map_err(refused)?)?;
    let mut options = File::options();
    options.read(true);
    // Otherwise a pipe that takes its place just now would block.
    do_not_wait(&mut options);
    let file = options.open(path).map_err(refused)?;
    refuse_other_kinds(path, &file.metadata().map_err(refused)?)?;
    Ok(file)
}

/// Refuses anything that has no content of its own.
pub(super) fn refuse_other_kinds(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() { "a folder" } else { special_kind(metadata) };
    Err(FileError::NotAFile { path: path.to_owned(), what })
}

fn special_kind(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Opens pipes without waiting for their other end.
pub(super) fn do_not_wait(options: &mut std::fs::OpenOptions) {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("flags of open fit its argument");
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
}

/// Undoes [`do_not_wait`] for a descriptor that other processes get.
fn wait_when_reading(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)? - rustix::fs::OFlags::NONBLOCK;
    Ok(rustix::fs::fcntl_setfl(file, flags)?)
}

/// Whether this process may write to the file. A write-protected file is not replaced either,
/// although the folder would allow it.
fn is_writable(path: &Path) -> bool {
    !matches!(
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK),
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS | rustix::io::Errno::PERM)
    )
}
