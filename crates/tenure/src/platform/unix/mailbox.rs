//! Named pipes through which one process wakes another.

use super::access::is_for_group;
use rustix::fs::{FileType, Mode, OFlags, mknodat};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Creates a named pipe that appears under `path` only once it has a reader, so that a pipe without
/// a reader is always abandoned.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let new = path.with_extension("new");
    mknodat(rustix::fs::CWD, &new, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    if is_for_group(path) {
        // Only its owner reads it. The process that releases may belong to another member.
        let _ = rustix::fs::chmod(&new, Mode::RUSR | Mode::WUSR | Mode::WGRP);
    }
    // Open for reading and writing: the pipe then never reports its end when the last writer
    // leaves.
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

/// Puts a message into another process's pipe. Returns false if it has no reader; never blocks.
pub(crate) fn send(path: &Path, message: &[u8]) -> bool {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(descriptor) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    // A full pipe means that its reader already has thousands of messages.
    File::from(descriptor).write(message).is_ok()
}

/// Whether this pipe has no reader and never will have.
pub(crate) fn is_orphan(path: &Path) -> bool {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    matches!(rustix::fs::open(path, flags, Mode::empty()), Err(rustix::io::Errno::NXIO))
}
