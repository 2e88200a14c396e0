//! Events in order: up to where a follower has seen all.
//!
//! Changes draw their numbers from a sequence and commit in another order. A follower that took the
//! newest event that it sees for the end would miss one that has a lower number and commits later.
//! So each change first announces the last number that was drawn, by a shared advisory lock that
//! ends with its transaction, and then draws its own, which is higher. A follower reads the last
//! number, then what is announced, and trusts all events up to the lower of both: nothing below is
//! on its way. A change with several events draws several numbers; its events are shown together. That
//! needs one round trip and does not depend on other transactions of the database.

use super::error::PgError;
use super::look::Look;
use super::moment::{MOMENT, Moment};
use super::pick::{Picked, Way};
use super::read::Gathered;
use super::row::Row;
use super::session::{Ask, Value};
use super::transact::{all, begun};
use super::{Inner, tasks};
use crate::store::format::columns as format;
use crate::store::{Answer, EventSearch, EventsAfter, NewestEvents, Prefer, Query, RecordSearch};
use tenure_core::{
    Event, EventFilter, EventKind, NewEvent, RecordSnapshot, Revision, Token, WallTime,
};

const LAST: &str = "SELECT last_value FROM @numbers";

const ANNOUNCED: &str = "SELECT objid::bigint FROM pg_locks
 WHERE locktype = 'advisory' AND classid = $ANNOUNCEMENTS::oid AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The newest events, among which the end of what can be trusted is found: more than there are
/// changes on their way at once.
const HEADS: &str = "SELECT id, until FROM @events ORDER BY id DESC LIMIT 64";

/// Begins a look at one moment, which may be at very much.
const BEGIN_LOOK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = '60s'";

/// Up to which number no event is on its way.
fn safe(last: &[Row], announced: &[Row]) -> i64 {
    let last: i64 = last.first().map_or(0, |row| row.get(0));
    announced.iter().map(|row| whole(row.get(0), last)).fold(last, i64::min)
}

/// An announced number, of which only the lower 31 bits are known. It is not far from the last
/// number; it may be higher, because the last number was read before.
fn whole(low: i64, last: i64) -> i64 {
    let behind = (last - low) & 0x7fff_ffff;
    match behind < 1 << 30 {
        true => last - behind,
        false => last + (1 << 31) - behind,
    }
}

/// The lowest event that cannot be trusted yet: all of its change must be below the safe point, so
/// that a follower sees changes whole.
fn first_hidden(rows: &[Row], safe: i64) -> i64 {
    let hidden = rows.iter().filter(|row| row.get::<_, i64>("until") > safe);
    hidden.map(|row| row.get::<_, i64>("id")).min().unwrap_or(i64::MAX)
}

/// The newest event up to which a follower misses none, and whether there are newer ones.
fn revision(safe: i64, heads: &[Row]) -> (Revision, bool) {
    let hidden = first_hidden(heads, safe);
    let ids = || heads.iter().map(|row| row.get::<_, i64>("id"));
    let newest = ids().filter(|id| *id < hidden).max();
    let none = if heads.is_empty() { 0 } else { safe.min(hidden - 1) };
    (Revision(newest.unwrap_or(none) as u64), hidden != i64::MAX)
}

/// The revision now, and whether newer events are there that cannot be trusted yet.
pub(super) async fn newest(inner: &Inner) -> Result<(Revision, bool), PgError> {
    let session = inner.pool.get().await?;
    let asks = [
        Ask::Query(LAST, vec![]),
        Ask::Query(ANNOUNCED, vec![]),
        Ask::Query(HEADS, vec![]),
        Ask::Query(MOMENT, vec![]),
    ];
    let rows = all(session.flight(&asks).await)?;
    Moment::read(inner, &rows[3])?;
    session.prepare().await;
    Ok(revision(safe(&rows[0], &rows[1]), &rows[2]))
}

