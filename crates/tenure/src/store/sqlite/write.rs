//! Writing records inside a transaction.

use super::read::RowError;
use super::session::Session;
use super::{answers, records, tasks};
use crate::store::format::columns as format;
use crate::store::path_prefixes;
use crate::store::store_time::{StoreTime, milliseconds_up};
use crate::store::{Renewal, Renewed, Trim};
use rusqlite::{OptionalExtension, params};
use tenure_core::{Change, EventKind, Hold, NewEvent, Waiter, WallTime, Write};

/// The tally of events is brought up to date whenever so many came: seldom enough to cost nothing. The
/// jump of tokens after a reboot is a multiple of it.
pub(super) const COUNT_EVERY: u64 = 1024;

/// Writes a change. `next` is the first revision that is free. Returns the newest revision.
pub(super) fn apply(
    session: &Session<'_>,
    change: &Change,
    next: u64,
    at: StoreTime,
    mailbox: &str,
) -> Result<u64, RowError> {
    for write in &change.writes {
        apply_one(session, write, at, mailbox)?;
    }
    let mut id = change.first_revision(next);
    for event in &change.events {
        insert_event(session, id, event, at)?;
        id += 1;
    }
    // A change without events takes no revision.
    let newest = if change.events.is_empty() { next - 1 } else { id - 1 };
    session.wrote(newest);
    // The tally lacks as many as the newest revision's remainder says.
    let counted = newest % COUNT_EVERY;
    let came = ((next - 1) % COUNT_EVERY + change.events.len() as u64) as i64 - counted as i64;
    if came != 0 {
        count_events(session, came)?;
    }
    Ok(newest)
}

fn apply_one(
    session: &Session<'_>,
    write: &Write,
    at: StoreTime,
    mailbox: &str,
) -> Result<(), RowError> {
    match write {
        Write::Hold(hold) => insert_hold(session, hold, at),
        Write::Extend { resource, grant, ttl, operation } => {
            let ttl_ms = milliseconds_up(*ttl);
            session
                .statement(
                    "UPDATE holds SET ttl_ms = ?3, deadline_ms = ?4, renewed_at_ms = ?5,
                        operation = coalesce(?6, operation)
                     WHERE resource = ?1 AND grant_id = ?2",
                )?
                .execute(params![
                    resource.key(),
                    grant.to_string(),
                    ttl_ms,
                    at.begin_ms.saturating_add(ttl_ms),
                    at.wall_ms,
                    operation,
                ])?;
            Ok(())
        }
        Write::DropHold { resource, grant } => {
            session
                .statement("DELETE FROM holds WHERE resource = ?1 AND grant_id = ?2")?
                .execute(params![resource.key(), grant.to_string()])?;
            Ok(())
        }
        Write::Wait(waiter) => insert_waiter(session, waiter, at, mailbox),
        Write::KeepPlace(waiter) => {
            let ttl_ms = milliseconds_up(waiter.ttl);
            let deadline_ms = at.begin_ms.saturating_add(ttl_ms);
            let mut statement = session.statement(
                "UPDATE waits SET ttl_ms = ?3, deadline_ms = ?4, mailbox = ?5, woken_ms = NULL
                 WHERE resource = ?1 AND ticket = ?2",
            )?;
            for want in &waiter.wants {
                let ticket = waiter.ticket as i64;
                let key = want.resource.key();
                statement.execute(params![key, ticket, ttl_ms, deadline_ms, mailbox])?;
            }
            Ok(())
        }
        Write::Woken(waiter) => {
            let mut statement = session
                .statement("UPDATE waits SET woken_ms = ?3 WHERE resource = ?1 AND ticket = ?2")?;
            for want in &waiter.wants {
                let (key, ticket) = (want.resource.key(), waiter.ticket as i64);
                statement.execute(params![key, ticket, at.now_ms])?;
            }
            Ok(())
        }
        Write::DropWait(waiter) => {
            let mut statement =
                session.statement("DELETE FROM waits WHERE resource = ?1 AND ticket = ?2")?;
            for want in &waiter.wants {
                statement.execute(params![want.resource.key(), waiter.ticket as i64])?;
            }
            Ok(())
        }
        Write::Task(task) => tasks::put(session, task),
        Write::DropTask(id) => tasks::delete(session, id),
        Write::Section(section) => tasks::put_section(session, section),
        Write::DropSection(name) => tasks::delete_section(session, name),
        Write::PutRecord(record) => records::put(session, record, at),
        Write::DropRecords(range) => records::drop_all(session, range),
        Write::Answer(answered) => answers::put(session, answered, at),
    }
}

