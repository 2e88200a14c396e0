//! The embedded default: one SQLite file, shared by all processes of a machine.
//!
//! - `schema` — the tables. `open` — creating, migrating, and what a reboot changes.
//! - `batch` — one sync for many. The queue of writers and how they wake others is in
//!   `crate::store::ipc`.
//! - `log` — what a process that ends soon leaves to the next.
//! - `session` — one transaction. `read`, `write`, `tasks`, `answers` — records. `fault` — what SQLite's errors mean.
//!
//! Beside `NAME.db` lies a folder `NAME.db.side` with the queue's lock files, the mailboxes of
//! processes that wait, and the change signal. The database's own files are opened by SQLite only.

mod answers;
mod batch;
mod error;
mod forked;
mod log;
mod open;
mod read;
mod records;
mod schema;
mod session;
mod tasks;
mod write;

use crate::store::ipc::{self, Identity, IdentityError, Notifier, WriterQueue};
use crate::store::store_time::StoreTime;
use crate::store::{
    Answer, Committed, EventsAfter, Finding, Limits, Maintained, Maintenance, NewestEvents, Query,
    Renewal, Renewed, Signal, Store, StoreError, StoreInfo, Transaction, Trim, Waited, cannot_move,
};
use crate::world::{Clock, SystemClock};
use async_trait::async_trait;
use batch::Queue;
use error::Stage;
use log::Log;
use parking_lot::Mutex as SyncMutex;
use read::{Addresses, RowError};
use rusqlite::Connection;
use session::Session;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Change, GrantId, Revision, Scope, Write};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Opens a [`SqliteStore`] with other than the usual settings.
#[derive(Clone)]
pub struct SqliteOptions {
    /// The clock that judges leases.
    pub clock: Arc<dyn Clock>,
    /// After how many pages the log is folded into the database. A process that lives long does
    /// best with many; a one-shot command must read the whole log at its start, and wants few.
    pub checkpoint_pages: u32,
    /// Whether the process ends soon and does one thing at a time: it then opens and starts no
    /// more than it needs, and leaves no long log to the next one.
    pub one_shot: bool,
    /// How often to look for changes where the system cannot tell of them.
    pub poll_interval: Duration,
    /// Whether it is opened to look at it, and nothing is written, not even that the machine was
    /// rebooted: it may be a store that may not be written to, or is not in use here.
    pub look_only: bool,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            clock: Arc::new(SystemClock),
            // Four megabytes, as is usual in SQLite.
            checkpoint_pages: 2000,
            one_shot: false,
            poll_interval: Duration::from_secs(5),
            look_only: false,
        }
    }
}

/// How often a change tries to get its turn before it waits on another thread. Most changes take as long as
/// a few tries; to change threads and back takes several times as long.
const TURN_TRIES: usize = 64;

/// Keeps everything in one SQLite file.
pub struct SqliteStore {
    inner: Arc<Inner>,
}

/// What a store shares with the thread that writes for many.
struct Inner {
    path: PathBuf,
    /// Which file it was when it was opened.
    identity: Identity,
    /// See [`StoreInfo::ended_boots`].
    ended_boots: Vec<String>,
    /// Whether every change is synced: where no boot id can be read, a power loss would not be
    /// noticed, and numbers that were seen but not yet on disk would be given out again.
    sync_all: bool,
    options: SqliteOptions,
    writer: Arc<Mutex<Writer>>,
    /// Changes that are to be committed together.
    queue: Queue,
    /// A connection for looking, so that readers never keep a writer waiting.
    reader: SyncMutex<Option<Connection>>,
    notifier: Notifier,
}

struct Writer {
    connection: Connection,
    writer_queue: WriterQueue,
    /// The log, where it is to be kept short.
    log: Option<Log>,
    /// How safely the connection commits now; none if that is not known.
    synchronous: Cell<Option<Synchronous>>,
}

