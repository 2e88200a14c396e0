//! The store without a database: readable files in a folder, shared by all processes of a machine.
//!
//! - `journal/` — every change, one line each; it decides. `line` is how a line shows that it is
//!   whole.
//! - `done/` — completed tasks (`archive`). `held/` — what is held, for people (`held`).
//! - `side/` — the queue of writers, mailboxes, the change signal, and the offset up to which `held/`
//!   follows the journal.
//! - `aside/` — what could not be read and was kept.
//!
//! Each handle keeps a ledger in memory and reads what others added before it looks.

mod archive;
mod dialect;
mod error;
mod failpoint;
mod held;
mod journal;
mod line;
mod positional_io;
mod published_offset;
mod reusable_file;
mod small_records;
mod state;

pub use dialect::{Dialect, DialectError, HoldDefaults, TakeoverRules};
#[doc(hidden)]
pub use failpoint::{DIALECT_STEPS, STEPS};

use crate::platform::access;
use crate::store::boot::Reboot;
use crate::store::ipc::{self, Identity, IdentityError, Notifier, WriterQueue};
use crate::store::store_time::StoreTime;
use crate::store::{
    Answer, Committed, EventsAfter, Finding, Limits, Maintained, Maintenance, NewestEvents, Query,
    Renewal, Renewed, Signal, Store, StoreError, StoreInfo, Transaction, Trim, Waited, cannot_move,
};
use crate::url::StoreUrl;
use crate::world::{Clock, SystemClock};
use async_trait::async_trait;
use dialect::FolderWatch;
use error::FileStoreError;
use failpoint::failpoint;
use parking_lot::{Mutex as SyncMutex, MutexGuard};
use state::{State, Written};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{GrantId, Revision, Scope};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Opens a [`FileStore`] with other than the usual settings.
#[derive(Clone)]
pub struct FileOptions {
    /// The clock that judges leases.
    pub clock: Arc<dyn Clock>,
    /// How often to look for changes where the system cannot tell of them.
    pub poll_interval: Duration,
    /// Whether it is opened to look at it, and nothing is written, not even that the machine was
    /// rebooted: it may be a store that may not be written to, or is not in use here.
    pub look_only: bool,
    /// Whose lock files are in the folder.
    pub dialect: Dialect,
    /// When locks and claims of those programs may be taken over.
    pub takeover: TakeoverRules,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions {
            clock: Arc::new(SystemClock),
            poll_interval: Duration::from_secs(5),
            look_only: false,
            dialect: Dialect::NATIVE,
            takeover: TakeoverRules::default(),
        }
    }
}

/// Keeps everything in readable files in one folder.
pub struct FileStore {
    /// Where tenure's own records are.
    folder: PathBuf,
    /// What it is called, for people.
    name: String,
    options: FileOptions,
    state: SyncMutex<State>,
    writer_queue: Arc<Mutex<WriterQueue>>,
    notifier: Notifier,
    /// Up to where the journal is known to be on disk.
    synced: Mutex<(u64, u64)>,
    /// The boot that ended since the store was last used, which a look does not note in the store.
    ended_boot: Option<String>,
    /// Which file the writers take their turn at.
    identity: Identity,
    /// Whether every change is synced: where no boot id can be read, a power loss would not be
    /// noticed, and numbers that were seen but not yet on disk would be given out again.
    sync_all: bool,
    /// Notices when other programs give something back.
    watch: Option<(FolderWatch, PathBuf)>,
}

impl FileStore {
    /// Opens the store in this folder, creating it if there is none.
    pub fn open(folder: &Path) -> Result<FileStore, StoreError> {
        FileStore::open_with(folder, FileOptions::default())
    }

