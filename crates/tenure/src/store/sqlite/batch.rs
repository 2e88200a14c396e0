//! Durable changes of several callers that share one sync.
//!
//! A sync takes a hundred times as long as the rest of a change. So a durable change does not
//! commit by itself: it leaves its transaction open for a moment, others of the same process add
//! theirs, and one commit makes all of them durable. Nobody is answered before that commit.
//!
//! A change that cannot be shown what it looks at fails alone. One that fails while it is written,
//! which is for want of space or a broken disk, takes all of its batch with it: savepoints would
//! tell them apart, and cost every change a tenth of its time.

use super::fault::{self, Stage};
use super::{Seat, SqliteStore, Synchronous, Trouble, Writer, Written, synchronous};
use crate::store::{Decide, StoreError};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::Look;
use tokio::sync::{Mutex, watch};

/// A transaction that is open, with the seat among processes kept, and those who wait for it.
pub(super) struct Batch {
    /// Whether those who watch were told of it: once is enough for all changes.
    is_told: Arc<AtomicBool>,
    outcome: watch::Sender<Option<Result<(), StoreError>>>,
}

impl SqliteStore {
    /// Makes a durable change together with others.
    pub(super) async fn transact_together(
        &self,
        slot: Option<&str>,
        look: &Look,
        decide: Decide<'_>,
    ) -> Result<Written, StoreError> {
        let writer = self.own_turn().await?;
        let first = writer.batch.is_none();
        let mut seat = match first {
            true => self.take_seat(writer).await?,
            false => Seat { writer },
        };
        if first {
            begin(&seat.writer.connection).map_err(|trouble| trouble.report(&self.path))?;
            let outcome = watch::Sender::new(None);
            seat.writer.batch = Some(Batch { is_told: Arc::default(), outcome });
        }
        let batch = seat.writer.batch.as_ref().expect("there is one, or it was just made");
        let (mut outcome, is_told) = (batch.outcome.subscribe(), batch.is_told.clone());
        let connection = &seat.writer.connection;
        let written = self.look_and_write(connection, slot, look, decide, true);
        let written = match written {
            // SQLite itself undoes all after some errors.
            Err(trouble) if trouble.stage == Stage::Within || connection.is_autocommit() => {
                let error = trouble.report(&self.path);
                abandon(&mut seat.writer, error.clone());
                return Err(error);
            }
            written => written,
        };
        drop(seat);
        if first && self.options.one_shot {
            commit_now(&self.path, &mut *self.writer.lock().await);
        } else if first {
            // A task of its own: the batch must be committed even if this caller goes away.
            tokio::spawn(commit_soon(self.writer.clone(), self.path.clone()));
        }
        // Also one who changed nothing waits: what it saw may be part of the batch.
        let committed = outcome.wait_for(Option::is_some).await;
        let committed = committed.ok().and_then(|outcome| outcome.clone());
        committed.unwrap_or_else(|| Err(interrupted(&self.path)))?;
        let mut written = written.map_err(|trouble| trouble.report(&self.path))?;
        written.has_news = written.has_news && !is_told.swap(true, Ordering::Relaxed);
        Ok(written)
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute([])
}

fn begin(connection: &Connection) -> Result<(), Trouble> {
    synchronous(connection, Synchronous::Full)?;
    let begun = run(connection, "BEGIN IMMEDIATE");
    if begun.is_err() {
        synchronous(connection, Synchronous::Normal)?;
    }
    begun.map(|_| ()).map_err(Trouble::before)
}

fn interrupted(path: &Path) -> StoreError {
    StoreError::Unknown {
        store: fault::store_name(path),
        reason: "the commit was interrupted".to_owned(),
    }
}

/// Lets whoever is ready add to the batch, then commits it, on a thread that may wait for the disk.
async fn commit_soon(writer: Arc<Mutex<Writer>>, path: PathBuf) {
    tokio::task::yield_now().await;
    let mut writer = writer.lock_owned().await;
    if writer.batch.is_some() {
        let _ = tokio::task::spawn_blocking(move || commit_now(&path, &mut writer)).await;
    }
}

/// Undoes the open batch, and tells all who wait for it why. Its seat is left with the caller.
fn abandon(writer: &mut Writer, error: StoreError) {
    let Some(batch) = writer.batch.take() else { return };
    let _ = run(&writer.connection, "ROLLBACK");
    let _ = synchronous(&writer.connection, Synchronous::Normal);
    batch.outcome.send_replace(Some(Err(error)));
}

/// Commits the open batch, if there is one, and tells all who wait for it.
pub(super) fn commit_now(path: &Path, writer: &mut Writer) {
    let Some(batch) = writer.batch.take() else { return };
    let committed = run(&writer.connection, "COMMIT").map(|_| ());
    let committed = committed.map_err(|error| {
        let _ = run(&writer.connection, "ROLLBACK");
        fault::from_sqlite(path, Stage::Commit, &error)
    });
    // Whether this fails or not, the next durable change says again how it wants to commit.
    let _ = synchronous(&writer.connection, Synchronous::Normal);
    writer.fold_log();
    let _ = writer.turnstile.leave();
    batch.outcome.send_replace(Some(committed));
}
