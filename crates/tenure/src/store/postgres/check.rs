//! What `tenure doctor` learns of the database, and removing what is old.

use super::Inner;
use super::error::PgError;
use super::limits::BEGIN_MAINTENANCE;
use super::listen::Hearing;
use super::moment::{MOMENT, Moment};
use super::pool::Pooled;
use super::row::Row;
use super::schema::{self, Lost, VERSION};
use super::session::{Ask, Value};
use super::transact::{all, begun, roll_back};
use crate::store::store_time::from_ms;
use crate::store::{ANSWERS_KEPT, Finding, Trim};
use crate::world::{Clock, SystemClock};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::record::RECORDS_MAX;
use tenure_core::{RecordKind, WallTime};

/// The oldest major version that is meant to work.
const SERVER_MIN: i64 = 14;

fn finding(subject: &str, ok: bool, message: String) -> Finding {
    Finding { subject: subject.to_owned(), ok, message }
}

/// Looks at the server, the connection and the tables.
pub(super) async fn check(inner: &Arc<Inner>) -> Result<Vec<Finding>, PgError> {
    let session = match inner.pool.get().await {
        Err(error) if error.is_lock_timeout() => return blocked(inner).await,
        session => session?,
    };
    let mut times = Vec::new();
    let mut skew = Duration::MAX;
    let mut withheld = Duration::ZERO;
    for _ in 0..5 {
        let before = SystemClock.wall();
        let begun = Instant::now();
        let rows = all(session.flight(&[Ask::Query(MOMENT, vec![])]).await)?;
        let took = begun.elapsed();
        let moment = Moment::read(inner, &rows[0])?;
        let middle = from_ms(before.0) + took / 2;
        let server = from_ms(moment.at.now_ms);
        skew = skew.min(server.abs_diff(middle));
        withheld = from_ms(moment.withhold_until_ms.saturating_sub(moment.at.now_ms));
        times.push(took);
    }
    times.sort();
    let server = session.query(SERVER, &[]).await?;
    let server = server.first().ok_or(PgError::Replaced)?;
    let number: i64 = server.get(0);
    let version: &str = server.get(1);
    let mut findings = vec![finding(
        "server",
        number >= SERVER_MIN * 10_000,
        match number >= SERVER_MIN * 10_000 {
            true => format!("PostgreSQL {version}, tables of version {VERSION}"),
            false => format!("PostgreSQL {version}; use {SERVER_MIN} or later"),
        },
    )];
    findings.push(finding("latency", true, format!("{:.1?} for a round trip", times[2])));
    let far = skew > Duration::from_secs(1);
    findings.push(finding(
        "clock",
        true,
        match far {
            true => format!(
                "this machine's clock and the server's differ by {skew:.0?}; the server's counts"
            ),
            false => "this machine's clock and the server's agree".to_owned(),
        },
    ));
    let off: Vec<&str> = ["fsync", "full_page_writes"]
        .into_iter()
        .zip([server.get::<_, &str>(2), server.get(3)])
        .filter(|(_, value)| *value == "off")
        .map(|(name, _)| name)
        .collect();
    findings.push(match off.is_empty() {
        true => finding("durability", true, "what is committed is on disk".to_owned()),
        false => {
            let message = format!("{} is off: a crash may lose what was reported", off.join(", "));
            finding("durability", false, message)
        }
    });
    let (used, most): (i64, i64) = (server.get(4), server.get(5));
    findings.push(finding(
        "connections",
        used * 10 < most * 9,
        format!("{used} of {most} connections of the server are in use"),
    ));
    findings.push(privileges(server.get(6)));
    findings.push(snapshots(server.get(7)));
    let schema = [Value::Text(inner.names.schema.clone())];
    let blockers = locks(&session.query(BLOCKERS, &schema).await?);
    if blockers.ok {
        let cover = session.query(NUMBERS_COVER, &[]).await?;
        findings.push(grants(withheld, cover.first().is_none_or(|row| row.get(0))));
    }
    findings.push(blockers);
    drop(session);
    inner.listener.start(inner).await;
    findings.push(match inner.listener.hearing() {
        Hearing::On => finding("messages", true, "waiters are woken by messages".to_owned()),
        _ => finding(
            "messages",
            true,
            "no messages arrive, as behind pgbouncer in transaction mode: waiters look every \
             200ms, which makes hand-offs slower"
                .to_owned(),
        ),
    });
    Ok(findings)
}

const SERVER: &str = "SELECT current_setting('server_version_num')::bigint,
    split_part(current_setting('server_version'), ' ', 1),
    current_setting('fsync'), current_setting('full_page_writes'),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::bigint,
    (SELECT bool_and(has_table_privilege(t, p))
     FROM unnest(ARRAY['@holds', '@waits', '@tasks', '@tally', '@events', '@answers', '@records']) AS t,
        unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p)
        AND has_sequence_privilege('@numbers', 'USAGE'),
    (SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::bigint FROM pg_stat_activity
     WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL)";

