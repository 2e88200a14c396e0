//! How the processes of one machine that share a store coordinate: a fair queue of writers, messages
//! that wake waiters, a signal for watchers, and a check that the store's file was not replaced.

mod identity;
mod notifier;
mod writer_queue;

pub(crate) use identity::{Identity, IdentityError};
pub(crate) use notifier::Notifier;
pub(crate) use writer_queue::{WriterQueue, unless_stopped};

use crate::store::StoreError;
use std::io;
use std::path::Path;

/// Refuses a file whose opening would block for ever, such as a named pipe.
fn ensure_regular(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let reason = format!("{name} is not a regular file");
            Err(io::Error::new(io::ErrorKind::IsADirectory, reason))
        }
        _ => Ok(()),
    }
}

/// The error for a store whose current or next writer is a stopped process.
pub(crate) fn stopped(store: String, pid: u32) -> StoreError {
    StoreError::Unavailable {
        store,
        reason: format!("process {pid} was stopped while it wrote, and no other process can write"),
        hint: Some(format!("Let it go on with `kill -CONT {pid}`, or end it; nothing was lost.")),
    }
}