impl Writer {
    /// Says how safely the next transaction is committed. SQLite applies this when the statement is
    /// prepared, so it must be prepared each time; changes of one kind mostly follow each other.
    fn commit_mode(&self, mode: Synchronous) -> Result<(), SqliteError> {
        if self.synchronous.replace(None) != Some(mode) {
            let word = if mode == Synchronous::Full { "FULL" } else { "NORMAL" };
            let set = self.connection.pragma_update(None, "synchronous", word);
            set.map_err(SqliteError::before)?;
        }
        self.synchronous.set(Some(mode));
        Ok(())
    }

    /// Keeps the log short, after a commit, while the turn is kept.
    fn fold_log(&self) {
        if let Some(log) = &self.log {
            log.fold(&self.connection, open::BUSY_PATIENCE);
        }
    }
}

impl SqliteStore {
    /// Opens the store in this file, creating it if there is none.
    pub fn open(path: &Path) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(path, SqliteOptions::default())
    }

    /// Opens the store in this file with these settings.
    pub fn open_with(path: &Path, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
        let path = &open::resolve(path);
        open::ensure_there(path)?;
        let identity = Identity::of_path(path.clone());
        let identity = identity.map_err(|error| open::cannot_look(path, &error))?;
        let mut connection = open::open(path, &options)?;
        let side = open::side_folder(path);
        let io = |error| error::from_io(path, "its side folder cannot be used", &error);
        let writer_queue = WriterQueue::open(&side, options.look_only).map_err(io)?;
        let notifier = Notifier::open(&side, options.look_only).map_err(io)?;
        let ended_boots = open::bring_up_to_date(path, &mut connection, &writer_queue, &options)?;
        let log = options.one_shot.then(|| Log::new(path, options.checkpoint_pages));
        let synchronous = Cell::new(Some(Synchronous::Normal));
        let writer = Writer { connection, writer_queue, log, synchronous };
        let writer = Arc::new(Mutex::new(writer));
        let inner = Inner {
            path: path.to_owned(),
            identity,
            ended_boots,
            sync_all: options.clock.boot().is_empty(),
            options,
            writer,
            queue: Queue::default(),
            reader: SyncMutex::new(None),
            notifier,
        };
        // What was opened above is the file whose identity was taken.
        inner.check_identity()?;
        forked::take_missing_locks(path).map_err(io)?;
        Ok(SqliteStore { inner: Arc::new(inner) })
    }
}

impl Inner {
    /// Fails if the database file was removed or replaced since it was opened: other processes use
    /// another file by now, so locks in this one exclude no other process. To be called before a
    /// change, and again before it is reported: it must not have gone to a file that no other process
    /// uses.
    fn check_identity(&self) -> Result<(), StoreError> {
        self.identity.check().map_err(|error| match error {
            IdentityError::Lost => error::gone(&self.path),
            IdentityError::Unreadable(error) => open::cannot_look(&self.path, &error),
        })
    }

    /// What an error means. In a file that was removed or replaced, any error comes of that.
    fn report(&self, trouble: SqliteError) -> StoreError {
        match self.identity.check() {
            Err(IdentityError::Lost) => error::gone(&self.path),
            _ => trouble.report(&self.path),
        }
    }

    /// Waits for this process's turn, then for that among processes.
    async fn enter(&self) -> Result<WriteTurn, StoreError> {
        self.check_identity()?;
        let writer = self.own_turn().await?;
        self.take_turn(writer).await
    }

    /// Waits for the turn among those of this process.
    async fn own_turn(&self) -> Result<OwnedMutexGuard<Writer>, StoreError> {
        match self.writer.clone().try_lock_owned() {
            Ok(writer) => Ok(writer),
            Err(_) => self.unless_stopped(self.writer.clone().lock_owned()).await,
        }
    }

    /// Waits, but not for ever behind a process that is stopped.
    async fn unless_stopped<T>(&self, turn: impl Future<Output = T>) -> Result<T, StoreError> {
        let folder = open::side_folder(&self.path);
        let waited = ipc::unless_stopped(&folder, turn).await;
        waited.map_err(|pid| ipc::stopped(error::store_name(&self.path), pid))
    }

