//! What is held and waited for: the statements, and what a rule is shown of their answers.

use super::error::PgError;
use super::row::Row;
use super::session::{Ask, Value};
use crate::store::format::columns as format;
use crate::store::path_prefixes::PathPrefixes;
use crate::store::store_time::{StoreTime, from_ms};
use std::collections::{BTreeMap, HashMap, HashSet};
use tenure_core::{
    GrantId, Hold, HoldSnapshot, Holder, Kind, Owner, Resource, Snapshot, Token, Waiter,
    WaiterSnapshot, WallTime, Want,
};

/// How much of a queue is shown at first, as in the other stores. The statement asks for one more.
const FRONT: usize = 8;

/// Where waiting requests are to be woken.
pub(super) type Addresses = HashMap<GrantId, String>;

/// Holds and places have rows of one shape, so that one statement can ask for both. The first column
/// says what a row is.
const HOLD: i32 = 0;
/// A place; at the front of its queue where only fronts are asked for.
const PLACE: i32 = 1;
/// A request's own place, or the one before it.
const OWN_PLACE: i32 = 2;
/// There is more to see than the statement reads.
pub(super) const MORE: i32 = 4;
/// When a change happens, and its number.
pub(super) const MOMENT_ROW: i32 = 9;

macro_rules! hold_columns {
    ($of:literal) => {
        concat!(
            "SELECT 0, ",
            $of,
            "resource, ",
            $of,
            "grant_id, ",
            $of,
            "token, ",
            $of,
            "mode, ",
            $of,
            "label, ",
            $of,
            "chosen, ",
            $of,
            "agent, ",
            $of,
            "evidence, ",
            $of,
            "operation, ",
            $of,
            "ttl_ms, ",
            $of,
            "deadline_ms, ",
            $of,
            "since_ms, ",
            $of,
            "acquired_at_ms, ",
            $of,
            "renewed_at_ms, ",
            $of,
            "slot, NULL::text, NULL::text "
        )
    };
}

macro_rules! wait_columns {
    ($of:literal) => {
        wait_columns!($of, "1")
    };
    ($of:literal, $what:literal) => {
        concat!(
            "SELECT ",
            $what,
            ", ",
            $of,
            "resource, ",
            $of,
            "grant_id, ",
            $of,
            "ticket, ",
            $of,
            "wants, ",
            $of,
            "label, ",
            $of,
            "chosen, ",
            $of,
            "agent, ",
            $of,
            "evidence, ",
            $of,
            "operation, ",
            $of,
            "ttl_ms, ",
            $of,
            "deadline_ms, ",
            $of,
            "since_ms, ",
            $of,
            "waiting_since_at_ms, ",
            $of,
            "woken_ms, ",
            "NULL::bigint, ",
            $of,
            "mailbox, ",
            $of,
            "keeps "
        )
    };
}

/// What a change must know, see `NUMBER` in `transact`, as a row of the same shape. It announces the
/// change before it draws the number: columns are computed from left to right.
macro_rules! number_columns {
    () => {
        "SELECT 9, pg_advisory_xact_lock_shared($ANNOUNCEMENTS,
                (last_value & 2147483647)::int)::text, store_id, nextval('@numbers'), NULL::text,
            NULL::text, started = pg_postmaster_start_time(), NULL::boolean, NULL::text, NULL::text,
            version::bigint,
            floor(extract(epoch FROM t) * 1000)::bigint,
            ceil(extract(epoch FROM t) * 1000)::bigint, withhold_until_ms, longest_ms,
            NULL::bigint, NULL::text, NULL::text
         FROM @numbers, @meta, clock_timestamp() AS t"
    };
}

pub(super) use {hold_columns, number_columns, wait_columns};

macro_rules! fronts {
    () => {
        concat!(
            wait_columns!("w."),
            "FROM unnest($1::text[]) AS k CROSS JOIN LATERAL
                (SELECT * FROM @waits WHERE resource = k ORDER BY ticket LIMIT 9) AS w
             UNION ALL ",
            wait_columns!("w.", "2"),
            "FROM unnest($1::text[]) AS k CROSS JOIN LATERAL
                (SELECT * FROM @waits WHERE resource = k AND ticket <= $2
                 ORDER BY ticket DESC LIMIT 2) AS w"
        )
    };
}

