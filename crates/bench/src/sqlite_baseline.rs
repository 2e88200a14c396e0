//! The SQLite baseline: the least work to insert and delete the row of a lock.

use rusqlite::{Connection, params};
use std::path::Path;
use std::time::Duration;

/// The busy timeout of bare SQLite, longer than any measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pairs of commits after which the log has its full length.
const WEAR_IN: usize = 600;

/// A small table, and the name of one row.
pub(crate) struct SqliteBaseline {
    connection: Connection,
    name: String,
}

impl SqliteBaseline {
    /// Creates the table.
    pub(crate) fn create(path: &Path) -> rusqlite::Result<()> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.execute_batch(
            "CREATE TABLE locks (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until_ms INTEGER NOT NULL)
             STRICT, WITHOUT ROWID",
        )
    }

    /// Creates the table and a log of full length: syncing a growing log takes longer.
    pub(crate) fn create_worn_in(path: &Path) -> rusqlite::Result<()> {
        SqliteBaseline::create(path)?;
        let baseline = SqliteBaseline::open(path, "row")?;
        // Each commit adds a page or more, and after a thousand pages SQLite restarts the log.
        (0..WEAR_IN).try_for_each(|_| baseline.insert().and_then(|()| baseline.delete()))
    }

    /// Opens the table for the row of this name. It syncs as little as the store does for locks.
    pub(crate) fn open(path: &Path, name: &str) -> rusqlite::Result<SqliteBaseline> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(SqliteBaseline { connection, name: name.to_owned() })
    }

    /// As [`SqliteBaseline::open`], with every commit synced, as the store does for tasks.
    pub(crate) fn open_durable(path: &Path, name: &str) -> rusqlite::Result<SqliteBaseline> {
        let baseline = SqliteBaseline::open(path, name)?;
        baseline.connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(baseline)
    }

    /// Inserts the row, in its own transaction.
    pub(crate) fn insert(&self) -> rusqlite::Result<()> {
        self.step("BEGIN IMMEDIATE", params![])?;
        self.step("INSERT INTO locks VALUES (?1, 'bench', 0)", params![self.name])?;
        self.step("COMMIT", params![])
    }

    /// Deletes the row, in another transaction.
    pub(crate) fn delete(&self) -> rusqlite::Result<()> {
        self.step("BEGIN IMMEDIATE", params![])?;
        self.step("DELETE FROM locks WHERE name = ?1", params![self.name])?;
        self.step("COMMIT", params![])
    }

    /// Deletes the row durably.
    pub(crate) fn delete_durably(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.delete()?;
        self.connection.pragma_update(None, "synchronous", "NORMAL")
    }

    fn step(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }
}