    /// Opens the store in this folder with these settings.
    pub fn open_with(folder: &Path, options: FileOptions) -> Result<FileStore, StoreError> {
        let shared = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let name = store_name(&shared, &options);
        let report = |trouble: FileStoreError| trouble.report(&name);
        let io = |error: std::io::Error| report(error.into());
        // Where tenure has no files yet, there is nothing to leave as it is.
        let has_files = options.dialect.own_folder(&shared).join("journal").exists();
        let is_look = options.look_only;
        let options = FileOptions { look_only: is_look && has_files, ..options };
        let folder = make_folder(&shared, &options).map_err(io)?;
        if !is_look && !options.dialect.is_native() {
            let around = folder.parent().unwrap_or(&folder);
            crate::place::exclude_in_git(around, options.dialect.temporary_files());
        }
        let shared = std::fs::canonicalize(&shared).map_err(io)?;
        let name = store_name(&shared, &options);
        let side = folder.join("side");
        let writer_queue = WriterQueue::open(&side, options.look_only).map_err(io)?;
        let identity = writer_queue.identity(&side).map_err(io)?;
        let notifier = Notifier::open(&side, options.look_only).map_err(io)?;
        let boot = options.clock.boot();
        let state = State::open(&folder, &shared, &boot, &options).map_err(report)?;
        let mut store = FileStore {
            identity,
            ended_boot: None,
            sync_all: boot.is_empty(),
            watch: (!options.dialect.is_native()).then(|| (FolderWatch::new(), shared)),
            folder,
            name,
            state: SyncMutex::new(state),
            writer_queue: Arc::new(Mutex::new(writer_queue)),
            notifier,
            synced: Mutex::new((0, 0)),
            options,
        };
        store.begin_boot(&boot)?;
        // What was opened above belongs to the folder whose identity was taken.
        store.check_identity()?;
        Ok(store)
    }

    /// Moves the tokens ahead when the machine was rebooted since the last use. A look changes nothing,
    /// and sees leases as they were.
    fn begin_boot(&mut self, boot: &str) -> Result<(), StoreError> {
        // What was not on disk when the power failed may have holes, which is looked at below.
        let judged = self.state().judge_reboot(boot, self.now());
        let judged = judged.map_err(|trouble| self.report(trouble))?;
        if judged == Reboot::None {
            return Ok(());
        }
        if self.options.look_only {
            let before = self.state().boot().to_owned();
            self.ended_boot = Some(before).filter(|_| judged == Reboot::Happened);
            return Ok(());
        }
        let io = |error: std::io::Error| self.report(error.into());
        let writer_queue = self.writer_queue.try_lock().expect("nobody else has the store yet");
        writer_queue.enter().map_err(io)?;
        let at = StoreTime::of(&*self.options.clock);
        let begun = self.state().begin_boot(boot, at);
        writer_queue.leave().map_err(io)?;
        begun.map_err(|trouble| self.report(trouble))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// What an error means. In a folder that was removed or replaced, any error comes of that.
    fn report(&self, trouble: FileStoreError) -> StoreError {
        match self.identity.check() {
            Err(IdentityError::Lost) => FileStoreError::Gone.report(&self.name),
            _ => trouble.report(&self.name),
        }
    }

    fn now(&self) -> StoreTime {
        StoreTime::of(&*self.options.clock)
    }

    /// Fails if the folder was removed or replaced since it was opened: other processes use another
    /// one by now, so locks in this one exclude no other process. To be called before a change,
    /// and again before it is reported: it must not have gone to files that no other process uses.
    fn check_identity(&self) -> Result<(), StoreError> {
        self.identity.check().map_err(|error| match error {
            IdentityError::Lost => FileStoreError::Gone.report(&self.name),
            IdentityError::Unreadable(error) => FileStoreError::Io(error).report(&self.name),
        })
    }

    /// Waits for this process's turn, then for that among processes.
    async fn enter(&self) -> Result<WriteTurn, StoreError> {
        self.check_identity()?;
        let writer_queue = self.unless_stopped(self.writer_queue.clone().lock_owned()).await?;
        let io = |error: std::io::Error| self.report(error.into());
        if writer_queue.try_enter().map_err(io)? {
            return Ok(WriteTurn { writer_queue });
        }
        // The kernel may keep us waiting: not on a thread that others share.
        let waiting = tokio::task::spawn_blocking(move || {
            writer_queue.enter()?;
            Ok(WriteTurn { writer_queue })
        });
        // If the wait is given up, the thread goes on waiting, and lets the next writer in at once.
        match self.unless_stopped(waiting).await? {
            Ok(turn) => turn.map_err(io),
            Err(error) => Err(io(std::io::Error::other(error))),
        }
    }

    /// Waits, but not for ever behind a process that is stopped.
    async fn unless_stopped<T>(&self, turn: impl Future<Output = T>) -> Result<T, StoreError> {
        let waited = ipc::unless_stopped(&self.folder.join("side"), turn).await;
        waited.map_err(|pid| self.report(FileStoreError::Stopped { pid }))
    }

    /// Returns when the journal is on disk up to here. The first caller syncs for all that wait.
    async fn sync(&self, position: (u64, u64)) -> Result<(), StoreError> {
        let mut synced = self.synced.lock().await;
        if *synced >= position {
            return Ok(());
        }
        failpoint("sync-before");
        let (reached, file) = self.state().journal();
        let done = tokio::task::spawn_blocking(move || file.sync_data()).await;
        let done = done.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        done.map_err(|error| StoreError::Unknown {
            store: self.name.clone(),
            reason: error.to_string(),
        })?;
        failpoint("sync-done");
        *synced = reached;
        Ok(())
    }

    /// Takes in other programs' changes to tasks that are shared with them.
    async fn refresh_foreign_tasks(&self) -> Result<(), StoreError> {
        let closed =
            self.writer_queue.try_lock().is_ok_and(|writer_queue| writer_queue.is_closed());
        if closed || !self.state().has_foreign_tasks() {
            return Ok(());
        }
        let turn = self.enter().await?;
        let refreshed = self.state().refresh_foreign_tasks(self.now());
        drop(turn);
        refreshed.map_err(|trouble| self.report(trouble))
    }

    /// Returns when another program may have freed what the request waits for. Only those look who
    /// would get it: the others' turn comes after theirs.
    async fn freed_by_others(
        &self,
        watch: &FolderWatch,
        folder: &Path,
        grant: GrantId,
    ) -> Result<(), StoreError> {
        while !self.looking(|state| Ok(state.scope()?.is_first(grant)))? {
            tokio::time::sleep(dialect::RECHECK_INTERVAL).await;
        }
        watch.changed(folder, grant).await;
        Ok(())
    }

    fn tell(&self, written: &Written) {
        for (grant, address) in &written.wake {
            self.notifier.wake(*grant, address);
        }
        for grant in &written.forget {
            self.notifier.forget(*grant);
            if let Some((watch, _)) = &self.watch {
                watch.forget(*grant);
            }
        }
        if written.has_news {
            self.notifier.signal_change();
        }
    }

    fn looking<T>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, FileStoreError>,
    ) -> Result<T, StoreError> {
        self.check_identity()?;
        act(&mut self.state()).map_err(|trouble| self.report(trouble))
    }
}

