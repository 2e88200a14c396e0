//! Reading records inside a transaction.

use super::session::Session;
use super::tasks;
use crate::store::format::columns::{self as format, FormatError};
use crate::store::path_prefixes::{self, PathPrefixes};
use crate::store::store_time::{StoreTime, from_ms};
use crate::store::{EventSearch, Prefer};
use rusqlite::{Row, Rows, params};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use tenure_core::{
    Event, EventFilter, EventKind, GrantId, Hold, HoldSnapshot, Holder, Kind, NewEvent, Owner,
    Resource, Revision, Scope, Snapshot, TaskScope, Token, Waiter, WaiterSnapshot, WallTime, Want,
};

/// How much of a queue is shown at first. Enough to skip some dead ones and to let a few readers
/// go at once; few enough that the length of a queue does not matter. The statements ask for one
/// more, to learn whether the queue goes on; they say so by a literal, because SQLite prepares a
/// statement again whenever a bound limit changes.
const FRONT: usize = 8;

/// A row could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Another process brought the store to this version meanwhile.
    #[error("it has version {0}")]
    Newer(i32),
}

/// Where waiting requests are to be woken.
pub(super) type Addresses = HashMap<GrantId, String>;

macro_rules! holds {
    ($rest:literal) => {
        concat!(
            "SELECT resource, grant_id, token, mode, label, chosen, evidence, operation, ttl_ms, \
             deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, slot, agent FROM holds ",
            $rest
        )
    };
}

macro_rules! waits {
    ($rest:literal) => {
        concat!(
            "SELECT ticket, grant_id, wants, label, chosen, evidence, operation, keeps, ttl_ms, \
             deadline_ms, since_ms, waiting_since_at_ms, mailbox, resource, woken_ms, agent \
             FROM waits ",
            $rest
        )
    };
}

/// The store's revision.
pub(super) fn newest(session: &Session<'_>) -> Result<u64, RowError> {
    let mut statement = session.statement("SELECT max(id) FROM events")?;
    let id: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(id.unwrap_or(0) as u64)
}

/// The snapshot for the rule, and the addresses at which waiters are woken.
pub(super) fn show(
    session: &Session<'_>,
    scope: &Scope,
    at: StoreTime,
) -> Result<(Snapshot, Addresses), RowError> {
    let newest = session.newest()?;
    let mut view = View { session, at, seen: Snapshot::default(), addresses: HashMap::new() };
    match scope {
        Scope::Everything => {
            view.holds(holds!(""), params![])?;
            view.waits(waits!(""), params![], usize::MAX)?;
        }
        Scope::Queues(resources) => view.at(resources, None, usize::MAX)?,
        Scope::At { resources, ticket } => view.at(resources, *ticket, FRONT)?,
        Scope::Waits { resources, owner } => view.all_waits(resources, owner)?,
        Scope::Tasks(scope) => view.tasks(scope)?,
    }
    let View { mut seen, addresses, .. } = view;
    seen.sort_holds();
    // A request for several resources waits in several queues and may have been met in each.
    seen.waiters.sort_by_key(|seen| seen.waiter.ticket);
    seen.waiters.dedup_by_key(|seen| seen.waiter.ticket);
    seen.whole = *scope == Scope::Everything;
    seen.shows_waits = matches!(scope, Scope::Waits { .. });
    seen.next = newest + 1;
    seen.revision = Revision(newest);
    seen.wall = WallTime(at.wall_ms);
    Ok((seen, addresses))
}

struct View<'a, 'c> {
    session: &'a Session<'c>,
    at: StoreTime,
    seen: Snapshot,
    addresses: Addresses,
}

impl View<'_, '_> {
    fn at(
        &mut self,
        resources: &[Resource],
        ticket: Option<u64>,
        front: usize,
    ) -> Result<(), RowError> {
        let different: HashSet<&Resource> = resources.iter().collect();
        let (paths, named): (Vec<&Resource>, Vec<&Resource>) =
            different.into_iter().partition(|resource| resource.kind() == Kind::Path);
        for resource in named {
            self.named(&resource.key(), ticket, front)?;
        }
        let overlaps = |other: &Resource| paths.iter().any(|path| path.overlaps(other));
        let near = PathPrefixes::to(paths.iter().copied());
        self.path_holds(&near, overlaps)?;
        self.path_waits(&near, overlaps, ticket, front)
    }