/// Whether numbers are beyond all that is stored. It reads the tables, so it is asked only where they are not locked.
const NUMBERS_COVER: &str = "SELECT last_value >= greatest((SELECT max(id) FROM @events),
    (SELECT max(token) FROM @holds), 0) FROM @numbers";

/// Whether locks and tasks can be granted, with tokens that were never given out.
fn grants(withheld: Duration, numbers_cover_records: bool) -> Finding {
    if !numbers_cover_records {
        let message = "numbers are behind what is stored, as after a restore of some of the tables: run \
                       `tenure store moved`";
        return finding("grants", false, message.to_owned());
    }
    match withheld.as_millis().div_ceil(1000) {
        0 => finding("grants", true, "locks and tasks are granted".to_owned()),
        seconds => finding(
            "grants",
            false,
            format!(
                "grants withheld for {seconds} s: another server took \
            over, or an older state was put back, and leases that it may not know end by then"
            ),
        ),
    }
}

/// Notes that changes which were reported may be missing; returns for how long nothing is granted.
pub(super) async fn moved(inner: &Inner) -> Result<Duration, PgError> {
    let session = inner.pool.get().await?;
    schema::note_lost_changes(&session, &Lost::AsTold).await?;
    let rows = session.query(MOMENT, &[]).await?;
    let moment = Moment::read(inner, &rows)?;
    Ok(from_ms(moment.withhold_until_ms.saturating_sub(moment.at.now_ms)))
}

fn privileges(enough: bool) -> Finding {
    match enough {
        true => finding("privileges", true, "the user may change all tables".to_owned()),
        false => finding("privileges", false, "the user may not change all tables".to_owned()),
    }
}

/// Old snapshots keep dead rows: tables that change all the time then grow and become slow.
fn snapshots(oldest_s: i64) -> Finding {
    let message = match oldest_s {
        0..60 => "no old transactions keep dead rows".to_owned(),
        seconds => format!(
            "a transaction is open for {seconds}s: dead rows stay while it lasts; look for it in \
             pg_stat_activity"
        ),
    };
    finding("snapshots", oldest_s < 600, message)
}

/// What can be found out where the tables are locked.
async fn blocked(inner: &Inner) -> Result<Vec<Finding>, PgError> {
    let session = inner.pool.connector().session_without_look().await?;
    let schema = [Value::Text(inner.names.schema.clone())];
    Ok(vec![locks(&session.query(BLOCKERS, &schema).await?)])
}

/// Sessions that keep others waiting: with a strong lock on one of the tables for some seconds, or in the way of
/// a session of this program.
const BLOCKERS: &str = "WITH strong AS (
    SELECT l.pid FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE l.granted AND l.locktype = 'relation' AND n.nspname = $1
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.mode IN
        ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')),
 blocking AS (
    SELECT unnest(pg_blocking_pids(pid)) AS pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = current_setting('application_name')
        AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '2 seconds')
 SELECT pid::bigint, coalesce(usename::text, ''), coalesce(application_name, ''),
    coalesce(state, 'state unknown'),
    coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::bigint
 FROM pg_stat_activity WHERE pid IN (SELECT pid FROM strong UNION SELECT pid FROM blocking)
    AND pid <> pg_backend_pid()
    AND coalesce(xact_start < clock_timestamp() - interval '2 seconds', true)
 ORDER BY xact_start LIMIT 5";

fn locks(rows: &[Row]) -> Finding {
    let one = |row: &Row| {
        let (pid, user, program): (i64, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let (state, seconds): (&str, i64) = (row.get(3), row.get(4));
        format!("session {pid} ({user}, {program:?}, {state}, for {seconds}s)")
    };
    match rows {
        [] => finding("locks", true, "no session keeps the tables from others".to_owned()),
        rows => {
            let sessions: Vec<String> = rows.iter().map(one).collect();
            let message = format!(
                "{} keeps locks that changes need; end its transaction, or the session with \
                 pg_terminate_backend",
                sessions.join(", ")
            );
            finding("locks", false, message)
        }
    }
}

/// Folds counts, and removes old answers and small records. Of several processes one does it.
pub(super) async fn tidy(inner: &Arc<Inner>) -> Result<usize, PgError> {
    let Some((session, moment, _)) = begin_alone(inner, &[]).await? else { return Ok(0) };
    let kept_ms = ANSWERS_KEPT.as_millis() as i64;
    let asks = [
        Ask::Query(
            "WITH gone AS (DELETE FROM @tally RETURNING section, status, delta)
             INSERT INTO @tally SELECT section, status, sum(delta) FROM gone
             GROUP BY 1, 2 HAVING sum(delta) <> 0",
            vec![],
        ),
        Ask::Query(
            "DELETE FROM @answers WHERE at_ms < $1",
            vec![Value::Integer(moment.at.now_ms.saturating_sub(kept_ms))],
        ),
        Ask::Query(
            "DELETE FROM @records WHERE deadline_ms <= $1",
            vec![Value::Integer(moment.at.now_ms)],
        ),
        Ask::Query(
            "DELETE FROM @records AS r USING (SELECT k.kind, (SELECT number FROM @records AS o
                WHERE o.kind = k.kind ORDER BY number DESC OFFSET $1 LIMIT 1) AS number
                FROM unnest($2::text[]) AS k(kind)) AS old
             WHERE r.kind = old.kind AND r.number <= old.number",
            vec![
                Value::Integer(RECORDS_MAX as i64),
                Value::Texts(RecordKind::ALL.map(|kind| kind.word().to_owned()).to_vec()),
            ],
        ),
        Ask::Run("COMMIT"),
    ];
    end(session, &asks).await.map(|()| 0)
}

