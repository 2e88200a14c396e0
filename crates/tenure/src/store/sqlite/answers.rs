//! What was answered to requests that may be repeated.

use super::read::RowError;
use crate::store::ANSWERS_KEPT;
use crate::store::moment::Moment;
use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::Answered;

/// What was answered last under this slot.
pub(super) fn get(connection: &Connection, slot: &str) -> Result<Option<Answered>, RowError> {
    let mut statement =
        connection.prepare_cached("SELECT number, text FROM answers WHERE slot = ?1")?;
    let row = statement.query_row([slot], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
    let row = row.optional()?;
    Ok(row.map(|(number, text)| Answered { slot: slot.to_owned(), number: number as u64, text }))
}

/// Remembers an answer, and forgets a few that are old: more than come, so that they stay few.
pub(super) fn put(
    connection: &Connection,
    answered: &Answered,
    at: Moment,
) -> Result<(), RowError> {
    let Answered { slot, number, text } = answered;
    connection
        .prepare_cached(
            "INSERT INTO answers (slot, number, text, at_ms) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET number = ?2, text = ?3, at_ms = ?4",
        )?
        .execute(params![slot, *number as i64, text, at.wall_ms])?;
    if *number == 1 {
        connection
            .prepare_cached(
                "DELETE FROM answers WHERE slot IN
                    (SELECT slot FROM answers WHERE at_ms < ?1 ORDER BY at_ms LIMIT 2)",
            )?
            .execute([at.wall_ms.saturating_sub(ANSWERS_KEPT.as_millis() as i64)])?;
    }
    Ok(())
}