    /// Waits for the turn among processes.
    async fn take_turn(&self, writer: OwnedMutexGuard<Writer>) -> Result<WriteTurn, StoreError> {
        let io = |error| self.no_turn(&error);
        for _ in 0..TURN_TRIES {
            if writer.writer_queue.try_enter().map_err(io)? {
                return Ok(WriteTurn { writer });
            }
            std::thread::yield_now();
        }
        // The kernel may keep us waiting: not on a thread that others share.
        let waiting = tokio::task::spawn_blocking(move || {
            writer.writer_queue.enter()?;
            Ok(WriteTurn { writer })
        });
        // If it is given up, the thread goes on waiting, and lets the next writer in at once.
        match self.unless_stopped(waiting).await? {
            Ok(turn) => turn.map_err(io),
            Err(error) => Err(StoreError::Unavailable {
                store: error::store_name(&self.path),
                reason: error.to_string(),
                hint: None,
            }),
        }
    }

    fn no_turn(&self, error: &std::io::Error) -> StoreError {
        error::from_io(&self.path, "its queue cannot be entered", error)
    }

    fn write(
        &self,
        turn: &WriteTurn,
        transaction: &mut Transaction,
    ) -> Result<Written, SqliteError> {
        let written = self.attempt(&turn.writer, transaction, Synchronous::Normal)?;
        if !written.needs_sync {
            return Ok(written);
        }
        // How safely to commit must be said before a transaction begins, but only the rule knows:
        // so it is asked again.
        self.attempt(&turn.writer, transaction, Synchronous::Full)
    }

    fn attempt(
        &self,
        writer: &Writer,
        transaction: &mut Transaction,
        mode: Synchronous,
    ) -> Result<Written, SqliteError> {
        let begun = SqlTransaction::begin(writer, mode)?;
        let session = Session::new(&writer.connection);
        let durably = mode == Synchronous::Full;
        let written = self.choose_and_write(&session, transaction, durably)?;
        if written.changed {
            begun.commit()?;
        }
        Ok(written)
    }

    /// Starts leases anew. After a power loss a lease begins anew, so that a renewal which is lost
    /// then costs nothing; but its holder must not trust it for longer than the store knows, so
    /// that one which makes a lease longer is synced.
    fn renew(&self, writer: &Writer, renewals: &[Renewal]) -> Result<Vec<Renewed>, SqliteError> {
        let renewed = match self.attempt_renewal(writer, renewals, Synchronous::Normal)? {
            Some(renewed) => Some(renewed),
            None => self.attempt_renewal(writer, renewals, Synchronous::Full)?,
        };
        Ok(renewed.unwrap_or_default())
    }

    /// The same once; nothing where it must be synced and is not to be.
    fn attempt_renewal(
        &self,
        writer: &Writer,
        renewals: &[Renewal],
        mode: Synchronous,
    ) -> Result<Option<Vec<Renewed>>, SqliteError> {
        let transaction = SqlTransaction::begin(writer, mode)?;
        let session = Session::new(&writer.connection);
        let at = StoreTime::of(&*self.options.clock);
        let mut lengthens = false;
        let renewed: Result<Vec<Renewed>, RowError> = renewals
            .iter()
            .map(|renewal| write::renew(&session, renewal, at, &mut lengthens))
            .collect();
        let renewed = renewed?;
        if lengthens && mode != Synchronous::Full {
            return Ok(None);
        }
        transaction.commit()?;
        Ok(Some(renewed))
    }

    /// Removes old events. What comes back after a power loss is removed again later.
    fn trim(&self, writer: &Writer, trim: Trim) -> Result<u64, SqliteError> {
        let transaction = SqlTransaction::begin(writer, Synchronous::Normal)?;
        let at = StoreTime::of(&*self.options.clock);
        let trimmed = write::trim_events(&Session::new(&writer.connection), trim, at)?;
        transaction.commit()?;
        Ok(trimmed)
    }

