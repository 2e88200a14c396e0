//! A fair queue of the processes that want to write, made of two kernel locks.
//!
//! SQLite lets writers retry at random, and one of eight was seen to wait five seconds. A single
//! `flock` is better but lets whoever just left take it again. So there are two: whoever holds the
//! *door* is next, whoever holds the *seat* writes. A writer that leaves the seat has to queue at
//! the door again, while the one at the door sits down: nobody can overtake it. The kernel frees
//! both when a process dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// The two locks of one store handle. Used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Turnstile {
    door: File,
    seat: File,
}

impl Turnstile {
    /// Opens the two lock files in the store's side folder.
    pub(crate) fn open(side: &Path) -> io::Result<Turnstile> {
        let open = |name: &str| {
            OpenOptions::new().create(true).truncate(false).write(true).open(side.join(name))
        };
        Ok(Turnstile { door: open("door")?, seat: open("seat")? })
    }

    /// Takes the seat if nobody is before us.
    pub(crate) fn try_enter(&self) -> io::Result<bool> {
        if !try_lock(&self.door)? {
            return Ok(false);
        }
        let seated = try_lock(&self.seat);
        self.door.unlock()?;
        seated
    }

    /// Waits for the seat, in the order of arrival at the door as far as the kernel keeps it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        lock(&self.door)?;
        let seated = lock(&self.seat);
        self.door.unlock()?;
        seated
    }

    /// Leaves the seat.
    pub(crate) fn leave(&self) -> io::Result<()> {
        self.seat.unlock()
    }
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
