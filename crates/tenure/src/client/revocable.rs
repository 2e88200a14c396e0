//! Requests that can be called off while their answer is on its way.
//!
//! A request that was sent may still be carried out after its caller has gone away. So calling off
//! has two sides: what the request did is undone, and it is refused if it comes later. Through a
//! server both are requests of one slot, which takes them only in order. Here, the request asks
//! whether it was called off in the same step in which it changes something.

use super::backend::Backend;
#[cfg(feature = "http")]
use crate::remote::Slot;
use crate::store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::act::Act;

/// One line of requests, each of which follows the answer to the one before.
pub(super) struct Revocable {
    called_off: Arc<AtomicBool>,
    #[cfg(feature = "http")]
    slot: Option<Slot>,
    /// Whether a request was sent and its answer did not come.
    is_open: bool,
}

impl Revocable {
    pub(super) fn new(backend: &Backend) -> Revocable {
        #[cfg(not(feature = "http"))]
        let _ = backend;
        Revocable {
            called_off: Arc::default(),
            #[cfg(feature = "http")]
            slot: match backend {
                Backend::Local(_) => None,
                Backend::Remote(remote) => Some(remote.slot()),
            },
            is_open: false,
        }
    }

    /// Whether something may have been done of which the caller does not know.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Decides an act. If this future is dropped, or if it is not known what came of it, the line
    /// stays open.
    pub(super) async fn perform<A: Act>(
        &mut self,
        backend: &Backend,
        act: &A,
    ) -> Result<A::Answer, StoreError> {
        self.is_open = true;
        let answer = match backend {
            Backend::Local(local) => local.perform_unless(&self.called_off, act).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => {
                let slot = self.slot.get_or_insert_with(|| remote.slot());
                remote.perform_in(slot, act).await
            }
        };
        self.is_open = matches!(answer, Err(StoreError::Unknown { .. }));
        answer
    }

    /// Sees to it that the request under way does nothing more, wherever it is decided here.
    pub(super) fn call_off(&self) {
        self.called_off.store(true, Ordering::SeqCst);
    }

    /// Undoes what the request did.
    pub(super) async fn undo<A: Act>(
        mut self,
        backend: &Backend,
        act: &A,
    ) -> Result<(), StoreError> {
        self.called_off = Arc::default();
        self.perform(backend, act).await.map(drop)
    }
}