    /// Lets the rule choose, and writes, inside a database transaction that the caller ends.
    fn choose_and_write(
        &self,
        session: &Session<'_>,
        transaction: &mut Transaction,
        durably: bool,
    ) -> Result<Written, SqliteError> {
        let at = StoreTime::of(&*self.options.clock);
        let slot = transaction.slot().map(str::to_owned);
        let chosen = transaction.choose(|scope| {
            let (mut snapshot, addresses) = read::show(session, scope, at)?;
            if let Some(slot) = &slot {
                snapshot.answered = answers::get(session, slot)?;
            }
            Ok::<_, RowError>((snapshot, addresses))
        })?;
        let (seen, addresses) = (chosen.snapshot, chosen.beside);
        let mut written = Written {
            revision: None,
            changed: false,
            has_news: false,
            needs_sync: false,
            wake: vec![],
        };
        let Some(change) = chosen.change else { return Ok(written) };
        if (change.durable || self.sync_all) && !durably {
            written.needs_sync = true;
            return Ok(written);
        }
        for write in &change.writes {
            if let Write::Wait(waiter) | Write::KeepPlace(waiter) = write {
                self.notifier.expect(waiter.grant);
            }
        }
        let newest = write::apply(session, &change, seen.next, at, self.notifier.address())
            .map_err(|error| SqliteError { stage: Stage::Within, error })?;
        written.revision = (newest > seen.revision.0).then_some(Revision(newest));
        written.changed = true;
        written.has_news = written.revision.is_some();
        written.wake = self.follow_up(change, addresses);
        Ok(written)
    }

    /// Wakes waiters and watchers after the commit.
    fn tell(&self, written: Written) -> Committed {
        for (grant, address) in written.wake {
            self.notifier.wake(grant, &address);
        }
        if written.has_news {
            self.notifier.signal_change();
        }
        Committed { revision: written.revision }
    }

    /// Forgets who waits no longer, and finds the addresses of those to wake.
    fn follow_up(&self, change: Change, mut addresses: Addresses) -> Vec<(GrantId, String)> {
        for write in &change.writes {
            if let Write::DropWait(waiter) = write {
                self.notifier.forget(waiter.grant);
            }
        }
        let found = change.wake.into_iter();
        found.filter_map(|grant| Some((grant, addresses.remove(&grant)?))).collect()
    }

    fn with_reader<T>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, RowError>,
    ) -> Result<T, StoreError> {
        self.check_identity()?;
        // A process that serves no other caller does not need a second connection.
        if self.options.one_shot
            && let Ok(writer) = self.writer.try_lock()
        {
            let acted = check_version(&writer.connection).and_then(|()| act(&writer.connection));
            return acted.map_err(|error| self.report(error.into()));
        }
        let mut reader = self.reader.lock();
        if reader.is_none() {
            *reader = Some(open::connect(&self.path, self.options.checkpoint_pages)?);
        }
        let connection = reader.as_ref().expect("it was opened just above");
        let acted = check_version(connection).and_then(|()| act(connection));
        acted.map_err(|error| self.report(error.into()))
    }
}

/// Fails if a newer program brought the store to its version since it was opened here.
fn check_version(connection: &Connection) -> Result<(), RowError> {
    let mut version = connection.prepare_cached("PRAGMA user_version")?;
    match version.query_row([], |row| row.get(0))? {
        schema::VERSION => Ok(()),
        newer => Err(RowError::Newer(newer)),
    }
}

/// The right to write, given back when dropped.
struct WriteTurn {
    writer: OwnedMutexGuard<Writer>,
}

impl WriteTurn {
    /// Waits for it on a thread that may wait.
    fn wait_for(writer: &Arc<Mutex<Writer>>) -> std::io::Result<WriteTurn> {
        let writer = writer.clone().blocking_lock_owned();
        writer.writer_queue.enter()?;
        Ok(WriteTurn { writer })
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        // If not, the kernel gives it back at the latest when the file is closed.
        let _ = self.writer.writer_queue.leave();
    }
}