fn insert_hold(session: &Session<'_>, hold: &Hold, at: StoreTime) -> Result<(), RowError> {
    let ttl_ms = milliseconds_up(hold.ttl);
    session
        .statement(
            "INSERT INTO holds (resource, grant_id, token, mode, label, chosen, evidence,
                operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, prefix,
                slot, agent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            hold.want.resource.key(),
            hold.grant.to_string(),
            hold.token.0 as i64,
            format::mode_to_text(hold.want.mode),
            hold.holder.label,
            hold.holder.chosen,
            hold.holder.evidence.as_ref().map(format::evidence_to_json),
            hold.operation,
            ttl_ms,
            at.begin_ms.saturating_add(ttl_ms),
            at.now_ms,
            at.wall_ms,
            path_prefixes::prefix(&hold.want.resource),
            hold.slot,
            hold.holder.agent,
        ])?;
    Ok(())
}

fn insert_waiter(
    session: &Session<'_>,
    waiter: &Waiter,
    at: StoreTime,
    mailbox: &str,
) -> Result<(), RowError> {
    let ttl_ms = milliseconds_up(waiter.ttl);
    let mut statement = session.statement(
        "INSERT INTO waits (resource, ticket, grant_id, wants, label, chosen, evidence, operation,
            keeps, ttl_ms, deadline_ms, since_ms, waiting_since_at_ms, mailbox, prefix, agent)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?;
    let keeps = (!waiter.keeps.is_empty()).then(|| format::grants_to_json(&waiter.keeps));
    for want in &waiter.wants {
        statement.execute(params![
            want.resource.key(),
            waiter.ticket as i64,
            waiter.grant.to_string(),
            format::wants_to_json(&waiter.wants),
            waiter.holder.label,
            waiter.holder.chosen,
            waiter.holder.evidence.as_ref().map(format::evidence_to_json),
            waiter.operation,
            keeps,
            ttl_ms,
            at.begin_ms.saturating_add(ttl_ms),
            at.now_ms,
            at.wall_ms,
            mailbox,
            path_prefixes::prefix(&want.resource),
            waiter.holder.agent,
        ])?;
    }
    Ok(())
}

pub(super) fn insert_event(
    session: &Session<'_>,
    id: u64,
    event: &NewEvent,
    at: StoreTime,
) -> Result<(), RowError> {
    session
        .statement(
            "INSERT INTO events (id, at_ms, kind, resource, label, token, detail, actor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            id as i64,
            event.at.map_or(at.wall_ms, |own| own.0),
            event.kind.word(),
            event.resource.as_ref().map(|resource| resource.key()),
            event.label,
            event.token.map(|token| token.0 as i64),
            detail(&event.kind),
            event.actor,
        ])?;
    Ok(())
}

/// What the kind's name does not say; nothing for most events, which keeps them small.
fn detail(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::Acquired { operation: Some(_) }
        | EventKind::Lapsed { ended_at: Some(_), .. }
        | EventKind::Lapsed { reason: Some(_), .. }
        | EventKind::Died { reason: Some(_) }
        | EventKind::Broken { .. }
        | EventKind::Left { .. }
        | EventKind::Failed { .. }
        | EventKind::Noted { .. }
        | EventKind::Rejected { .. } => Some(format::event_kind_to_json(kind)),
        _ => None,
    }
}

/// Called once per [`COUNT_EVERY`] events, with how many came. Counting rows would cost more the more
/// there are, so the tally is kept beside them: it is behind by the newest number's remainder.
fn count_events(session: &Session<'_>, came: i64) -> Result<(), RowError> {
    session.statement("UPDATE tally SET kept = kept + ?1")?.execute([came])?;
    Ok(())
}

