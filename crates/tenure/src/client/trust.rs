//! For how long a lease may be trusted, for code that has no guard at hand.

use super::keeper::{TrackedLease, TrustWatcher};
use super::{Client, Guard, Lease, Work, guard};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Tells for how long a lease, or all parts of a claim, may be trusted; from any thread, and after its
/// guard is gone.
#[derive(Clone)]
pub struct Trust {
    client: Client,
    parts: Vec<Arc<TrackedLease>>,
}

impl Trust {
    pub(super) fn new(client: &Client, parts: Vec<Arc<TrackedLease>>) -> Trust {
        Trust { client: client.clone(), parts }
    }

    /// The time left without a further renewal; zero if it is lost. Counted on a clock that stands
    /// still while the machine sleeps, unless [`counts_suspend`](Trust::counts_suspend).
    pub fn left(&self) -> Duration {
        let left = self.parts.iter().map(|held| guard::trusted_for(&self.client, held));
        left.min().unwrap_or_default()
    }

    /// How long after the end of trust another may hold.
    pub fn margin(&self) -> Duration {
        self.parts.iter().map(|held| held.lease.margin).min().unwrap_or_default()
    }

    /// Whether the time goes on while the machine sleeps, as it does where another machine judges the
    /// lease.
    pub fn counts_suspend(&self) -> bool {
        !self.client.info().local
    }

    /// Calls the watcher after each renewal and when the lease is lost, for as long as the caller keeps
    /// it. That may be on the thread that renews all leases of the client, so it must not wait.
    pub fn watch(&self, watcher: &Arc<TrustWatcher>) {
        self.parts.iter().for_each(|held| held.watch(watcher));
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("left", &self.left()).finish_non_exhaustive()
    }
}

impl Guard {
    /// For how long this may be trusted, for code that cannot have the guard.
    pub fn trust(&self) -> Trust {
        Trust::new(self.client(), vec![self.held().clone()])
    }
}

impl Work {
    /// For how long the claim, with all of its parts, may be trusted.
    pub fn trust(&self) -> Trust {
        Trust::new(self.client(), self.parts())
    }
}

impl Client {
    /// The time on the client's clock, by which it trusts leases. Only differences mean something.
    pub fn now(&self) -> Duration {
        self.inner.clock.now()
    }

    /// Whether a lease that this client obtained may be trusted now: the moment to ask is right before
    /// it is handed on.
    pub fn is_trusted(&self, lease: &Lease) -> bool {
        self.inner.clock.now() < lease.trusted_until
    }
}