struct Written {
    revision: Option<Revision>,
    changed: bool,
    /// Whether watchers have something to see.
    has_news: bool,
    needs_sync: bool,
    wake: Vec<(GrantId, String)>,
}

struct SqliteError {
    stage: Stage,
    error: RowError,
}

impl SqliteError {
    fn before(error: rusqlite::Error) -> SqliteError {
        SqliteError { stage: Stage::Before, error: error.into() }
    }

    fn report(self, path: &Path) -> StoreError {
        match self.error {
            RowError::Sqlite(error) => error::from_sqlite(path, self.stage, &error),
            RowError::Format(error) => error::from_format(path, &error),
            RowError::Newer(version) => error::too_new(path, version),
        }
    }
}

impl From<RowError> for SqliteError {
    fn from(error: RowError) -> SqliteError {
        SqliteError { stage: Stage::Before, error }
    }
}

/// How safely a transaction is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Synchronous {
    /// Another process sees it; a power loss may undo it.
    Normal,
    /// It is on disk.
    Full,
}

/// A transaction that is undone unless committed. Unlike rusqlite's own it uses prepared
/// statements, which halves its cost.
struct SqlTransaction<'a> {
    connection: &'a Connection,
    open: bool,
}

impl SqlTransaction<'_> {
    fn begin(writer: &Writer, mode: Synchronous) -> Result<SqlTransaction<'_>, SqliteError> {
        let connection = &writer.connection;
        writer.commit_mode(mode)?;
        let begin = || connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]);
        begin().map_err(SqliteError::before)?;
        let begun = SqlTransaction { connection, open: true };
        check_version(connection)?;
        Ok(begun)
    }

    fn commit(mut self) -> Result<(), SqliteError> {
        let commit = || self.connection.prepare_cached("COMMIT")?.execute([]);
        commit().map_err(|error| SqliteError { stage: Stage::Commit, error: error.into() })?;
        self.open = false;
        Ok(())
    }
}