/// The paths near some wanted ones, as values of statements.
fn near(paths: &[&Resource]) -> [Value; 3] {
    let PathPrefixes { at, below } = PathPrefixes::to(paths.iter().copied());
    let (from, to) = below.into_iter().map(|range| (range.start, range.end)).unzip();
    [Value::Texts(at.into_iter().collect()), Value::Texts(from), Value::Texts(to)]
}

fn split(resources: &[Resource]) -> (Vec<&Resource>, Vec<String>) {
    let different: HashSet<&Resource> = resources.iter().collect();
    let (paths, named): (Vec<&Resource>, Vec<&Resource>) =
        different.into_iter().partition(|resource| resource.kind() == Kind::Path);
    (paths, named.iter().map(|resource| resource.key()).collect())
}

/// What is held and waited for on these resources, with the fronts of queues or all of them.
pub(super) fn at(resources: &[Resource], ticket: Option<u64>, whole: bool) -> Vec<Ask> {
    let (paths, named) = split(resources);
    let named = Value::Texts(named);
    let mut asks = vec![Ask::Query(
        concat!(hold_columns!(""), "FROM @holds WHERE resource = ANY($1)"),
        vec![named.clone()],
    )];
    asks.push(match whole {
        true => Ask::Query(
            concat!(wait_columns!(""), "FROM @waits WHERE resource = ANY($1)"),
            vec![named],
        ),
        // The front of each queue; and the request's own place with the one before it, whose end it
        // is to notice, or the end of the queue.
        false => Ask::Query(
            fronts!(),
            vec![named, Value::Integer(ticket.map_or(i64::MAX, |ticket| ticket as i64))],
        ),
    });
    if !paths.is_empty() {
        asks.push(Ask::Query(
            concat!(
                hold_columns!("h."),
                "FROM unnest($1::text[]) AS p CROSS JOIN LATERAL
                    (SELECT * FROM @holds WHERE prefix = p OFFSET 0) AS h UNION ALL ",
                hold_columns!("h."),
                "FROM unnest($2::text[], $3::text[]) AS r(low, high) CROSS JOIN LATERAL
                    (SELECT * FROM @holds WHERE prefix >= low AND prefix < high OFFSET 0) AS h"
            ),
            near(&paths).to_vec(),
        ));
        asks.push(Ask::Query(
            concat!(
                wait_columns!("w."),
                "FROM unnest($1::text[]) AS p CROSS JOIN LATERAL
                    (SELECT * FROM @waits WHERE prefix = p OFFSET 0) AS w UNION ALL ",
                wait_columns!("w."),
                "FROM unnest($2::text[], $3::text[]) AS r(low, high) CROSS JOIN LATERAL
                    (SELECT * FROM @waits WHERE prefix >= low AND prefix < high OFFSET 0) AS w"
            ),
            near(&paths).to_vec(),
        ));
    }
    asks
}

/// The same for the fronts of named resources, in one statement that also draws a number; none if a
/// path is among them.
pub(super) fn numbered_at(resources: &[Resource], ticket: Option<u64>) -> Option<Ask> {
    let (paths, named) = split(resources);
    paths.is_empty().then(|| {
        Ask::Query(
            concat!(
                number_columns!(),
                " UNION ALL ",
                hold_columns!("h."),
                "FROM @holds AS h WHERE h.resource = ANY($1) UNION ALL ",
                fronts!()
            ),
            vec![Value::Texts(named), Value::Integer(ticket.map_or(i64::MAX, |at| at as i64))],
        )
    })
}

/// All that is held and waited for.
pub(super) fn everything() -> Vec<Ask> {
    vec![
        Ask::Query(concat!(hold_columns!(""), "FROM @holds"), vec![]),
        Ask::Query(concat!(wait_columns!(""), "FROM @waits"), vec![]),
    ]
}