/// Removes the oldest events beyond what is kept; returns how many that are.
pub(super) fn trim_events(
    session: &Session<'_>,
    trim: Trim,
    at: StoreTime,
) -> Result<u64, RowError> {
    let newest: i64 = session
        .statement("SELECT coalesce(max(id), 0) FROM events")?
        .query_row([], |row| row.get(0))?;
    let counted: i64 =
        session.statement("SELECT kept FROM tally")?.query_row([], |row| row.get(0))?;
    let total = u64::try_from(counted + newest % COUNT_EVERY as i64).unwrap_or(0);
    let most = trim.keep.candidates(0, total, trim.limit);
    let oldest: rusqlite::Result<Vec<(i64, WallTime)>> = session
        .statement("SELECT id, at_ms FROM events ORDER BY id LIMIT ?1")?
        .query_map([most], |row| Ok((row.get(0)?, WallTime(row.get(1)?))))?
        .collect();
    let oldest = oldest?;
    let times: Vec<WallTime> = oldest.iter().map(|(_, at)| *at).collect();
    let surplus = trim.keep.surplus_events(&times, total, WallTime(at.wall_ms));
    let Some((last, _)) = surplus.checked_sub(1).and_then(|index| oldest.get(index)) else {
        return Ok(0);
    };
    if !trim.dry_run {
        // The newest stays even if the tally were wrong.
        let deleted = session
            .statement("DELETE FROM events WHERE id <= ?1 AND id < ?2")?
            .execute([*last, newest])?;
        session.statement("UPDATE tally SET kept = kept - ?1")?.execute([deleted as i64])?;
    }
    Ok(surplus as u64)
}

/// Counts an event whose number leaves the remainder as it was.
pub(super) fn count_one_more(session: &Session<'_>) -> Result<(), RowError> {
    session.statement("UPDATE tally SET kept = kept + 1")?.execute([])?;
    Ok(())
}

/// Starts leases anew where grant and token match and the lease has not lapsed. Notes whether a
/// lease becomes longer than it was.
pub(super) fn renew(
    session: &Session<'_>,
    renewal: &Renewal,
    at: StoreTime,
    lengthens: &mut bool,
) -> Result<Renewed, RowError> {
    let ttl_ms = milliseconds_up(renewal.ttl);
    let mut check = session.statement(
        "SELECT ttl_ms FROM holds
         WHERE resource = ?1 AND grant_id = ?2 AND token = ?3 AND deadline_ms > ?4",
    )?;
    let (grant, token) = (renewal.grant.to_string(), renewal.token.0 as i64);
    for resource in &renewal.resources {
        let key = params![resource.key(), grant, token, at.now_ms];
        let held: Option<i64> = check.query_row(key, |row| row.get(0)).optional()?;
        match held {
            Some(before_ms) => *lengthens |= ttl_ms > before_ms,
            None => return Ok(Renewed::Lost),
        }
    }
    let mut update = session.statement(
        "UPDATE holds SET ttl_ms = ?3, deadline_ms = ?4, renewed_at_ms = ?5,
            evidence = coalesce(?6, evidence)
         WHERE resource = ?1 AND grant_id = ?2",
    )?;
    let evidence = renewal.bind.as_ref().map(format::evidence_to_json);
    let deadline_ms = at.begin_ms.saturating_add(ttl_ms);
    for resource in &renewal.resources {
        update.execute(params![
            resource.key(),
            grant,
            ttl_ms,
            deadline_ms,
            at.wall_ms,
            evidence
        ])?;
    }
    Ok(Renewed::Renewed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An import of many tasks is one change with many events; all of them count.
    #[test]
    fn every_batch_of_events_counts_even_in_one_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        super::super::open::ensure_there(&path).expect("created");
        let connection =
            super::super::open::open(&path, &super::super::SqliteOptions::default()).expect("open");
        let event = NewEvent::new(None, "", None, EventKind::Added);
        let events = vec![event; 3 * COUNT_EVERY as usize];
        let change = Change { events, ..Change::default() };
        let at = StoreTime { now_ms: 0, begin_ms: 0, wall_ms: 0 };
        apply(&Session::new(&connection), &change, 1, at, "").expect("written");
        let kept: i64 =
            connection.query_row("SELECT kept FROM tally", [], |row| row.get(0)).expect("a tally");
        assert_eq!(kept, 3 * COUNT_EVERY as i64);
    }
}
