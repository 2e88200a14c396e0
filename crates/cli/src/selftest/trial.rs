//! The list of things that a selftest tests.

use serde::{Deserialize, Serialize};

/// One thing that all processes test at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trial {
    /// A lock of the store.
    Store,
    /// The kernel's lock on a file (`flock`).
    KernelLock,
    /// A lock file that is linked into place, which only one process can do.
    HardLink,
    /// A file that is renamed away, which only one process can do.
    Rename,
    /// A file that is replaced by a rename: it always exists and is complete.
    Replace,
    /// Two files that swap names in one step.
    Exchange,
}

impl Trial {
    /// All trials, basic ones first.
    pub(crate) const EACH: [Trial; 6] = [
        Trial::KernelLock,
        Trial::HardLink,
        Trial::Rename,
        Trial::Replace,
        Trial::Exchange,
        Trial::Store,
    ];

    /// Its share of the time, out of [`Trial::SHARES`]: half for the store, the rest for what the
    /// store relies on.
    pub(super) fn share(self) -> u32 {
        if self == Trial::Store { 5 } else { 1 }
    }

    /// The sum of all shares.
    pub(super) const SHARES: u32 = 10;

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Trial::Store => "store",
            Trial::KernelLock => "kernel lock",
            Trial::HardLink => "hard link",
            Trial::Rename => "rename",
            Trial::Replace => "replace",
            Trial::Exchange => "exchange",
        }
    }

    /// Whether tenure's own stores work without it: they replace only files that are for people to
    /// read. Without hard links the store itself reports what it cannot do.
    pub(super) fn may_be_flawed(self) -> bool {
        match self {
            Trial::HardLink | Trial::Exchange | Trial::Replace => true,
            Trial::KernelLock | Trial::Store | Trial::Rename => false,
        }
    }

    /// Whether a holder may be killed: only where the kernel or the store frees its lock.
    pub(super) fn survives_kills(self) -> bool {
        matches!(self, Trial::Store | Trial::KernelLock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_all_of_the_time() {
        assert_eq!(Trial::EACH.into_iter().map(Trial::share).sum::<u32>(), Trial::SHARES);
    }
}