/// Answers a query, in one round trip.
pub(super) async fn query(inner: &Inner, query: &Query) -> Result<Answer, PgError> {
    let session = inner.pool.get().await?;
    let look = match query {
        Query::Snapshot(scope) => Some(Look::new(scope, Way::Look)),
        _ => None,
    };
    let mut asks = vec![
        Ask::Query(LAST, vec![]),
        Ask::Query(ANNOUNCED, vec![]),
        Ask::Begin(BEGIN_LOOK),
        Ask::Query(MOMENT, vec![]),
    ];
    let pick = look.as_ref().and_then(Look::pick);
    let has_pick = pick.is_some();
    asks.extend(pick);
    let reads = asks.len();
    match (query, &look) {
        (_, Some(look)) => {
            asks.extend(look.asks());
            asks.push(Ask::Query(HEADS, vec![]));
        }
        (Query::Events(EventsAfter { after, limit }), _) => asks.push(Ask::Query(
            "SELECT id, at_ms, kind, resource, label, token, detail, until, actor
             FROM @events WHERE id > $1 ORDER BY id LIMIT $2",
            vec![
                Value::Integer(i64::try_from(after.0).unwrap_or(i64::MAX)),
                Value::Integer(i64::from(*limit)),
            ],
        )),
        (Query::NewestEvents(NewestEvents { limit }), _) => asks.push(Ask::Query(
            "SELECT id, at_ms, kind, resource, label, token, detail, until, actor
             FROM @events ORDER BY id DESC LIMIT $1",
            // Some of the newest may not be trusted yet.
            vec![Value::Integer(i64::from(*limit) + 64)],
        )),
        (Query::SearchEvents(search), _) => asks.push(sought(search)),
        (Query::Records(search), _) => asks.push(records(search)),
        (Query::Tasks(filter), _) => asks.push(tasks::list(filter)),
        (Query::TaskCounts, _) | (Query::Snapshot(_), None) => asks.push(tasks::tallies()),
        (Query::SurplusTasks(asked), _) => asks.extend(tasks::ended(asked)),
    }
    asks.push(Ask::Run("COMMIT"));
    let (session, rows) = begun(session, &asks).await?;
    session.set_in_transaction(false);
    session.prepare().await;
    drop(session);
    let moment = Moment::read(inner, &rows[3])?;
    let safe = safe(&rows[0], &rows[1]);
    Ok(match query {
        Query::Snapshot(_) => {
            let mut gathered = Gathered::new(moment.at);
            if has_pick {
                Picked::gather(&rows[4], false, &mut gathered)?;
            }
            let heads = rows.len() - 2;
            if let Some(look) = &look {
                look.gather(&rows[reads..heads], &mut gathered)?;
            }
            let (mut snapshot, _) = gathered.finish();
            snapshot.next = moment.number;
            snapshot.revision = revision(safe, &rows[heads]).0;
            Answer::Snapshot(Box::new(snapshot))
        }
        Query::Events(_) => Answer::Events(trusted(&rows[reads], safe)?),
        Query::NewestEvents(NewestEvents { limit }) => {
            let mut events = trusted(&rows[reads], safe)?;
            events.truncate(*limit as usize);
            events.reverse();
            Answer::Events(events)
        }
        Query::SearchEvents(search) => {
            let mut events = trusted(&rows[reads], safe)?;
            events.truncate(search.limit as usize);
            if search.prefer == Prefer::Newest {
                events.reverse();
            }
            Answer::Events(events)
        }
        Query::Records(_) => {
            let shown = rows[reads].iter().map(|row| RecordSnapshot {
                key: row.get(0),
                text: row.get(1),
                written_at: WallTime(row.get(2)),
            });
            Answer::Records(shown.collect())
        }
        Query::Tasks(_) => {
            let tasks: Result<_, _> = rows[reads].iter().map(tasks::read_task).collect();
            Answer::Tasks(tasks?)
        }
        Query::TaskCounts => Answer::TaskCounts(tasks::read_tallies(&rows[reads])?),
        Query::SurplusTasks(asked) => {
            let now = WallTime(moment.at.wall_ms);
            let surplus = tasks::read_surplus(asked, &rows[reads], &rows[reads + 1], now)?;
            Answer::SurplusTasks(surplus)
        }
    })
}

