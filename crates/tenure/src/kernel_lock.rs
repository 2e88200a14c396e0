//! The kernel's lock on a file, which ends with whoever has it.

use std::fs::{File, TryLockError};
use std::io;
use std::sync::mpsc;
use std::time::Duration;

/// Takes the lock if nobody has it.
#[expect(clippy::disallowed_methods, reason = "the lock is on the file that is changed")]
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Takes the lock, waiting up to `limit`, or for ever if there is none.
pub(crate) fn lock_within(file: &File, limit: Option<Duration>) -> io::Result<bool> {
    if try_lock(file)? {
        return Ok(true);
    }
    match limit {
        None => lock(file).map(|()| true),
        Some(limit) if limit.is_zero() => Ok(false),
        Some(limit) => {
            // The kernel knows no limit. A thread that waits in vain has its own descriptor, and
            // lets go of the lock as soon as it gets it, if the caller's is closed by then.
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
