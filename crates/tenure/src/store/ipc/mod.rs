//! What lies beside a store that processes of one machine share: the queue of those who want to
//! write, and how they wake each other.

mod identity;
mod notifier;
mod writer_queue;

pub(crate) use identity::{Identity, IdentityError};
pub(crate) use notifier::Notifier;
pub(crate) use writer_queue::{WriterQueue, unless_stopped};

use crate::store::StoreError;
use std::io;
use std::path::Path;

/// Refuses what would keep whoever opens it waiting for ever, such as a named pipe.
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

/// Somebody is stopped while it writes, or while it is the next to write.
pub(crate) fn stopped(store: String, pid: u32) -> StoreError {
    StoreError::Unavailable {
        store,
        reason: format!("process {pid} was stopped while it wrote, and nobody else can write"),
        hint: Some(format!("Let it go on with `kill -CONT {pid}`, or end it; nothing was lost.")),
    }
}
