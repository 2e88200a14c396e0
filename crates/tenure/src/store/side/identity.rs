//! Noticing that a store's file was removed or replaced: others use another one by then.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often a handle looks: a holder learns of it long before its next renewal, and those who ask
/// thousands of times a second do not pay for it each time.
const EVERY_MS: u64 = 20;

/// Which file it was when the store was opened.
#[derive(Debug)]
pub(crate) struct Identity {
    path: PathBuf,
    opened: Option<(u64, u64)>,
    /// When that was last looked at.
    checked_ms: AtomicU64,
}

impl Identity {
    pub(crate) fn of(path: PathBuf) -> Identity {
        Identity { opened: identify(&path), path, checked_ms: AtomicU64::new(0) }
    }

    /// Whether the file is still the one that was opened.
    pub(crate) fn is_kept(&self, now: Duration) -> bool {
        let now_ms = now.as_millis() as u64;
        let checked_ms = self.checked_ms.load(Ordering::Relaxed);
        if now_ms.saturating_sub(checked_ms) < EVERY_MS && checked_ms > 0 {
            return true;
        }
        self.checked_ms.store(now_ms, Ordering::Relaxed);
        identify(&self.path) == self.opened
    }
}

/// What tells a file from another that takes its place; `None` where there is none, or where the
/// system cannot tell. Opens nothing: closing SQLite's own files would drop its locks.
fn identify(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