    /// All that is waited for, what is held there, and what the owner holds.
    fn all_waits(&mut self, resources: &[Resource], owner: &Owner) -> Result<(), RowError> {
        self.waits(waits!(""), params![], usize::MAX)?;
        let wanted = self.seen.waiters.iter().flat_map(|seen| &seen.waiter.wants);
        let waited: HashSet<Resource> =
            wanted.map(|want| &want.resource).chain(resources).cloned().collect();
        let (paths, named): (Vec<&Resource>, Vec<&Resource>) =
            waited.iter().partition(|resource| resource.kind() == Kind::Path);
        for resource in named {
            self.holds(holds!("WHERE resource = ?1"), params![resource.key()])?;
        }
        let overlaps = |other: &Resource| paths.iter().any(|path| path.overlaps(other));
        self.path_holds(&PathPrefixes::to(paths.iter().copied()), overlaps)?;
        for grant in &owner.grants {
            self.holds(holds!("WHERE grant_id = ?1"), params![grant.to_string()])?;
        }
        if let Some(label) = &owner.label {
            self.holds(holds!("WHERE label = ?1 AND chosen"), params![label])?;
        }
        let mut met = HashSet::new();
        self.seen
            .holds
            .retain(|seen| met.insert((seen.hold.want.resource.clone(), seen.hold.grant)));
        Ok(())
    }

    fn named(&mut self, key: &str, ticket: Option<u64>, front: usize) -> Result<(), RowError> {
        self.holds(holds!("WHERE resource = ?1"), params![key])?;
        let sql = match front {
            FRONT => waits!("WHERE resource = ?1 ORDER BY ticket LIMIT 9"),
            _ => waits!("WHERE resource = ?1 ORDER BY ticket"),
        };
        let shown = self.waits(sql, params![key], front)?;
        if let Some(place) = hidden(shown, ticket) {
            // The request's own place, and the one before it, whose end it is to notice.
            let sql = waits!("WHERE resource = ?1 AND ticket <= ?2 ORDER BY ticket DESC LIMIT 2");
            self.places(sql, params![key, place], 2, |_| true)?;
        }
        Ok(())
    }

    /// Tasks, all sections, and what is held and waited for around them.
    fn tasks(&mut self, scope: &TaskScope) -> Result<(), RowError> {
        tasks::show(self.session, scope, self.at.wall_ms, &mut self.seen)?;
        self.holds(holds!("WHERE resource >= 'section:' AND resource < 'section;'"), params![])?;
        let near = PathPrefixes::to(&path_prefixes::files(&self.seen.tasks));
        self.path_holds(&near, |resource| resource.kind() == Kind::Path)?;
        let keys: Vec<String> =
            self.seen.tasks.iter().map(|task| task.id.resource().key()).collect();
        for key in &keys {
            self.holds(holds!("WHERE resource = ?1"), params![key])?;
        }
        // Usually there are no waiters: one look instead of one for each.
        if self.exists("SELECT 1 FROM waits LIMIT 1")? {
            self.waits_around(&near, &keys)?;
        }
        Ok(())
    }

    /// All who wait for sections, for paths near, or for these tasks.
    fn waits_around(&mut self, near: &PathPrefixes, tasks: &[String]) -> Result<(), RowError> {
        let sql = waits!("WHERE resource >= 'section:' AND resource < 'section;' ORDER BY ticket");
        self.waits(sql, params![], usize::MAX)?;
        self.path_waits(near, |resource| resource.kind() == Kind::Path, None, usize::MAX)?;
        let any = "SELECT 1 FROM waits WHERE resource >= 'task:' AND resource < 'task;' LIMIT 1";
        if self.exists(any)? {
            for key in tasks {
                let sql = waits!("WHERE resource = ?1 ORDER BY ticket");
                self.waits(sql, params![key], usize::MAX)?;
            }
        }
        Ok(())
    }

