//! What SQLite does not know in a process forked from one that has the database open.
//!
//! SQLite notes in memory which locks its process has on a file, and a forked process has a copy of
//! these notes, but none of the locks: `fcntl` locks are not inherited. A connection that it opens
//! then relies on locks that are not there. Two of them matter while nothing is written: one on the
//! database keeps others from taking the log away, one on the shared memory keeps others from
//! truncating it. So the child takes both itself, for as long as it lives.

use crate::platform::process_id;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::OnceLock;

/// What SQLite locks for reading in the database as long as a connection in WAL mode is open, and
/// in the shared memory as long as that is in use: `SHARED_FIRST` and `SHARED_SIZE`, and
/// `UNIX_SHM_DMS`, of its `os_unix.c`. Both are part of its file format.
const DATABASE: (i64, i64) = (0x4000_0002, 510);
const SHARED_MEMORY: (i64, i64) = (128, 1);

/// Takes the locks that SQLite believes this process to have, if it is forked from one that had a
/// database open. To be called when a connection is open. The files stay open: closing one would
/// drop the locks.
pub(super) fn take_missing_locks(database: &Path) -> io::Result<()> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    if *FIRST.get_or_init(process_id) == process_id() {
        return Ok(());
    }
    let mut shared_memory = database.as_os_str().to_owned();
    shared_memory.push("-shm");
    for (path, range) in [(database, DATABASE), (Path::new(&shared_memory), SHARED_MEMORY)] {
        let file = OpenOptions::new().read(true).open(path)?;
        lock_for_reading(&file, range)?;
        std::mem::forget(file);
    }
    Ok(())
}

#[expect(unsafe_code, reason = "rustix locks whole files only")]
fn lock_for_reading(file: &File, (start, length): (i64, i64)) -> io::Result<()> {
    let lock = libc::flock {
        l_type: libc::F_RDLCK as _,
        l_whence: libc::SEEK_SET as _,
        l_start: start,
        l_len: length,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the command reads the structure that it is given.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
