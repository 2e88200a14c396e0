//! Which holders live, as far as a client of a server can tell: what it sees itself, and what the server proved
//! dead. Without this, a holder that died beside the server would be held here and dead there.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashSet;
use std::sync::Arc;
use tenure_core::{Evidence, Liveness, Witness};

/// More dead holders than any store shows; beyond that the oldest news is forgotten with the rest.
const REMEMBERED_MAX: usize = 10_000;

/// The evidence that a server proved dead. A process that is dead stays dead, so this is remembered.
#[derive(Default)]
pub(super) struct ToldDead {
    evidence: Mutex<HashSet<Evidence>>,
}

impl ToldDead {
    fn evidence(&self) -> MutexGuard<'_, HashSet<Evidence>> {
        self.evidence.lock()
    }

    pub(super) fn learn(&self, dead: &[Evidence]) {
        if dead.is_empty() {
            return;
        }
        let mut known = self.evidence();
        if known.len() + dead.len() > REMEMBERED_MAX {
            known.clear();
        }
        known.extend(dead.iter().take(REMEMBERED_MAX).cloned());
    }
}

/// Judges by what the server said, then by what can be seen from here.
pub(crate) struct RemoteWitness {
    pub(super) told: Arc<ToldDead>,
    pub(super) local: Arc<dyn Witness + Send + Sync>,
}

impl Witness for RemoteWitness {
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        if self.told.evidence().contains(evidence) {
            return Liveness::Dead;
        }
        self.local.liveness(evidence)
    }
}
