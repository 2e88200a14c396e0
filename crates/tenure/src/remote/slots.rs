//! Names for requests, such that a server need remember but the last answer of each slot.
//!
//! A slot carries one request at a time, each with a higher number than the one before. So the next
//! request under a slot says that the answer to the last one came, and it may be forgotten.

use crate::store::RequestId;
use crate::world::{PerProcess, World};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// The slots of one client. A process forked from this one has other slots, since the server takes
/// what comes under one slot for the requests of one process.
pub(super) struct Slots {
    world: Arc<dyn World>,
    here: PerProcess<Arc<InProcess>>,
}

struct InProcess {
    client: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The slots that carry nothing now, with the number that each gives next.
    free: Vec<RequestId>,
    made: u32,
}

impl Slots {
    pub(super) fn new(world: Arc<dyn World>) -> Slots {
        Slots { world, here: PerProcess::new() }
    }

    /// A slot for one request; given back when dropped.
    pub(super) fn take(&self) -> Slot {
        let slots = self.here.get_or_init(|| {
            let client = format!("{:032x}", self.world.random());
            Arc::new(InProcess { client, state: Mutex::default() })
        });
        let mut state = slots.state();
        let once = state.free.pop().unwrap_or_else(|| {
            state.made += 1;
            RequestId { slot: format!("{}-{}", slots.client, state.made), number: 1 }
        });
        Slot { slots: slots.clone(), once }
    }
}

impl InProcess {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A slot that carries a request.
pub(crate) struct Slot {
    slots: Arc<InProcess>,
    once: RequestId,
}

impl Slot {
    /// The request's name.
    pub(super) fn once(&self) -> &RequestId {
        &self.once
    }

    /// Goes on to the next request: whatever the slot carried before is refused from then on.
    pub(super) fn advance(&mut self) {
        self.once.number += 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Also one that was given up: if it should arrive after the next, it is refused.
        let next = RequestId { slot: self.once.slot.clone(), number: self.once.number + 1 };
        self.slots.state().free.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_carries_one_request_at_a_time_and_counts_them() {
        let slots = Slots::new(Arc::new(crate::world::SystemWorld::new()));
        let first = slots.take();
        let beside = slots.take();
        assert_ne!(first.once().slot, beside.once().slot);
        let slot = first.once().slot.clone();
        drop(first);
        assert_eq!(slots.take().once(), &RequestId { slot, number: 2 });
        assert_eq!(beside.once().number, 1);
    }
}
