//! Noticing that another program's lock file went away.

use notify::event::{EventKind, ModifyKind};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// How long to sleep at most: not all that frees such a lock moves a file. Its holder may die, or
/// let it grow stale.
pub(crate) const LOOK_AT_LEAST: Duration = Duration::from_millis(250);

/// Watches a folder once somebody waits.
pub(crate) struct Watch {
    watching: OnceLock<Option<Watching>>,
}

struct Watching {
    moved: Arc<Notify>,
    _watcher: notify::RecommendedWatcher,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch { watching: OnceLock::new() }
    }

    /// Returns when a file of the folder went away or was put there, or after a while.
    pub(crate) async fn moved(&self, folder: &Path) {
        let watching = self.watching.get_or_init(|| start(folder).ok());
        match watching {
            Some(watching) => {
                let _ = tokio::time::timeout(LOOK_AT_LEAST, watching.moved.notified()).await;
            }
            None => tokio::time::sleep(LOOK_AT_LEAST / 10).await,
        }
    }
}

fn start(folder: &Path) -> notify::Result<Watching> {
    use notify::Watcher;
    let moved = Arc::new(Notify::new());
    let tell = moved.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let freed = event.is_ok_and(|event| {
            matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)))
        });
        if freed {
            tell.notify_waiters();
        }
    })?;
    watcher.watch(folder, notify::RecursiveMode::NonRecursive)?;
    Ok(Watching { moved, _watcher: watcher })
}