fn store_name(folder: &Path, options: &FileOptions) -> String {
    let FileOptions { dialect, takeover, .. } = *options;
    let folder = folder.to_owned();
    StoreUrl::File { folder, dialect, takeover, exclusion_shown: false }.to_string()
}

/// Makes tenure's own folder, which in a folder of other programs' locks lies beneath it.
fn make_folder(shared: &Path, options: &FileOptions) -> std::io::Result<PathBuf> {
    let dialect = options.dialect;
    let folder = dialect.own_folder(shared);
    if options.look_only {
        return std::fs::canonicalize(&folder);
    }
    access::make_folders(&folder.join("side").join("wake"))?;
    if !dialect.is_native() {
        dialect::make_drafts(&folder)?;
    }
    // All ways to the folder must meet in one place.
    let folder = std::fs::canonicalize(&folder)?;
    if !dialect.is_native() {
        crate::place::ignore_in_git(&folder);
    }
    Ok(folder)
}

/// The right to write, given back when dropped.
struct WriteTurn {
    writer_queue: OwnedMutexGuard<WriterQueue>,
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        // At the latest the kernel gives it back when the file is closed.
        let _ = self.writer_queue.leave();
    }
}

#[async_trait]
impl Store for FileStore {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            url: self.name.clone(),
            engine: "files".to_owned(),
            local: true,
            limits: Limits::LOCAL,
            ended_boots: [self.state().ended_boots(), Vec::from_iter(self.ended_boot.clone())]
                .concat(),
            is_new: false,
        }
    }

    async fn transact(&self, mut transaction: Transaction) -> Result<Committed, StoreError> {
        let turn = self.enter().await?;
        let written = self.state().transact(&mut transaction, self.now(), &self.notifier);
        drop(turn);
        let written = written.map_err(|trouble| self.report(trouble))?;
        // A rule that changed nothing waits too: what it saw of tasks may not be on disk yet.
        let is_of_tasks = matches!(transaction.scope, Scope::Tasks(_));
        if written.durable || self.sync_all || is_of_tasks {
            self.sync(written.position).await?;
        }
        self.check_identity()?;
        self.tell(&written);
        Ok(Committed { revision: written.revision })
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let turn = self.enter().await?;
        let renewed = self.state().renew(renewals, self.now());
        let position = self.state().journal().0;
        drop(turn);
        let (renewed, lengthened) = renewed.map_err(|trouble| self.report(trouble))?;
        if lengthened {
            self.sync(position).await?;
        }
        self.check_identity()?;
        Ok(renewed)
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let is_of_tasks = match &query {
            Query::Snapshot(scope) => state::is_about_tasks(scope),
            Query::Tasks(_) | Query::TaskCounts | Query::SurplusTasks(_) => true,
            Query::Events(_)
            | Query::NewestEvents(_)
            | Query::SearchEvents(_)
            | Query::Records(_) => false,
        };
        if is_of_tasks {
            self.refresh_foreign_tasks().await?;
        }
        self.looking(|state| {
            Ok(match query {
                Query::Snapshot(scope) => {
                    Answer::Snapshot(Box::new(state.read(&scope, self.now())?))
                }
                Query::Events(EventsAfter { after, limit }) => {
                    Answer::Events(state.events(after, limit as usize)?)
                }
                Query::NewestEvents(NewestEvents { limit }) => {
                    Answer::Events(state.newest_events(limit as usize)?)
                }
                Query::SearchEvents(search) => Answer::Events(state.search_events(&search)?),
                Query::Records(search) => {
                    Answer::Records(state.search_records(&search, self.now())?)
                }
                Query::Tasks(filter) => Answer::Tasks(state.list(&filter, self.now())?),
                Query::TaskCounts => Answer::TaskCounts(state.tallies(self.now())?),
                Query::SurplusTasks(asked) => {
                    Answer::SurplusTasks(state.surplus(&asked, self.now())?)
                }
            })
        })
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        match signal {
            Signal::Change { since } => {
                let newest = || self.looking(|state| Ok(Revision(state.scope()?.revision)));
                let poll_interval = self.options.poll_interval;
                let changed = self.notifier.changed(newest, since, patience, poll_interval).await;
                changed.map(Waited::Change)
            }
            Signal::Turn { grant } => {
                let woken = self.notifier.wait(grant, patience);
                match &self.watch {
                    None => woken.await,
                    Some((watch, folder)) => tokio::select! {
                        () = woken => {}
                        moved = self.freed_by_others(watch, folder, grant) => moved?,
                    },
                }
                Ok(Waited::Turn)
            }
        }
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        match work {
            Maintenance::Tidy => self.remove_leftovers().await.map(Maintained::Tidied),
            Maintenance::Leftovers => self.count_leftovers().map(Maintained::Left),
            Maintenance::Check => self.findings().await.map(Maintained::Checked),
            Maintenance::Moved => Err(cannot_move()),
            Maintenance::Trim(trim) => self.trim(trim).await.map(Maintained::Trimmed),
        }
    }
}

impl FileStore {
    async fn remove_leftovers(&self) -> Result<usize, StoreError> {
        let turn = self.enter().await?;
        let removed = self.state().tidy(self.now());
        drop(turn);
        Ok(removed.map_err(|trouble| self.report(trouble))? + self.notifier.tidy())
    }

    async fn trim(&self, trim: Trim) -> Result<u64, StoreError> {
        let turn = self.enter().await?;
        let trimmed = self.state().trim(trim, self.now());
        drop(turn);
        trimmed.map_err(|trouble| self.report(trouble))
    }

    async fn findings(&self) -> Result<Vec<Finding>, StoreError> {
        let listed = self.refresh_foreign_tasks().await;
        let mut findings = self.looking(|state| state.check(self.now()))?;
        if let Err(error) = listed {
            findings.retain(|finding| finding.subject != "task list");
            let (subject, message) = ("task list".to_owned(), error.to_string());
            findings.push(Finding { subject, ok: false, message });
        }
        findings.push(Finding::leftovers(self.count_leftovers()?));
        Ok(findings)
    }

    fn count_leftovers(&self) -> Result<usize, StoreError> {
        let count = self.looking(|state| state.count_leftovers(self.now()))?;
        Ok(count + self.notifier.leftovers().len())
    }
}
