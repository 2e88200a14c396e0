//! A fair queue of the processes that want to write, made of two kernel locks.
//!
//! SQLite lets writers retry at random, and one of eight was seen to wait five seconds. A single
//! `flock` is better but lets whoever just left take it again. So there are two: whoever holds the
//! *door* is next, whoever holds the *seat* writes. A writer that leaves the seat has to queue at
//! the door again, while the one at the door sits down: nobody can overtake it. The kernel frees
//! both when a process dies.

use super::Identity;
use crate::platform;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The two locks of one store handle. Used by one thread at a time.
#[derive(Debug)]
pub(crate) struct WriterQueue {
    /// Why nobody can enter, where nothing may be written.
    locks: io::Result<Locks>,
}

#[derive(Debug)]
struct Locks {
    door: File,
    seat: File,
}

impl WriterQueue {
    /// Opens the two lock files in the store's side folder. Where nothing may be written, nobody
    /// can enter; whoever only looks need not.
    pub(crate) fn open(side: &Path, look_only: bool) -> io::Result<WriterQueue> {
        let open = |path: &Path| {
            super::ensure_regular(path)?;
            OpenOptions::new().create(true).truncate(false).write(true).open(path)
        };
        let [door, seat] = files(side);
        let locks = open(&door).and_then(|door| Ok(Locks { door, seat: open(&seat)? }));
        match locks {
            Err(error) if !look_only => Err(error),
            locks => Ok(WriterQueue { locks }),
        }
    }

    /// Whether nobody can ever enter, because nothing may be written.
    pub(crate) fn is_closed(&self) -> bool {
        self.locks.is_err()
    }

    /// The identity of the file that writers take their turn at.
    pub(crate) fn identity(&self, side: &Path) -> io::Result<Identity> {
        let [_, seat] = files(side);
        match &self.locks {
            Ok(locks) => Ok(Identity::new(seat, &locks.seat.metadata()?)),
            Err(_) => Identity::of_path(seat),
        }
    }

    fn locks(&self) -> io::Result<&Locks> {
        let again = |error: &io::Error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => error.kind().into(),
        };
        self.locks.as_ref().map_err(again)
    }

    /// Takes the seat if nobody is before us.
    pub(crate) fn try_enter(&self) -> io::Result<bool> {
        let Locks { door, seat } = self.locks()?;
        if !try_lock(door)? {
            return Ok(false);
        }
        let seated = try_lock(seat);
        door.unlock()?;
        seated
    }

    /// Waits for the seat, in the order of arrival at the door as far as the kernel keeps it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let Locks { door, seat } = self.locks()?;
        lock(door)?;
        let seated = lock(seat);
        door.unlock()?;
        seated
    }

    /// Leaves the seat.
    pub(crate) fn leave(&self) -> io::Result<()> {
        self.locks()?.seat.unlock()
    }
}

/// Door and seat.
fn files(side: &Path) -> [PathBuf; 2] {
    ["door", "seat"].map(|name| side.join(name))
}

/// How often those who wait look whether the one before them is stopped.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// At so many looks in a row somebody must have been stopped to be given up on. People who stop a
/// process for a moment should not make others fail.
const LOOKS: u32 = 5;

/// Waits for a turn, but not for ever behind a process that is stopped (Ctrl-Z, a debugger): that
/// one is then returned as the error.
pub(crate) async fn unless_stopped<T>(
    side: &Path,
    turn: impl Future<Output = T>,
) -> Result<T, u32> {
    let mut turn = std::pin::pin!(turn);
    let (mut stopped, mut looks) = (None, 0);
    loop {
        tokio::select! {
            biased;
            answer = &mut turn => return Ok(answer),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let now = platform::stopped_holder(&files(side));
        looks = if now.is_some() && now == stopped { looks + 1 } else { 1 };
        stopped = now;
        if let Some(pid) = stopped.filter(|_| looks == LOOKS) {
            return Err(pid);
        }
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
