//! How long each step may take. They are in one place because they depend on each other.

use std::time::Duration;

/// How long a read may take. A server in order needs milliseconds; one that was stopped answers never,
/// and another is asked then.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a write may take. A write that was on its way to a leader that died is not answered at all, so
/// this is how long work pauses then. One that takes longer is sent again, and made once.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The same for a large one: 1.5 MiB on a slow disk need a while.
pub(super) const LARGE_WRITE_TIMEOUT: Duration = Duration::from_secs(8);

/// From how many operations on a write is large.
pub(super) const LARGE: usize = 200;

/// How long a call about a lease may take that is not repeated.
pub(super) const LEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long calls are tried again where servers do not answer: the time of an election with some to
/// spare, of asking each of several servers of which one is silent, and of sending a large write again.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The longest pause between two tries.
pub(super) const PAUSE_MAX: Duration = Duration::from_millis(400);

/// How long a change waits for servers that are asked for their cluster: they are in one network.
pub(super) const COMPARED_WITHIN: Duration = Duration::from_millis(300);

/// How long those that did not answer are not asked again: a silent member must not delay each change.
pub(super) const COMPARED_AGAIN: Duration = Duration::from_secs(2);

/// The shortest time for one try of a renewal.
const RENEWAL_TRY_MIN: Duration = Duration::from_millis(250);

/// How long one try of a renewal may take: so short that another server is asked, over a new connection, while
/// the shortest of the leases can still be trusted.
pub(super) fn renewal_try(shortest_ttl: Duration) -> Duration {
    (shortest_ttl / 8).clamp(RENEWAL_TRY_MIN, READ_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_leaves_time_for_what_depends_on_it() {
        let twice = |time: Duration| time * 2;
        assert!(twice(READ_TIMEOUT) <= PATIENCE && twice(WRITE_TIMEOUT) <= PATIENCE);
        assert!(LARGE_WRITE_TIMEOUT + PAUSE_MAX < PATIENCE, "it is sent again");
        assert!(LEASE_TIMEOUT < PATIENCE);
        assert!(COMPARED_WITHIN * 3 < COMPARED_AGAIN);
        // A renewal is due after a third of a lease: two tries must fit into the rest, less the margin.
        for seconds in [2, 4, 10, 60, 3600] {
            let ttl = Duration::from_secs(seconds);
            assert!(renewal_try(ttl) * 2 <= ttl / 3, "{ttl:?}");
        }
    }
}