/// Counts events, up to $2. There are no more of them than numbers from the first to the last, so that they
/// are counted only where there may be more than $1.
const COUNT_EVENTS: &str = "SELECT CASE WHEN numbers <= $1 THEN numbers
    ELSE (SELECT count(*) FROM (SELECT 1 FROM @events LIMIT $2) AS counted) END
 FROM (SELECT coalesce((SELECT max(id) FROM @events) - (SELECT min(id) FROM @events) + 1, 0)
    AS numbers) AS span";

/// Removes the oldest events beyond what is kept; returns how many. Of several processes one does it.
pub(super) async fn trim(inner: &Arc<Inner>, trim: Trim) -> Result<u64, PgError> {
    // Where age counts, the number must be right, but may be just more than can be removed now if only age
    // counts.
    let (uncounted, counted) = match (trim.keep.newest, trim.keep.age) {
        (None, None) => return Ok(0),
        (None, Some(_)) => (0, u64::from(trim.limit) + 1),
        (Some(newest), None) => (newest, u64::MAX),
        (Some(_), Some(_)) => (0, u64::MAX),
    };
    let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let count = [Ask::Query(COUNT_EVENTS, vec![integer(uncounted), integer(counted)])];
    let Some((session, moment, rows)) = begin_alone(inner, &count).await? else { return Ok(0) };
    let total = rows[0].first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs());
    let most = trim.keep.candidates(0, total, trim.limit);
    if most == 0 {
        return end(session, &[Ask::Run("COMMIT")]).await.map(|()| 0);
    }
    let list = Ask::Query(
        "SELECT id, at_ms FROM @events ORDER BY id LIMIT $1",
        vec![Value::Integer(most.into())],
    );
    let (session, rows) = begun(session, &[list]).await?;
    let times: Vec<WallTime> = rows[0].iter().map(|row| WallTime(row.get(1))).collect();
    let surplus = trim.keep.surplus_events(&times, total, WallTime(moment.at.wall_ms));
    let last = surplus.checked_sub(1).map(|index| rows[0][index].get::<_, i64>(0));
    let mut asks = Vec::new();
    if let Some(last) = last.filter(|_| !trim.dry_run) {
        let delete = "DELETE FROM @events WHERE id <= $1";
        asks.push(Ask::Query(delete, vec![Value::Integer(last)]));
    }
    asks.push(Ask::Run("COMMIT"));
    end(session, &asks).await.map(|()| surplus as u64)
}

/// Begins a transaction of which there is one at a time; none where another process is at it.
async fn begin_alone(
    inner: &Arc<Inner>,
    reads: &[Ask],
) -> Result<Option<(Pooled, Moment, Vec<Vec<Row>>)>, PgError> {
    let session = inner.pool.get().await?;
    let mut asks = vec![
        Ask::Begin(BEGIN_MAINTENANCE),
        Ask::Query(MOMENT, vec![]),
        Ask::Query("SELECT pg_try_advisory_xact_lock($SPACE, 3)", vec![]),
    ];
    asks.extend(reads.iter().cloned());
    let (session, mut rows) = begun(session, &asks).await?;
    let is_alone = rows[2].first().is_some_and(|row| row.get(0));
    match Moment::read(inner, &rows[1]) {
        Ok(moment) if is_alone => Ok(Some((session, moment, rows.split_off(3)))),
        looked => {
            roll_back(session);
            looked.map(|_| None)
        }
    }
}

/// Ends such a transaction with these statements, the last of which commits.
async fn end(session: Pooled, asks: &[Ask]) -> Result<(), PgError> {
    match all(session.flight(asks).await) {
        Ok(_) => {
            session.set_in_transaction(false);
            Ok(())
        }
        Err(error) => {
            roll_back(session);
            Err(error)
        }
    }
}
