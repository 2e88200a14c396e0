//! A fair queue of the processes that want to write, made of two kernel locks.
//!
//! SQLite lets writers retry at random, and one of eight was seen to wait five seconds. A single
//! `flock` is better, but the process that just released it can take it again before the woken ones
//! run. So there are two locks: the process that holds *next* is the next writer, and the process
//! that holds *writer* writes. A process that has written queues for *next* again, while the one
//! that holds it becomes the writer and cannot be overtaken. The kernel frees both locks when a
//! process dies.
//!
//! Each process writes down in the file who it is when it has the lock, for those who wait: only a
//! stopped process keeps a lock and does not go on. The kernel's own list, `/proc/locks`, cannot be
//! asked: it makes every file lock of the machine wait for its reader.

use super::Identity;
use crate::platform::fork::OwnFile;
use crate::platform::{self, RunningProcess, access};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The two locks of one store handle. Used by one thread at a time.
#[derive(Debug)]
pub(crate) struct WriterQueue {
    /// The two locks, or why they cannot be opened in a read-only store.
    locks: io::Result<Locks>,
}

#[derive(Debug)]
struct Locks {
    next: OwnFile,
    writer: OwnFile,
}

impl WriterQueue {
    /// Opens the two lock files in the store's side folder. A read-only store is opened without
    /// them: readers do not need them, and a writer gets the error.
    pub(crate) fn open(side: &Path, look_only: bool) -> io::Result<WriterQueue> {
        let open = |path: &Path| {
            super::ensure_regular(path)?;
            let mut options = OpenOptions::new();
            options.create(!look_only).truncate(false).write(true);
            access::open(&mut options, path).map(OwnFile::new)
        };
        let [next, writer] = files(side);
        let locks = open(&next).and_then(|next| Ok(Locks { next, writer: open(&writer)? }));
        match locks {
            Err(error) if !look_only => Err(error),
            locks => Ok(WriterQueue { locks }),
        }
    }

    /// Whether the store is read-only, so that no write can ever begin.
    pub(crate) fn is_closed(&self) -> bool {
        self.locks.is_err()
    }

    /// The identity of the file that the writer locks.
    pub(crate) fn identity(&self, side: &Path) -> io::Result<Identity> {
        let [_, writer] = files(side);
        match &self.locks {
            Ok(locks) => Ok(Identity::new(writer, &locks.writer.metadata()?)),
            Err(_) => Identity::of_path(writer),
        }
    }

    fn locks(&self) -> io::Result<&Locks> {
        let again = |error: &io::Error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => error.kind().into(),
        };
        self.locks.as_ref().map_err(again)
    }

    /// Becomes the writer if no other process writes or is next.
    pub(crate) fn try_enter(&self) -> io::Result<bool> {
        let Locks { next, writer } = self.locks()?;
        if !try_lock(next)? {
            return Ok(false);
        }
        let entered = try_lock(writer);
        if let Ok(true) = entered {
            sign(writer);
        }
        next.unlock()?;
        entered
    }

    /// Waits to become the writer, in the order of arrival as far as the kernel keeps it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let Locks { next, writer } = self.locks()?;
        lock(next)?;
        sign(next);
        let entered = lock(writer);
        if entered.is_ok() {
            sign(writer);
        }
        next.unlock()?;
        entered
    }

    /// Lets the next writer begin.
    pub(crate) fn leave(&self) -> io::Result<()> {
        self.locks()?.writer.unlock()
    }
}

/// The files of the locks *next* and *writer*. Their names on disk are part of the store's format:
/// older versions that use the same store lock the same files.
fn files(side: &Path) -> [PathBuf; 2] {
    ["door", "seat"].map(|name| side.join(name))
}

/// How often a process that waits checks whether the one before it is stopped.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// How many checks in a row must find the same process stopped before waiting ends with an error. A
/// process that is stopped for a moment should not make others fail.
const CHECKS: u32 = 5;

/// Waits for a turn, but not for ever behind a process that is stopped (Ctrl-Z, a debugger). Returns
/// the id of that process as the error.
pub(crate) async fn unless_stopped<T>(
    side: &Path,
    turn: impl Future<Output = T>,
) -> Result<T, u32> {
    let mut turn = std::pin::pin!(turn);
    let (mut stopped, mut checks) = (None, 0);
    loop {
        tokio::select! {
            biased;
            answer = &mut turn => return Ok(answer),
            () = tokio::time::sleep(CHECK_EVERY) => {}
        }
        let now = stopped_process(side);
        checks = if now.is_some() && now == stopped { checks + 1 } else { 1 };
        stopped = now;
        if let Some(pid) = stopped.filter(|_| checks == CHECKS) {
            return Err(pid);
        }
    }
}

/// How many bytes of a lock file say which process has the lock.
const SIGNATURE_BYTES: usize = 64;

/// Writes down that this process has the lock. If that fails, as on a full disk, the processes that
/// wait know less and wait longer.
fn sign(lock: &File) {
    let RunningProcess { pid, start, pid_namespace } = platform::running_process();
    let mut line = [b' '; SIGNATURE_BYTES];
    let text = format!("{pid} {start} {pid_namespace}\n");
    line[..text.len()].copy_from_slice(text.as_bytes());
    let _ = lock.write_all_at(&line, 0);
}

/// The stopped process that keeps the others from writing, if there is one. A process that waits
/// finds the right signature of *next*, perhaps its own; if that process is not stopped, it waits for
/// *writer*, whose signature is then right too. So they are read in this order.
fn stopped_process(side: &Path) -> Option<u32> {
    let signed = files(side).into_iter().filter_map(|path| signature(&path));
    signed.filter(platform::is_stopped).map(|process| process.pid).next()
}

fn signature(lock: &Path) -> Option<RunningProcess> {
    let mut line = [0; SIGNATURE_BYTES];
    File::open(lock).ok()?.read_exact_at(&mut line, 0).ok()?;
    let mut numbers = std::str::from_utf8(&line).ok()?.split_ascii_whitespace();
    let pid = numbers.next()?.parse().ok()?;
    let start = numbers.next()?.parse().ok()?;
    let pid_namespace = numbers.next()?.parse().ok()?;
    Some(RunningProcess { pid, start, pid_namespace })
}

#[expect(clippy::disallowed_methods, reason = "this module is the one place that queues writers")]
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[expect(clippy::disallowed_methods, reason = "this module is the one place that queues writers")]
fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => return result,
        }
    }
}
