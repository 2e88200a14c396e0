//! The floor: the least that bare SQLite must do to note a lock and to strike it out again.

use rusqlite::{Connection, params};
use std::path::Path;
use std::time::Duration;

/// How long bare SQLite retries before it gives up: longer than any measurement lasts.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pairs of commits after which the log has its full length.
const WEAR_IN: usize = 600;

/// A small table, and one row of it.
pub(super) struct Floor {
    connection: Connection,
    name: String,
}

impl Floor {
    /// Makes the table.
    pub(super) fn create(path: &Path) -> rusqlite::Result<()> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.execute_batch(
            "CREATE TABLE locks (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until_ms INTEGER NOT NULL)
             STRICT, WITHOUT ROWID",
        )
    }

    /// Makes the table and a log that has its full length: to sync one that grows takes longer.
    pub(super) fn create_worn_in(path: &Path) -> rusqlite::Result<()> {
        Floor::create(path)?;
        let floor = Floor::open(path, "row")?;
        // Each commit adds a page or more, and after a thousand SQLite begins the log anew.
        (0..WEAR_IN).try_for_each(|_| floor.insert().and_then(|()| floor.delete()))
    }

    /// Opens the table that was made, for the row of this name. Syncs as little as the store does
    /// for locks.
    pub(super) fn open(path: &Path, name: &str) -> rusqlite::Result<Floor> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(Floor { connection, name: name.to_owned() })
    }

    /// The same, with every commit synced, as the store does for tasks.
    pub(super) fn open_durable(path: &Path, name: &str) -> rusqlite::Result<Floor> {
        let floor = Floor::open(path, name)?;
        floor.connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(floor)
    }

    /// Notes the lock, in a transaction of its own.
    pub(super) fn insert(&self) -> rusqlite::Result<()> {
        self.step("BEGIN IMMEDIATE", params![])?;
        self.step("INSERT INTO locks VALUES (?1, 'bench', 0)", params![self.name])?;
        self.step("COMMIT", params![])
    }

    /// Strikes it out, in another.
    pub(super) fn delete(&self) -> rusqlite::Result<()> {
        self.step("BEGIN IMMEDIATE", params![])?;
        self.step("DELETE FROM locks WHERE name = ?1", params![self.name])?;
        self.step("COMMIT", params![])
    }

    /// Strikes it out so that it stays so when the power fails.
    pub(super) fn delete_durably(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.delete()?;
        self.connection.pragma_update(None, "synchronous", "NORMAL")
    }

    fn step(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }
}
