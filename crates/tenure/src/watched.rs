//! A value whose changes can be waited for.

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// A value whose changes can be waited for. Unlike `tokio::sync::watch` it wakes those that wait in
/// the order in which they began to, so that a run under a virtual world can be repeated.
#[derive(Debug, Default)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Watched<T> {
    pub(crate) fn new(value: T) -> Watched<T> {
        Watched { value: Mutex::new(value), changed: Notify::new() }
    }

    fn value(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }

    pub(crate) fn get(&self) -> T {
        *self.value()
    }

    /// Changes the value, and wakes all that wait.
    pub(crate) fn update(&self, change: impl FnOnce(T) -> T) {
        let mut value = self.value();
        *value = change(*value);
        drop(value);
        self.changed.notify_waiters();
    }

    /// Returns when the value is as wanted.
    pub(crate) async fn wait_for(&self, is_wanted: impl Fn(T) -> bool) {
        loop {
            // Made before the look, so that no change in between is missed.
            let changed = self.changed.notified();
            if is_wanted(self.get()) {
                return;
            }
            changed.await;
        }
    }
}
