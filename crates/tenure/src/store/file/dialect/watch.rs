//! Noticing that another program's lock file went away.

use notify::event::{EventKind, ModifyKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use tenure_core::GrantId;
use tokio::sync::watch;

/// How long to sleep at most: not all that frees such a lock moves a file. Its holder may die, or
/// let it grow stale.
pub(crate) const LOOK_AT_LEAST: Duration = Duration::from_millis(250);

/// Watches a folder once somebody waits.
pub(crate) struct Watch {
    watching: OnceLock<Option<Watching>>,
    /// How many moves there had been when a request was last sent to look.
    told: Mutex<HashMap<GrantId, u64>>,
}

struct Watching {
    /// How many there have been.
    moves: watch::Receiver<u64>,
    _watcher: notify::RecommendedWatcher,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch { watching: OnceLock::new(), told: Mutex::new(HashMap::new()) }
    }

    /// Returns when a file of the folder went away or was put there since the last time that this
    /// returned for the request, or after a while. The first time it returns at once: what moved
    /// before the watch began was not seen.
    pub(crate) async fn moved(&self, folder: &Path, grant: GrantId) {
        let Some(watching) = self.watching.get_or_init(|| start(folder).ok()) else {
            return tokio::time::sleep(LOOK_AT_LEAST / 10).await;
        };
        let mut moves = watching.moves.clone();
        let told = self.told().get(&grant).copied();
        if let Some(told) = told {
            let more = moves.wait_for(|count| *count > told);
            let _ = tokio::time::timeout(LOOK_AT_LEAST, more).await;
        }
        let count = *moves.borrow();
        self.told().insert(grant, count);
    }

    /// A request waits no longer.
    pub(crate) fn forget(&self, grant: GrantId) {
        self.told().remove(&grant);
    }

    fn told(&self) -> MutexGuard<'_, HashMap<GrantId, u64>> {
        self.told.lock()
    }
}

fn start(folder: &Path) -> notify::Result<Watching> {
    use notify::Watcher;
    let (tell, moves) = watch::channel(0);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let freed = event.is_ok_and(|event| {
            matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)))
        });
        if freed {
            tell.send_modify(|count| *count += 1);
        }
    })?;
    watcher.watch(folder, notify::RecursiveMode::NonRecursive)?;
    Ok(Watching { moves, _watcher: watcher })
}