    fn exists(&self, sql: &'static str) -> Result<bool, RowError> {
        Ok(self.session.statement(sql)?.exists([])?)
    }

    /// What is held on those paths near that are `shown`.
    fn path_holds(
        &mut self,
        near: &PathPrefixes,
        shown: impl Fn(&Resource) -> bool,
    ) -> Result<(), RowError> {
        for prefix in &near.at {
            self.holds_of(holds!("WHERE prefix = ?1"), params![prefix], &shown)?;
        }
        for Range { start, end } in &near.below {
            let sql = holds!("WHERE prefix >= ?1 AND prefix < ?2");
            self.holds_of(sql, params![start, end], &shown)?;
        }
        Ok(())
    }

    /// Who waits for those paths near that are `shown`. Each part of what is near counts as a queue
    /// of its own.
    fn path_waits(
        &mut self,
        near: &PathPrefixes,
        shown: impl Fn(&Resource) -> bool,
        ticket: Option<u64>,
        front: usize,
    ) -> Result<(), RowError> {
        for prefix in &near.at {
            let sql = waits!("WHERE prefix = ?1 ORDER BY ticket");
            let until = self.front(sql, params![prefix], front, &shown)?;
            if let Some(place) = hidden(until, ticket) {
                let sql = waits!("WHERE prefix = ?1 AND ticket <= ?2 ORDER BY ticket DESC");
                self.places(sql, params![prefix, place], 2, &shown)?;
            }
        }
        for Range { start, end } in &near.below {
            let sql = waits!("WHERE prefix >= ?1 AND prefix < ?2 ORDER BY ticket");
            let until = self.front(sql, params![start, end], front, &shown)?;
            if let Some(place) = hidden(until, ticket) {
                let sql = waits!(
                    "WHERE prefix >= ?1 AND prefix < ?2 AND ticket <= ?3 ORDER BY ticket DESC"
                );
                self.places(sql, params![start, end, place], 2, &shown)?;
            }
        }
        Ok(())
    }

    fn holds(&mut self, sql: &'static str, params: impl rusqlite::Params) -> Result<(), RowError> {
        self.holds_of(sql, params, |_| true)
    }

    /// Adds those holds whose resource is `shown`.
    fn holds_of(
        &mut self,
        sql: &'static str,
        params: impl rusqlite::Params,
        shown: impl Fn(&Resource) -> bool,
    ) -> Result<(), RowError> {
        let mut statement = self.session.statement(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            let resource = format::resource_from_key(text(row, 0)?)?;
            if shown(&resource) {
                self.seen.holds.push(read_hold(row, resource, self.at)?);
            }
        }
        Ok(())
    }

    fn waits(
        &mut self,
        sql: &'static str,
        params: impl rusqlite::Params,
        front: usize,
    ) -> Result<Option<u64>, RowError> {
        self.front(sql, params, front, |_| true)
    }

    /// Adds the places of a queue up to `front` and notes where that ends; if the queue goes on,
    /// the last place that is shown is returned.
    fn front(
        &mut self,
        sql: &'static str,
        params: impl rusqlite::Params,
        front: usize,
        shown: impl Fn(&Resource) -> bool,
    ) -> Result<Option<u64>, RowError> {
        let last = self.places(sql, params, front, shown)?;
        if let Some(last) = last {
            let until = self.seen.shown_until.map_or(last, |until| until.min(last));
            self.seen.shown_until = Some(until);
        }
        Ok(last)
    }

