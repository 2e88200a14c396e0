//! How long a lease may be, which a failover must know.
//!
//! A standby that takes over may lack the last grants. It grants nothing until all of them have ended, so it must know
//! how long the longest can be. That is written ahead of the grant, in a transaction of its own and in large steps:
//! a new length is rare, and standbys have it long before it matters. The grant that needs a new step waits until the
//! standbys that are connected have it, for some seconds at most.

use super::Inner;
use super::error::PgError;
use super::limits::STANDBYS;
use super::session::Value;
use crate::store::store_time::milliseconds_up;
use std::time::{Duration, Instant};
use tenure_core::{Change, Write};

/// The length that each store allows for from its beginning: more than leases that are renewed usually have.
pub(super) const FLOOR_MS: i64 = 60_000;

/// The further steps: ten minutes and an hour. Beyond, the steps are whole days.
const STEPS_MS: [i64; 2] = [600_000, 3_600_000];

const DAY_MS: i64 = 86_400_000;

/// How often it is asked whether standbys have the new length.
const PAUSE: Duration = Duration::from_millis(20);

/// The longest lease that this change grants or extends, in milliseconds.
pub(super) fn of(change: &Change) -> i64 {
    let ttl = |write: &Write| match write {
        Write::Hold(hold) => Some(hold.ttl),
        Write::Extend { ttl, .. } => Some(*ttl),
        _ => None,
    };
    change.writes.iter().filter_map(ttl).max().map_or(0, milliseconds_up)
}

/// The step that covers this length.
fn step(longest_ms: i64) -> i64 {
    let covering = [FLOOR_MS].into_iter().chain(STEPS_MS).find(|step| longest_ms <= *step);
    let days = || longest_ms.saturating_add(DAY_MS - 1) / DAY_MS;
    covering.unwrap_or_else(|| days().saturating_mul(DAY_MS))
}

/// Allows leases of this length, once a server that takes over would wait for their end.
pub(super) async fn raise(inner: &Inner, longest_ms: i64) -> Result<(), PgError> {
    let to = [Value::Integer(step(longest_ms))];
    let session = inner.pool.get().await?;
    session.query("UPDATE @meta SET withhold_ms = $1 WHERE withhold_ms < $1", &to).await?;
    let written = session.query("SELECT pg_current_wal_flush_lsn()::text", &[]).await?;
    drop(session);
    let written: String = written.first().ok_or(PgError::Replaced)?.get(0);
    wait_for_standbys(inner, written).await?;
    // Only now, so that others that need the step wait too.
    let session = inner.pool.get().await?;
    session.query("UPDATE @meta SET longest_ms = $1 WHERE longest_ms < $1", &to).await.map(drop)
}

/// Waits until the connected standbys have what the server had written by then. Without the rights of
/// `pg_monitor` their states are hidden, and nothing is waited for.
async fn wait_for_standbys(inner: &Inner, written: String) -> Result<(), PgError> {
    // A standby that just connected has not said yet what it has.
    const BEHIND: &str = "SELECT count(*) FROM pg_stat_replication
        WHERE state IN ('catchup', 'streaming') AND coalesce(flush_lsn < $1::pg_lsn, true)";
    let end = Instant::now() + STANDBYS;
    let written = [Value::Text(written)];
    loop {
        // What waits holds no connection, which others may need.
        let session = inner.pool.get().await?;
        let behind = session.query(BEHIND, &written).await?;
        drop(session);
        let all_have_it = behind.first().is_none_or(|row| row.get::<_, i64>(0) == 0);
        if all_have_it || Instant::now() > end {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_covered_by_a_step() {
        for (length, expected) in [
            (0, FLOOR_MS),
            (60_000, 60_000),
            (60_001, 600_000),
            (600_001, 3_600_000),
            (3_600_001, DAY_MS),
            (DAY_MS + 1, 2 * DAY_MS),
        ] {
            assert_eq!(step(length), expected, "{length}");
        }
        assert!(step(i64::MAX) > i64::MAX - DAY_MS);
    }
}