/// All that is waited for, what is held there and on these resources, and what the owner holds.
pub(super) fn all_waits(resources: &[Resource], owner: &Owner) -> Vec<Ask> {
    let (paths, named) = split(resources);
    let [at, from, to] = near(&paths);
    let grants = owner.grants.iter().map(ToString::to_string).collect();
    vec![
        Ask::Query(
            concat!(
                hold_columns!("h."),
                "FROM @holds AS h WHERE h.resource = ANY($1) OR h.prefix = ANY($2)
                    OR h.grant_id = ANY($5) OR ((h.chosen OR h.agent) AND h.label = $6)
                    OR h.resource IN (SELECT resource FROM @waits)
                    OR EXISTS (SELECT 1 FROM unnest($3::text[], $4::text[]) AS r(low, high)
                        WHERE h.prefix >= r.low AND h.prefix < r.high)
                    OR EXISTS (SELECT 1 FROM @waits AS w WHERE w.prefix IS NOT NULL
                        AND h.prefix IS NOT NULL
                        AND (starts_with(w.prefix || '/', h.prefix || '/')
                            OR starts_with(h.prefix || '/', w.prefix || '/')))"
            ),
            vec![
                Value::Texts(named),
                at,
                from,
                to,
                Value::Texts(grants),
                Value::OptionalText(owner.label.clone()),
            ],
        ),
        Ask::Query(concat!(wait_columns!(""), "FROM @waits"), vec![]),
    ]
}

/// What the answers show, put together for a rule.
pub(super) struct Gathered {
    pub(super) snapshot: Snapshot,
    pub(super) addresses: Addresses,
    /// Whether the statements were too small for what there is: they do not show what they should.
    pub(super) has_more: bool,
    at: StoreTime,
    seen: HashSet<(String, GrantId)>,
    places: BTreeMap<(u64, GrantId), WaiterSnapshot>,
}

impl Gathered {
    pub(super) fn new(at: StoreTime) -> Gathered {
        Gathered {
            snapshot: Snapshot::default(),
            addresses: HashMap::new(),
            has_more: false,
            at,
            seen: HashSet::new(),
            places: BTreeMap::new(),
        }
    }

    /// Adds holds; of paths only those that are `shown`.
    pub(super) fn holds<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a Row>,
        shown: impl Fn(&Resource) -> bool,
    ) -> Result<(), PgError> {
        for row in rows {
            let key: &str = row.get(1);
            let resource = format::resource_from_key(key)?;
            let grant = format::grant_from_text(row.get(2))?;
            if shown(&resource) && self.seen.insert((key.to_owned(), grant)) {
                let hold = read_hold(row, resource, grant, self.at)?;
                self.snapshot.holds.push(hold);
            }
        }
        Ok(())
    }

    /// Adds the answers to [`at`].
    pub(super) fn at(
        &mut self,
        resources: &[Resource],
        rows: &[Vec<Row>],
        whole: bool,
    ) -> Result<(), PgError> {
        let paths: Vec<&Resource> =
            resources.iter().filter(|resource| resource.kind() == Kind::Path).collect();
        let overlaps = |other: &Resource| paths.iter().any(|path| path.overlaps(other));
        self.holds(&rows[0], |_| true)?;
        match whole {
            true => self.waits(&rows[1], |_| true)?,
            false => self.fronts(&rows[1].iter().collect::<Vec<_>>())?,
        }
        if let [_, _, holds, waits] = rows {
            self.holds(holds, overlaps)?;
            self.waits(waits, overlaps)?;
        }
        Ok(())
    }

    /// Adds the answer to [`numbered_at`] or to another statement of one shape, without its first row.
    pub(super) fn entries(&mut self, rows: &[Row]) -> Result<(), PgError> {
        let (holds, places): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| row.get::<_, i32>(0) == HOLD);
        self.holds(holds, |_| true)?;
        self.waits(places, |_| true)
    }

    /// The same, where places are the fronts of queues.
    pub(super) fn entries_at(&mut self, rows: &[Row]) -> Result<(), PgError> {
        let (holds, places): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| row.get::<_, i32>(0) == HOLD);
        self.holds(holds, |_| true)?;
        self.fronts(&places)
    }

    /// Adds the fronts of queues and says where they end.
    fn fronts(&mut self, rows: &[&Row]) -> Result<(), PgError> {
        let mut shown: HashMap<&str, Vec<i64>> = HashMap::new();
        for row in rows.iter().filter(|row| row.get::<_, i32>(0) == PLACE) {
            shown.entry(row.get(1)).or_default().push(row.get(3));
        }
        for tickets in shown.values_mut() {
            tickets.sort_unstable();
            if tickets.len() > FRONT {
                let until = tickets[FRONT - 1] as u64;
                let before = self.snapshot.shown_until.unwrap_or(u64::MAX);
                self.snapshot.shown_until = Some(until.min(before));
                tickets.truncate(FRONT);
            }
        }
        for row in rows {
            let tickets = shown.get(row.get::<_, &str>(1));
            let ticket: i64 = row.get(3);
            if row.get::<_, i32>(0) == OWN_PLACE
                || tickets.is_some_and(|tickets| tickets.contains(&ticket))
            {
                self.place(row)?;
            }
        }
        Ok(())
    }

    /// Adds places; of paths only those that are `shown`.
    pub(super) fn waits<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a Row>,
        shown: impl Fn(&Resource) -> bool,
    ) -> Result<(), PgError> {
        for row in rows {
            let resource = format::resource_from_key(row.get(1))?;
            if resource.kind() != Kind::Path || shown(&resource) {
                self.place(row)?;
            }
        }
        Ok(())
    }

    fn place(&mut self, row: &Row) -> Result<(), PgError> {
        let (waiter, mailbox) = read_waiter(row, self.at)?;
        self.addresses.insert(waiter.waiter.grant, mailbox);
        // A request for several resources is met several times.
        self.places.insert((waiter.waiter.ticket, waiter.waiter.grant), waiter);
        Ok(())
    }

    /// The snapshot, in order.
    pub(super) fn finish(mut self) -> (Snapshot, Addresses) {
        self.snapshot.sort_holds();
        self.snapshot.waiters = self.places.into_values().collect();
        self.snapshot.wall = WallTime(self.at.wall_ms);
        (self.snapshot, self.addresses)
    }
}