impl Drop for SqlTransaction<'_> {
    fn drop(&mut self) {
        if self.open {
            let _ = self.connection.prepare_cached("ROLLBACK").and_then(|mut sql| sql.execute([]));
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            url: error::store_name(&self.inner.path),
            engine: format!("SQLite {}", rusqlite::version()),
            local: true,
            limits: Limits::LOCAL,
            ended_boots: self.inner.ended_boots.clone(),
            is_new: false,
        }
    }

    async fn transact(&self, mut transaction: Transaction) -> Result<Committed, StoreError> {
        let inner = &self.inner;
        let is_of_tasks = matches!(transaction.scope, Scope::Tasks(_));
        if !inner.options.one_shot && is_of_tasks {
            return inner.transact_together(transaction).await;
        }
        let turn = inner.enter().await?;
        let written = match (inner.options.one_shot, is_of_tasks) {
            (true, true) => {
                inner.commit_together(&turn, std::iter::once(&mut transaction))?.remove(0)
            }
            (true, false) => {
                let written = inner.write(&turn, &mut transaction);
                turn.writer.fold_log();
                written.map_err(|trouble| inner.report(trouble))
            }
            (false, _) => {
                let written = inner.attempt(&turn.writer, &mut transaction, Synchronous::Normal);
                written.map_err(|trouble| inner.report(trouble))
            }
        };
        drop(turn);
        let written = written?;
        if written.needs_sync {
            return inner.transact_together(transaction).await;
        }
        inner.check_identity()?;
        Ok(inner.tell(written))
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let inner = &self.inner;
        let turn = inner.enter().await?;
        let renewed = inner.renew(&turn.writer, renewals);
        let renewed = renewed.map_err(|trouble| inner.report(trouble))?;
        inner.check_identity()?;
        Ok(renewed)
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        self.inner.with_reader(|connection| match query {
            Query::Snapshot(scope) => {
                // One transaction, so that all is seen at one moment.
                let transaction = connection.unchecked_transaction()?;
                let at = StoreTime::of(&*self.inner.options.clock);
                let (snapshot, _) = read::show(&Session::new(&transaction), &scope, at)?;
                Ok(Answer::Snapshot(Box::new(snapshot)))
            }
            Query::Events(EventsAfter { after, limit }) => {
                read::events(&Session::new(connection), after, limit).map(Answer::Events)
            }
            Query::NewestEvents(NewestEvents { limit }) => {
                read::newest_events(&Session::new(connection), limit).map(Answer::Events)
            }
            Query::SearchEvents(search) => {
                read::search_events(&Session::new(connection), &search).map(Answer::Events)
            }
            Query::Records(search) => {
                let at = StoreTime::of(&*self.inner.options.clock);
                records::search(&Session::new(connection), &search, at).map(Answer::Records)
            }
            Query::Tasks(filter) => {
                tasks::list(&Session::new(connection), &filter).map(Answer::Tasks)
            }
            Query::TaskCounts => tasks::tallies(&Session::new(connection)).map(Answer::TaskCounts),
            Query::SurplusTasks(asked) => {
                // One transaction: counted and listed at one moment.
                let transaction = connection.unchecked_transaction()?;
                let wall_ms = StoreTime::of(&*self.inner.options.clock).wall_ms;
                let surplus = tasks::surplus(&Session::new(&transaction), &asked, wall_ms)?;
                Ok(Answer::SurplusTasks(surplus))
            }
        })
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        let inner = &self.inner;
        match signal {
            Signal::Change { since } => {
                let newest = || {
                    let read = |connection: &Connection| read::newest(&Session::new(connection));
                    inner.with_reader(read).map(Revision)
                };
                let poll_interval = inner.options.poll_interval;
                let changed = inner.notifier.changed(newest, since, patience, poll_interval).await;
                changed.map(Waited::Change)
            }
            Signal::Turn { grant } => {
                inner.notifier.wait(grant, patience).await;
                Ok(Waited::Turn)
            }
        }
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        let inner = &self.inner;
        match work {
            Maintenance::Tidy => {
                inner.check_identity()?;
                Ok(Maintained::Tidied(inner.notifier.tidy()))
            }
            Maintenance::Leftovers => Ok(Maintained::Left(inner.notifier.leftovers().len())),
            Maintenance::Check => {
                let mut findings = inner.with_reader(|connection| Ok(check(connection)?))?;
                findings.extend(log::check(&inner.path));
                findings.push(Finding::leftovers(inner.notifier.leftovers().len()));
                Ok(Maintained::Checked(findings))
            }
            Maintenance::Moved => Err(cannot_move()),
            Maintenance::Trim(trim) => {
                // Most turns find nothing to remove; they need not wait for their turn to write.
                let dry_run = Trim { dry_run: true, ..trim };
                let surplus = inner.with_reader(|connection| {
                    let transaction = connection.unchecked_transaction()?;
                    let at = StoreTime::of(&*inner.options.clock);
                    write::trim_events(&Session::new(&transaction), dry_run, at)
                })?;
                if surplus == 0 || trim.dry_run {
                    return Ok(Maintained::Trimmed(surplus));
                }
                let turn = inner.enter().await?;
                let trimmed = inner.trim(&turn.writer, trim);
                let trimmed = trimmed.map_err(|trouble| inner.report(trouble))?;
                drop(turn);
                inner.check_identity()?;
                Ok(Maintained::Trimmed(trimmed))
            }
        }
    }
}

fn check(connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    let version: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    Ok(vec![
        Finding {
            subject: "integrity".to_owned(),
            ok: verdict == "ok",
            message: format!("SQLite's quick check says: {verdict}"),
        },
        Finding {
            subject: "schema".to_owned(),
            ok: version == schema::VERSION,
            message: format!("version {version}"),
        },
        Finding {
            subject: "journal".to_owned(),
            ok: journal.eq_ignore_ascii_case("wal"),
            message: format!("mode {journal}"),
        },
    ])
}
