//! When a change or a look happens, and its number.

use super::Inner;
use super::error::PgError;
use super::read;
use super::row::Row;
use crate::store::store_time::StoreTime;

/// Announces a change, see `follow`, and then draws its number, once its locks are taken; and what
/// every change must know. Columns are computed from left to right. When the server started is read from its memory;
/// another server, which took over, has started at another time.
pub(super) const NUMBER: &str = "SELECT pg_advisory_xact_lock_shared($ANNOUNCEMENTS,
        (last_value & 2147483647)::int)::text, nextval('@numbers'),
    floor(extract(epoch FROM t) * 1000)::bigint, ceil(extract(epoch FROM t) * 1000)::bigint,
    store_id, version, withhold_until_ms, longest_ms, started = pg_postmaster_start_time()
 FROM @numbers, @meta, clock_timestamp() AS t";

/// What a look that changes nothing must know.
pub(super) const MOMENT: &str = "SELECT '', last_value + 1,
    floor(extract(epoch FROM t) * 1000)::bigint, ceil(extract(epoch FROM t) * 1000)::bigint,
    store_id, version, withhold_until_ms, longest_ms, true
 FROM @meta, @numbers, clock_timestamp() AS t";

/// When a change or a look happens, by the server's clock, and its number.
pub(super) struct Moment {
    pub(super) number: u64,
    pub(super) at: StoreTime,
    /// Nothing is granted before, see `schema`.
    pub(super) withhold_until_ms: i64,
    /// The longest lease that may be granted, see `longest`.
    pub(super) longest_ms: i64,
}

impl Moment {
    pub(super) fn read(inner: &Inner, rows: &[Row]) -> Result<Moment, PgError> {
        let row = rows.first().ok_or(PgError::Replaced)?;
        Moment::of(
            inner,
            row.get(4),
            row.get(5),
            row.get(8),
            Moment {
                number: row.get::<_, i64>(1) as u64,
                at: Moment::time(row.get(2), row.get(3)),
                withhold_until_ms: row.get(6),
                longest_ms: row.get(7),
            },
        )
    }

    /// The same of a statement that answers with more than the moment, see `number_columns`.
    pub(super) fn read_first(inner: &Inner, rows: &[Row]) -> Result<Moment, PgError> {
        let is_moment = |row: &&Row| row.get::<_, i32>(0) == read::MOMENT_ROW;
        let row = rows.first().filter(is_moment).ok_or(PgError::Replaced)?;
        Moment::of(
            inner,
            row.get(2),
            row.get::<_, i64>(10) as i32,
            row.get(6),
            Moment {
                number: row.get::<_, i64>(3) as u64,
                at: Moment::time(row.get(11), row.get(12)),
                withhold_until_ms: row.get(13),
                longest_ms: row.get(14),
            },
        )
    }

    /// A moment of this store, if its tables are the right ones and on the server that was used last.
    fn of(
        inner: &Inner,
        store: &str,
        version: i32,
        same_start: bool,
        moment: Moment,
    ) -> Result<Moment, PgError> {
        if store != inner.pool.connector().store_id() {
            return Err(PgError::Replaced);
        }
        if version > super::schema::VERSION {
            return Err(PgError::Newer(version, super::schema::VERSION));
        }
        if !same_start {
            return Err(PgError::OtherStart);
        }
        Ok(moment)
    }

    fn time(now_ms: i64, begin_ms: i64) -> StoreTime {
        StoreTime { now_ms, begin_ms, wall_ms: now_ms }
    }
}