/// Asks for events that a filter admits. No index helps: each would cost a write for every event, and
/// the history is bounded.
fn sought(search: &EventSearch) -> Ask {
    macro_rules! events {
        ($order:literal) => {
            concat!(
                "SELECT id, at_ms, kind, resource, label, token, detail, until, actor FROM @events
                 WHERE id > $1 AND id < $2 AND ($3::text IS NULL OR resource = $3)
                  AND (cardinality($4::text[]) = 0 OR kind = ANY ($4))
                  AND ($5 IS NULL OR label = $5
                    OR (kind = 'broken' AND detail::json->>'by' = $5))
                  AND ($6 IS NULL OR actor = $6) AND at_ms >= $7 AND at_ms < $8
                 ORDER BY id ",
                $order,
                " LIMIT $9"
            )
        };
    }
    let EventFilter { resource, kinds, label, actor, since, until } = &search.filter;
    let sql = match search.prefer {
        Prefer::Oldest => events!("ASC"),
        Prefer::Newest => events!("DESC"),
    };
    let id = |revision: Revision| i64::try_from(revision.0).unwrap_or(i64::MAX);
    let values = vec![
        Value::Integer(id(search.after)),
        Value::Integer(search.before.map_or(i64::MAX, id)),
        Value::OptionalText(resource.as_ref().map(|resource| resource.key())),
        Value::Texts(kinds.clone()),
        Value::OptionalText(label.clone()),
        Value::OptionalText(actor.clone()),
        Value::Integer(since.map_or(i64::MIN, |since| since.0)),
        Value::Integer(until.map_or(i64::MAX, |until| until.0)),
        // Some of the newest may not be trusted yet.
        Value::Integer(i64::from(search.limit) + 64),
    ];
    Ask::Query(sql, values)
}

fn records(search: &RecordSearch) -> Ask {
    let (first, last) = search.bounds();
    Ask::Query(
        "SELECT key, text, written_at_ms FROM @records
         WHERE kind = $1 AND key >= $2 AND key <= $3 AND (deadline_ms IS NULL
            OR deadline_ms > floor(extract(epoch FROM clock_timestamp()) * 1000))
         ORDER BY key LIMIT $4",
        vec![
            Value::Text(search.range.kind.word().to_owned()),
            Value::Text(first),
            Value::Text(last),
            Value::Integer(i64::from(search.limit)),
        ],
    )
}

fn trusted(rows: &[Row], safe: i64) -> Result<Vec<Event>, PgError> {
    let hidden = first_hidden(rows, safe);
    rows.iter().filter(|row| row.get::<_, i64>("id") < hidden).map(read_event).collect()
}

fn read_event(row: &Row) -> Result<Event, PgError> {
    let resource = row.get::<_, Option<&str>>(3).map(format::resource_from_key).transpose()?;
    let token = row.get::<_, Option<i64>>(5).map(|token| Token(token as u64));
    let kind = read_kind(row.get(2), row.get(6))?;
    let event = NewEvent::new(resource, row.get::<_, &str>(4), token, kind).through(row.get(8));
    Ok(Event::new(Revision(row.get::<_, i64>(0) as u64), WallTime(row.get(1)), event))
}

fn read_kind(word: &str, detail: Option<&str>) -> Result<EventKind, PgError> {
    Ok(match detail {
        Some(json) => format::event_kind_from_json(json)?,
        None => format::event_kind_from_json(&format!("{{\"kind\":{word:?}}}"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announced_number_is_near_the_last() {
        let low = |number: i64| number & 0x7fff_ffff;
        for last in [2, 1000, (1 << 31) - 1, 1 << 31, (1 << 31) + 5, (1 << 53) - 70] {
            for announced in [last - 1, last, last + 1, last + 60] {
                assert_eq!(whole(low(announced), last), announced, "{announced} near {last}");
            }
        }
    }
}
