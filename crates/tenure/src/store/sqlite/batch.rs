//! Durable changes of several callers that share one sync.
//!
//! A sync takes a hundred times as long as the rest of a change. So a durable change does not
//! commit by itself: it leaves its transaction open for a moment, others of the same process add
//! theirs, each in a savepoint of its own, and one commit makes all of them durable. Nobody is
//! answered before that.
//!
//! Where others wait already, the next batch begins while the last one is being synced. For that the
//! commit leaves the sync to us: in SQLite's `NORMAL` mode a commit is in the log, whole and in order,
//! and to sync the log's file is all that `FULL` would do beside. The log carries no locks, so that,
//! unlike the database, it may be opened once more. The first commit of a handle is SQLite's own: it
//! also makes the file's name durable.

use super::fault::{self, Stage};
use super::{Seat, SqliteStore, Synchronous, Trouble, Writer, Written, synchronous};
use crate::store::{Decide, StoreError};
use rusqlite::Connection;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
            begin(&seat.writer).map_err(|trouble| trouble.report(&self.path))?;
            let outcome = watch::Sender::new(None);
            seat.writer.batch = Some(Batch { is_told: Arc::default(), outcome });
        }
        let batch = seat.writer.batch.as_ref().expect("there is one, or it was just made");
        let (mut outcome, is_told) = (batch.outcome.subscribe(), batch.is_told.clone());
        let written = self.add(&seat.writer.connection, slot, look, decide);
        drop(seat);
        if first && self.options.one_shot {
            let unsynced = commit(&self.path, &mut *self.writer.lock().await);
            debug_assert!(unsynced.is_none(), "a one-shot leaves the sync to SQLite");
        } else if first {
            // A task of its own: the batch must be committed even if this caller goes away.
            let (writer, path) = (self.writer.clone(), self.path.clone());
            tokio::spawn(commit_soon(writer, path, self.queued.clone()));
        }
        // Also one who changed nothing waits: what it saw may be part of the batch.
        let committed = outcome.wait_for(Option::is_some).await;
        let committed = committed.ok().and_then(|outcome| outcome.clone());
        committed.unwrap_or_else(|| Err(interrupted(&self.path)))?;
        let mut written = written.map_err(|trouble| trouble.report(&self.path))?;
        written.has_news = written.has_news && !is_told.swap(true, Ordering::Relaxed);
        Ok(written)
    }

    /// Adds one change to the open transaction; if it fails, the others are not touched.
    fn add(
        &self,
        connection: &Connection,
        slot: Option<&str>,
        look: &Look,
        decide: Decide<'_>,
    ) -> Result<Written, Trouble> {
        run(connection, "SAVEPOINT one").map_err(Trouble::before)?;
        let written = self.look_and_write(connection, slot, look, decide, true);
        if written.is_err() {
            run(connection, "ROLLBACK TO one").map_err(Trouble::before)?;
        }
        run(connection, "RELEASE one").map_err(Trouble::before)?;
        written
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute([])
}

fn begin(writer: &Writer) -> Result<(), Trouble> {
    let connection = &writer.connection;
    if writer.wal.is_none() {
        synchronous(connection, Synchronous::Full)?;
    }
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
async fn commit_soon(writer: Arc<Mutex<Writer>>, path: PathBuf, queued: Arc<AtomicUsize>) {
    tokio::task::yield_now().await;
    let mut writer = writer.lock_owned().await;
    if writer.batch.is_none() {
        return;
    }
    let commit = move || {
        let Some(unsynced) = commit(&path, &mut writer) else { return };
        if queued.load(Ordering::Relaxed) == 0 {
            unsynced.sync();
            let _ = writer.turnstile.leave();
        } else {
            let _ = writer.turnstile.leave();
            drop(writer);
            unsynced.sync();
        }
    };
    let _ = tokio::task::spawn_blocking(commit).await;
}

/// A batch that is committed and not yet on disk. Those who wait for it are told that it was
/// interrupted if this is dropped.
pub(super) struct Unsynced {
    batch: Batch,
    wal: Arc<File>,
    path: PathBuf,
}

impl Unsynced {
    /// Makes it durable, and tells all who wait for it.
    pub(super) fn sync(self) {
        let synced = self.wal.sync_data().map_err(|error| StoreError::Unknown {
            store: fault::store_name(&self.path),
            reason: format!("its log could not be synced: {error}"),
        });
        self.batch.outcome.send_replace(Some(synced));
    }
}

/// Commits the open batch, if there is one. It is still to be synced, and the seat to be left, where
/// one is returned; otherwise all who wait for it are told.
pub(super) fn commit(path: &Path, writer: &mut Writer) -> Option<Unsynced> {
    let batch = writer.batch.take()?;
    let committed = run(&writer.connection, "COMMIT").map(|_| ());
    let committed = committed.map_err(|error| {
        let _ = run(&writer.connection, "ROLLBACK");
        fault::from_sqlite(path, Stage::Commit, &error)
    });
    if let (Ok(()), Some(wal)) = (&committed, &writer.wal) {
        return Some(Unsynced { batch, wal: wal.clone(), path: path.to_owned() });
    }
    if committed.is_ok() && writer.log.is_none() {
        // Without it, commits are SQLite's own.
        writer.wal = open_wal(path).ok().map(Arc::new);
    }
    // Whether this fails or not, the next durable change says again how it wants to commit.
    let _ = synchronous(&writer.connection, Synchronous::Normal);
    writer.fold_log();
    let _ = writer.turnstile.leave();
    batch.outcome.send_replace(Some(committed));
    None
}

fn open_wal(path: &Path) -> std::io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    // Some systems sync only what was opened for writing.
    File::options().read(true).write(true).open(name)
}