/// Reads label, chosen, agent and evidence, which stand side by side.
fn read_holder(row: &Row, first: usize) -> Result<Holder, PgError> {
    let evidence = row.get::<_, Option<&str>>(first + 3);
    Ok(Holder {
        label: row.get(first),
        chosen: row.get(first + 1),
        agent: row.get(first + 2),
        evidence: evidence.map(format::evidence_from_json).transpose()?,
    })
}

/// Reads the length of a lease and its end, which stand side by side; what rounding added to the end
/// is not shown.
fn left_ms(row: &Row, first: usize, at: StoreTime) -> i64 {
    let (ttl_ms, deadline_ms): (i64, i64) = (row.get(first), row.get(first + 1));
    deadline_ms.saturating_sub(at.now_ms).min(ttl_ms)
}

fn read_hold(
    row: &Row,
    resource: Resource,
    grant: GrantId,
    at: StoreTime,
) -> Result<HoldSnapshot, PgError> {
    let left_ms = left_ms(row, 10, at);
    Ok(HoldSnapshot {
        hold: Hold {
            want: Want { resource, mode: format::mode_from_text(row.get(4))? },
            grant,
            token: Token(row.get::<_, i64>(3) as u64),
            holder: read_holder(row, 5)?,
            operation: row.get(9),
            ttl: from_ms(row.get(10)),
            slot: row.get::<_, Option<i64>>(15).map(|slot| slot as u32),
        },
        left: from_ms(left_ms),
        held_for: from_ms(at.now_ms.saturating_sub(row.get(12))),
        acquired_at: WallTime(row.get(13)),
        renewed_at: WallTime(row.get(14)),
        expires_at: WallTime(at.wall_ms.saturating_add(left_ms)),
        stale: None,
    })
}

fn read_waiter(row: &Row, at: StoreTime) -> Result<(WaiterSnapshot, String), PgError> {
    let keeps = row.get::<_, Option<&str>>(17).map(format::grants_from_json).transpose()?;
    let waiter = WaiterSnapshot {
        waiter: Waiter {
            grant: format::grant_from_text(row.get(2))?,
            ticket: row.get::<_, i64>(3) as u64,
            wants: format::wants_from_json(row.get(4))?,
            holder: read_holder(row, 5)?,
            operation: row.get(9),
            keeps: keeps.unwrap_or_default(),
            ttl: from_ms(row.get(10)),
        },
        left: from_ms(left_ms(row, 10, at)),
        waited_for: from_ms(at.now_ms.saturating_sub(row.get(12))),
        waiting_since: WallTime(row.get(13)),
        woken_for: row
            .get::<_, Option<i64>>(14)
            .map(|woken_ms| from_ms(at.now_ms.saturating_sub(woken_ms))),
    };
    Ok((waiter, row.get(16)))
}