    /// Adds at most so many places whose resource is `shown`; if one more is there, the last that
    /// was added is returned.
    fn places(
        &mut self,
        sql: &'static str,
        params: impl rusqlite::Params,
        at_most: usize,
        shown: impl Fn(&Resource) -> bool,
    ) -> Result<Option<u64>, RowError> {
        let mut statement = self.session.statement(sql)?;
        let mut rows = statement.query(params)?;
        let (mut added, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            let ticket = row.get::<_, i64>(0)? as u64;
            // Who wants several that are near is met several times.
            if last == Some(ticket) || !shown(&format::resource_from_key(text(row, 13)?)?) {
                continue;
            }
            if added == at_most {
                return Ok(last);
            }
            let (waiter, mailbox) = read_waiter(row, self.at)?;
            last = Some(ticket);
            self.addresses.insert(waiter.waiter.grant, mailbox);
            self.seen.waiters.push(waiter);
            added += 1;
        }
        Ok(None)
    }
}

/// A place that is not shown because the queue was shown only up to another: that of a ticket, or
/// for a request that has none yet, the end of the queue.
fn hidden(shown_until: Option<u64>, ticket: Option<u64>) -> Option<i64> {
    let place = ticket.map_or(i64::MAX, |ticket| ticket as i64);
    shown_until.filter(|until| place > *until as i64).map(|_| place)
}

pub(super) fn text<'a>(row: &'a Row<'_>, index: usize) -> Result<&'a str, rusqlite::Error> {
    Ok(row.get_ref(index)?.as_str()?)
}

pub(super) fn optional_text<'a>(
    row: &'a Row<'_>,
    index: usize,
) -> Result<Option<&'a str>, rusqlite::Error> {
    Ok(row.get_ref(index)?.as_str_or_null()?)
}

/// Reads label, chosen and evidence, which stand side by side, and whether it is an agent.
fn read_holder(row: &Row<'_>, first: usize, agent: usize) -> Result<Holder, RowError> {
    let evidence = optional_text(row, first + 2)?.map(format::evidence_from_json).transpose()?;
    let label = text(row, first)?.to_owned();
    Ok(Holder { label, chosen: row.get(first + 1)?, agent: row.get(agent)?, evidence })
}

/// Reads the length of a lease and its end, which stand side by side; what rounding added to the end
/// is not shown.
fn left_ms(row: &Row<'_>, first: usize, at: StoreTime) -> Result<i64, rusqlite::Error> {
    let (ttl_ms, deadline_ms): (i64, i64) = (row.get(first)?, row.get(first + 1)?);
    Ok(deadline_ms.saturating_sub(at.now_ms).min(ttl_ms))
}

fn read_hold(row: &Row<'_>, resource: Resource, at: StoreTime) -> Result<HoldSnapshot, RowError> {
    let left_ms = left_ms(row, 8, at)?;
    Ok(HoldSnapshot {
        hold: Hold {
            want: Want { resource, mode: format::mode_from_text(text(row, 3)?)? },
            grant: format::grant_from_text(text(row, 1)?)?,
            token: Token(row.get::<_, i64>(2)? as u64),
            holder: read_holder(row, 4, 14)?,
            operation: optional_text(row, 7)?.map(str::to_owned),
            ttl: from_ms(row.get(8)?),
            slot: row.get(13)?,
        },
        left: from_ms(left_ms),
        held_for: from_ms(at.now_ms.saturating_sub(row.get(10)?)),
        acquired_at: WallTime(row.get(11)?),
        renewed_at: WallTime(row.get(12)?),
        expires_at: WallTime(at.wall_ms.saturating_add(left_ms)),
        stale: None,
    })
}

fn read_waiter(row: &Row<'_>, at: StoreTime) -> Result<(WaiterSnapshot, String), RowError> {
    let keeps = optional_text(row, 7)?.map(format::grants_from_json).transpose()?;
    let waiter = WaiterSnapshot {
        waiter: Waiter {
            grant: format::grant_from_text(text(row, 1)?)?,
            ticket: row.get::<_, i64>(0)? as u64,
            wants: format::wants_from_json(text(row, 2)?)?,
            holder: read_holder(row, 3, 15)?,
            operation: optional_text(row, 6)?.map(str::to_owned),
            keeps: keeps.unwrap_or_default(),
            ttl: from_ms(row.get(8)?),
        },
        left: from_ms(left_ms(row, 8, at)?),
        waited_for: from_ms(at.now_ms.saturating_sub(row.get(10)?)),
        waiting_since: WallTime(row.get(11)?),
        woken_for: row
            .get::<_, Option<i64>>(14)?
            .map(|woken_ms| from_ms(at.now_ms.saturating_sub(woken_ms))),
    };
    Ok((waiter, text(row, 12)?.to_owned()))
}

