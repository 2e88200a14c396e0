//! For how many connections there is room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for connections. When it is full, others wait at the door; and no other machine gets more
/// than half of it, so that one that means harm does not keep all others out.
pub(crate) struct Room {
    places: Arc<Semaphore>,
    each: usize,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A place that a connection has until this is dropped.
pub(crate) struct Seat {
    _place: OwnedSemaphorePermit,
    address: Option<IpAddr>,
    taken: Arc<Taken>,
}

impl Room {
    /// Room for so many.
    pub(crate) fn for_most(most: usize) -> Room {
        let each = most.div_ceil(2);
        Room { places: Arc::new(Semaphore::new(most)), each, taken: Arc::default() }
    }

    /// The next free place.
    pub(crate) async fn place(&self) -> OwnedSemaphorePermit {
        self.places.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Gives the place to a connection from another machine, or from this one, unless that machine
    /// has enough of them.
    pub(crate) fn seat(
        &self,
        place: OwnedSemaphorePermit,
        address: Option<IpAddr>,
    ) -> Option<Seat> {
        if let Some(address) = address {
            let mut taken = self.taken.lock();
            let count = taken.entry(address).or_default();
            if *count >= self.each {
                return None;
            }
            *count += 1;
        }
        Some(Seat { _place: place, address, taken: self.taken.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&address);
            }
        }
    }
}
