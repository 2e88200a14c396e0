//! Threads that wait for one call.
//!
//! An async runtime shares its threads among many calls, so a call must not keep one busy with the disk.
//! [`blocking`](crate::blocking) calls have a thread of their own that has nothing else to do.

use std::cell::Cell;

thread_local! {
    static IS_BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread does nothing but wait for one call.
#[cfg(any(test, feature = "sqlite"))]
pub(crate) fn is_blocked() -> bool {
    IS_BLOCKED.get()
}

/// Runs a call for which the current thread waits.
pub(crate) fn block<T>(call: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            IS_BLOCKED.set(self.0);
        }
    }
    let _reset = Reset(IS_BLOCKED.replace(true));
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_blocked_until_its_call_ends() {
        assert!(!is_blocked());
        assert!(block(|| block(is_blocked) && is_blocked()));
        assert!(!is_blocked());
        let panicked = std::panic::catch_unwind(|| block(|| panic!("on purpose")));
        assert!(panicked.is_err() && !is_blocked());
    }
}