/// A statement that reads events, and one that searches them.
macro_rules! events {
    ($rest:literal) => {
        concat!("SELECT id, at_ms, kind, resource, label, token, detail, actor FROM events ", $rest)
    };
    (search $order:literal) => {
        concat!(
            events!(""),
            "WHERE id > ?1 AND id < ?2 AND (?3 IS NULL OR resource = ?3)
              AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
              AND (?5 IS NULL OR label = ?5
                OR (kind = 'broken' AND json_extract(detail, '$.by') = ?5))
              AND (?6 IS NULL OR actor = ?6) AND at_ms >= ?7 AND at_ms < ?8
             ORDER BY id ",
            $order,
            " LIMIT ?9"
        )
    };
}

/// Events after a revision, oldest first.
pub(super) fn events(
    session: &Session<'_>,
    after: Revision,
    limit: u32,
) -> Result<Vec<Event>, RowError> {
    let mut statement = session.statement(events!("WHERE id > ?1 ORDER BY id LIMIT ?2"))?;
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    read_events(statement.query(params![after, limit])?)
}

/// The newest events, oldest first.
pub(super) fn newest_events(session: &Session<'_>, limit: u32) -> Result<Vec<Event>, RowError> {
    let mut statement = session.statement(events!("ORDER BY id DESC LIMIT ?1"))?;
    let mut events = read_events(statement.query(params![limit])?)?;
    events.reverse();
    Ok(events)
}

/// The events that are asked for, oldest first. No index helps: each would cost a write for every
/// event, and the history is bounded.
pub(super) fn search_events(
    session: &Session<'_>,
    search: &EventSearch,
) -> Result<Vec<Event>, RowError> {
    let EventFilter { resource, kinds, label, actor, since, until } = &search.filter;
    let mut statement = session.statement(match search.prefer {
        Prefer::Oldest => events!(search "ASC"),
        Prefer::Newest => events!(search "DESC"),
    })?;
    let id = |revision: Revision| i64::try_from(revision.0).unwrap_or(i64::MAX);
    let mut events = read_events(statement.query(params![
        id(search.after),
        search.before.map_or(i64::MAX, id),
        resource.as_ref().map(|resource| resource.key()),
        (!kinds.is_empty()).then(|| format::texts_to_json(kinds)),
        label,
        actor,
        since.map_or(i64::MIN, |since| since.0),
        until.map_or(i64::MAX, |until| until.0),
        search.limit,
    ])?)?;
    if search.prefer == Prefer::Newest {
        events.reverse();
    }
    Ok(events)
}

fn read_events(mut rows: Rows<'_>) -> Result<Vec<Event>, RowError> {
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(read_event(row)?);
    }
    Ok(events)
}

fn read_event(row: &Row<'_>) -> Result<Event, RowError> {
    let resource = optional_text(row, 3)?.map(format::resource_from_key).transpose()?;
    let token = row.get::<_, Option<i64>>(5)?.map(|token| Token(token as u64));
    let kind = read_kind(text(row, 2)?, optional_text(row, 6)?)?;
    let event = NewEvent::new(resource, text(row, 4)?, token, kind);
    let event = event.through(row.get(7)?);
    let revision = Revision(row.get::<_, i64>(0)? as u64);
    Ok(Event::new(revision, WallTime(row.get(1)?), event))
}

fn read_kind(word: &str, detail: Option<&str>) -> Result<EventKind, RowError> {
    match detail {
        Some(json) => Ok(format::event_kind_from_json(json)?),
        // Most kinds say all by their name.
        None => Ok(format::event_kind_from_json(&format!("{{\"kind\":{word:?}}}"))?),
    }
}
