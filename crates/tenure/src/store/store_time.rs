//! The moment at which a local store judges leases, in whole milliseconds.

use crate::world::Clock;
use std::time::Duration;

/// When an operation happens, by the store's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreTime {
    pub(crate) now_ms: i64,
    /// From when a lease is counted that starts now: rounded up, so that none ends too early.
    pub(crate) begin_ms: i64,
    pub(crate) wall_ms: i64,
}

impl StoreTime {
    pub(crate) fn of(clock: &dyn Clock) -> StoreTime {
        let now = clock.now();
        let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        StoreTime { now_ms, begin_ms: milliseconds_up(now), wall_ms: clock.wall().0 }
    }

    /// When a lease of this length ends that starts now.
    pub(crate) fn deadline_ms(self, ttl: Duration) -> i64 {
        self.begin_ms.saturating_add(milliseconds_up(ttl))
    }
}

/// Rounded up: a lease must not end before its holder expects it to.
pub(crate) fn milliseconds_up(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// So many milliseconds; none for what lies in the past.
pub(crate) fn from_ms(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
