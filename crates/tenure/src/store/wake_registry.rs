//! Who of this process sleeps until its turn comes.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::GrantId;
use tokio::sync::Notify;

/// The sleeping requests of one store handle. A wake that comes before the sleep is kept.
#[derive(Debug, Default)]
pub(crate) struct WakeRegistry {
    sleepers: Mutex<HashMap<GrantId, Arc<Notify>>>,
}

impl WakeRegistry {
    fn sleepers(&self) -> MutexGuard<'_, HashMap<GrantId, Arc<Notify>>> {
        self.sleepers.lock()
    }

    /// From now on wakes for this request are kept. To be called before its place is visible.
    pub(crate) fn expect(&self, grant: GrantId) -> Arc<Notify> {
        self.sleepers().entry(grant).or_default().clone()
    }

    /// The request waits no longer.
    pub(crate) fn forget(&self, grant: GrantId) {
        self.sleepers().remove(&grant);
    }

    /// Wakes the request if it is one of this process.
    pub(crate) fn wake(&self, grant: GrantId) {
        if let Some(sleeper) = self.sleepers().get(&grant) {
            sleeper.notify_one();
        }
    }

    /// Wakes all requests: some wake may have been lost.
    #[cfg(feature = "etcd")]
    pub(crate) fn wake_all(&self) {
        self.sleepers().values().for_each(|sleeper| sleeper.notify_one());
    }

    /// Sleeps until woken or until patience ends.
    pub(crate) async fn wait(&self, grant: GrantId, patience: Duration) {
        let sleeper = self.expect(grant);
        let _ = tokio::time::timeout(patience, sleeper.notified()).await;
    }

    /// Wakes those of this process's requests that are meant.
    #[cfg(feature = "postgres")]
    pub(crate) fn wake_where(&self, is_meant: impl Fn(GrantId) -> bool) {
        for (grant, sleeper) in self.sleepers().iter() {
            if is_meant(*grant) {
                sleeper.notify_one();
            }
        }
    }
}
