//! The steps of a change at which a process can die, so that tests can make it die there.

/// Every step at which something has just been done to a file. A test kills a process at each.
#[doc(hidden)]
pub const STEPS: &[&str] = &[
    "create-drafted",
    "place-linked",
    "create-linked",
    "boot-appended",
    "files-taken",
    "append-before",
    "append-half",
    "append-done",
    "held-drafted",
    "held-published",
    "held-removed",
    "published",
    "sync-before",
    "sync-done",
    "archive-half",
    "archive-done",
    "compact-drafted",
    "compact-replaced",
    "rotate-tasks-drafted",
    "rotate-tasks-placed",
    "rotate-drafted",
    "rotate-placed",
    "rotate-sealed",
    "rotate-trimmed",
];

/// The same in folders that are shared with other programs.
#[doc(hidden)]
pub const DIALECT_STEPS: &[&str] = &[
    "lock-drafted",
    "tasks-drafted",
    "tasks-replaced",
    "queue-drafted",
    "queue-replaced",
    "log-appended",
];

/// Marks a step. In a debug build the process dies here, as by `kill -9`, if `TENURE_FAULT` names
/// the step; `NAME:3` means the third time.
#[inline]
pub(crate) fn failpoint(name: &'static str) {
    #[cfg(debug_assertions)]
    debug::failpoint(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// How long a generation may become. In a debug build `TENURE_ROTATE_BYTES` makes it shorter, so
/// that tests see many.
#[inline]
pub(crate) fn rotate_bytes(usual: u64) -> u64 {
    #[cfg(debug_assertions)]
    return debug::rotate_bytes().unwrap_or(usual);
    #[cfg(not(debug_assertions))]
    usual
}

#[cfg(debug_assertions)]
mod debug {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Fault {
        name: String,
        left: AtomicU32,
    }

    #[expect(clippy::disallowed_methods, reason = "a switch for tests, absent from releases")]
    fn wanted() -> Option<Fault> {
        let text = std::env::var("TENURE_FAULT").ok()?;
        let (name, times) = text.split_once(':').unwrap_or((&text, "1"));
        Some(Fault { name: name.to_owned(), left: AtomicU32::new(times.parse().unwrap_or(1)) })
    }

    #[expect(clippy::disallowed_methods, reason = "a switch for tests, absent from releases")]
    pub(super) fn rotate_bytes() -> Option<u64> {
        static BYTES: OnceLock<Option<u64>> = OnceLock::new();
        let wanted = || std::env::var("TENURE_ROTATE_BYTES").ok()?.parse().ok();
        *BYTES.get_or_init(wanted)
    }

    pub(super) fn failpoint(name: &'static str) {
        static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
        debug_assert!(
            [super::STEPS, super::DIALECT_STEPS].concat().contains(&name),
            "{name} is not in the list of steps"
        );
        let Some(fault) = FAULT.get_or_init(wanted) else { return };
        if fault.name == name && fault.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            crate::platform::die();
        }
    }
}
