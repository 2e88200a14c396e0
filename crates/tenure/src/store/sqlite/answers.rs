//! What was answered to requests that may be repeated.

use super::read::RowError;
use super::session::Session;
use crate::store::store_time::StoreTime;
use crate::store::{ANSWERS_KEPT, ANSWERS_MAX};
use rusqlite::{OptionalExtension, params};
use tenure_core::StoredReply;

/// What was answered last under this slot.
pub(super) fn get(session: &Session<'_>, slot: &str) -> Result<Option<StoredReply>, RowError> {
    let mut statement = session.statement("SELECT number, text FROM answers WHERE slot = ?1")?;
    let row = statement.query_row([slot], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
    let row = row.optional()?;
    Ok(row.map(|(number, text)| StoredReply { slot: slot.to_owned(), number: number as u64, text }))
}

/// How much older than it is an answer may be taken for: so its age need not be written each time.
const AGE_COARSE_MS: i64 = 60 * 1000;

/// Remembers an answer in the place of the last one under its slot.
pub(super) fn put(
    session: &Session<'_>,
    answered: &StoredReply,
    at: StoreTime,
) -> Result<(), RowError> {
    let StoredReply { slot, number, text } = answered;
    let recent_ms = at.now_ms.saturating_sub(AGE_COARSE_MS);
    let replaced = session
        .statement("UPDATE answers SET number = ?2, text = ?3 WHERE slot = ?1 AND at_ms > ?4")?
        .execute(params![slot, *number as i64, text, recent_ms])?;
    match replaced {
        0 => add(session, answered, at),
        _ => Ok(()),
    }
}

/// Begins a slot, or begins it anew, and forgets two that are old: more than come, so that they stay
/// few. Row numbers rise with each that begins, so they tell how many came since.
fn add(session: &Session<'_>, answered: &StoredReply, at: StoreTime) -> Result<(), RowError> {
    let StoredReply { slot, number, text } = answered;
    session
        .statement(
            "INSERT OR REPLACE INTO answers (slot, number, text, at_ms) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![slot, *number as i64, text, at.now_ms])?;
    let kept_ms = ANSWERS_KEPT.as_millis() as i64 + AGE_COARSE_MS;
    session
        .statement(
            "DELETE FROM answers WHERE slot IN
                (SELECT slot FROM answers WHERE at_ms < ?1 ORDER BY at_ms LIMIT 2)",
        )?
        .execute([at.now_ms.saturating_sub(kept_ms)])?;
    session
        .statement("DELETE FROM answers WHERE rowid <= (SELECT max(rowid) FROM answers) - ?1")?
        .execute([ANSWERS_MAX as i64])?;
    Ok(())
}
