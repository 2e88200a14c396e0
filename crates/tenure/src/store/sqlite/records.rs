//! Small records.

use super::read::RowError;
use super::session::Session;
use crate::store::RecordSearch;
use crate::store::store_time::StoreTime;
use rusqlite::params;
use tenure_core::record::RECORDS_MAX;
use tenure_core::{RecordRange, RecordSnapshot, SmallRecord, WallTime};

/// Writes a record in the place of what its key had. A new key may push out the oldest.
pub(super) fn put(
    session: &Session<'_>,
    record: &SmallRecord,
    at: StoreTime,
) -> Result<(), RowError> {
    let kind = record.kind.word();
    let deadline_ms = record.ttl.map(|ttl| at.deadline_ms(ttl));
    let values = params![kind, record.key, record.text, deadline_ms, at.wall_ms];
    let replaced = session
        .statement(
            "UPDATE records SET text = ?3, deadline_ms = ?4, written_at_ms = ?5
             WHERE kind = ?1 AND key = ?2",
        )?
        .execute(values)?;
    if replaced > 0 {
        return Ok(());
    }
    session
        .statement("DELETE FROM records WHERE kind = ?1 AND deadline_ms <= ?2")?
        .execute(params![kind, at.now_ms])?;
    session
        .statement(
            "INSERT INTO records (kind, key, text, deadline_ms, written_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(values)?;
    session
        .statement(
            "DELETE FROM records WHERE kind = ?1 AND number <=
                (SELECT number FROM records WHERE kind = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute(params![kind, RECORDS_MAX as i64])?;
    Ok(())
}

/// Drops the records of a range.
pub(super) fn drop_all(session: &Session<'_>, range: &RecordRange) -> Result<(), RowError> {
    let (first, last) = RecordSearch::all(range.clone()).bounds();
    session
        .statement("DELETE FROM records WHERE kind = ?1 AND key >= ?2 AND key <= ?3")?
        .execute(params![range.kind.word(), first, last])?;
    Ok(())
}

/// The records that are asked for, by their keys.
pub(super) fn search(
    session: &Session<'_>,
    search: &RecordSearch,
    at: StoreTime,
) -> Result<Vec<RecordSnapshot>, RowError> {
    let (first, last) = search.bounds();
    let mut statement = session.statement(
        "SELECT key, text, written_at_ms FROM records
         WHERE kind = ?1 AND key >= ?2 AND key <= ?3
            AND (deadline_ms IS NULL OR deadline_ms > ?4)
         ORDER BY key LIMIT ?5",
    )?;
    let kind = search.range.kind.word();
    let mut rows = statement.query(params![kind, first, last, at.now_ms, search.limit])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(RecordSnapshot {
            key: row.get(0)?,
            text: row.get(1)?,
            written_at: WallTime(row.get(2)?),
        });
    }
    Ok(records)
}
