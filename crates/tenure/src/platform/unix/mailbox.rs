//! Named pipes through which one process wakes another.

use rustix::fs::{FileType, Mode, OFlags, mknodat};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Creates a named pipe that appears under `path` only once it has a reader, so that a pipe
/// without one can always be known as an orphan.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let new = path.with_extension("new");
    // Only its owner reads it. Who may write to it is said by the umask, as for all files here.
    let mode = Mode::RUSR | Mode::WUSR | Mode::WGRP | Mode::WOTH;
    mknodat(rustix::fs::CWD, &new, FileType::Fifo, mode, 0)?;
    if is_for_group(path) {
        // The process that releases may be another member's, and the umask of the one that waits
        // says nothing about members. Other users have no business here.
        let _ = rustix::fs::chmod(&new, Mode::RUSR | Mode::WUSR | Mode::WGRP);
    }
    // Reading and writing at once: the pipe then never reports its end when the last writer leaves.
    let opened = rustix::fs::open(&new, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let result = opened.map_err(io::Error::from).and_then(|descriptor: OwnedFd| {
        std::fs::rename(&new, path)?;
        Ok(File::from(descriptor))
    });
    if result.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    result
}

/// Whether the members of a group share the folder of this pipe.
fn is_for_group(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let folder = path.parent().and_then(|folder| std::fs::metadata(folder).ok());
    folder.is_some_and(|folder| folder.mode() & Mode::WGRP.bits() != 0)
}

/// Puts a message into somebody's pipe. Says no where nobody reads it any more; never blocks.
pub(crate) fn send(path: &Path, message: &[u8]) -> bool {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(descriptor) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    // A full pipe means that its reader has thousands of messages to wake up for already.
    File::from(descriptor).write(message).is_ok()
}

/// Whether this pipe has no reader and never will have.
pub(crate) fn is_orphan(path: &Path) -> bool {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    matches!(rustix::fs::open(path, flags, Mode::empty()), Err(rustix::io::Errno::NXIO))
}
