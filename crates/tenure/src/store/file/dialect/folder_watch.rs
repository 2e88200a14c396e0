//! Noticing that another program removed or replaced a lock file.

use notify::event::{EventKind, ModifyKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use tenure_core::GrantId;
use tokio::sync::watch;

/// The longest sleep of a waiter. Not all that frees a lock changes the folder: its holder may die,
/// or the lock may become stale.
pub(crate) const RECHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Watches a folder from the first wait on.
pub(crate) struct FolderWatch {
    watcher: OnceLock<Option<Watcher>>,
    /// How many changes there had been when each waiter was last woken.
    seen: Mutex<HashMap<GrantId, u64>>,
}

struct Watcher {
    /// How many files were removed or renamed so far.
    changes: watch::Receiver<u64>,
    _watcher: notify::RecommendedWatcher,
}

impl FolderWatch {
    pub(crate) fn new() -> FolderWatch {
        FolderWatch { watcher: OnceLock::new(), seen: Mutex::new(HashMap::new()) }
    }

    /// Returns when a file was removed or renamed since this last returned for the same request, or
    /// after [`RECHECK_INTERVAL`]. The first time it returns at once: changes before the watch
    /// began were not noticed.
    pub(crate) async fn changed(&self, folder: &Path, grant: GrantId) {
        let Some(watcher) = self.watcher.get_or_init(|| start(folder).ok()) else {
            return tokio::time::sleep(RECHECK_INTERVAL / 10).await;
        };
        let mut changes = watcher.changes.clone();
        let seen = self.seen().get(&grant).copied();
        if let Some(seen) = seen {
            let more = changes.wait_for(|count| *count > seen);
            let _ = tokio::time::timeout(RECHECK_INTERVAL, more).await;
        }
        let count = *changes.borrow();
        self.seen().insert(grant, count);
    }

    /// Forgets a request that waits no longer.
    pub(crate) fn forget(&self, grant: GrantId) {
        self.seen().remove(&grant);
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<GrantId, u64>> {
        self.seen.lock()
    }
}

fn start(folder: &Path) -> notify::Result<Watcher> {
    use notify::Watcher as _;
    let (count, changes) = watch::channel(0);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let freed = event.is_ok_and(|event| {
            matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)))
        });
        if freed {
            count.send_modify(|count| *count += 1);
        }
    })?;
    watcher.watch(folder, notify::RecursiveMode::NonRecursive)?;
    Ok(Watcher { changes, _watcher: watcher })
}
