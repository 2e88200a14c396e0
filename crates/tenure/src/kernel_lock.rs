//! The kernel's lock on a file, which ends with its holder.

use std::fs::{File, TryLockError};
use std::io;
use std::sync::mpsc;
use std::time::Duration;

/// Takes the lock if it is free.
#[expect(clippy::disallowed_methods, reason = "the lock is on the file that is changed")]
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Takes the lock, waiting up to `limit`, or forever without one.
pub(crate) fn lock_within(file: &File, limit: Option<Duration>) -> io::Result<bool> {
    if try_lock(file)? {
        return Ok(true);
    }
    match limit {
        None => lock(file).map(|()| true),
        Some(limit) if limit.is_zero() => Ok(false),
        Some(limit) => {
            // The kernel has no time limit. A thread that waits too long has its own descriptor,
            // and releases the lock as soon as it gets it if the caller has closed its descriptor
            // by then.
            let waiting = file.try_clone()?;
            let (sender, receiver) = mpsc::channel();
            std::thread::spawn(move || {
                let locked = lock(&waiting);
                let _ = sender.send(locked);
            });
            match receiver.recv_timeout(limit) {
                Ok(locked) => locked.map(|()| true),
                Err(_) => Ok(false),
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the lock is on the file that is changed")]
fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
