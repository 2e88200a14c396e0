//! The store in a PostgreSQL database, for many machines.
//!
//! - `settings`, `tls` — how to reach the server. `pool`, `session` — connections and statements. `limits` — how
//!   long each step may take.
//! - `literal`, `row` — several statements as one message, and its answer.
//! - `names`, `schema` — the tables.
//! - `locks`, `claimed` — which advisory locks a change takes. `transact` — a change in two round trips;
//!   `first_flight` — the first of them: locks, a number (`moment`), and what the rule sees (`look`).
//! - `read`, `tasks`, `write` — records. `pick`, `plain_tasks` — what a claim is shown. `renew` — leases;
//!   `longest` — how long they may be.
//! - `follow` — events in order, and looks. `listen` — wakes.
//! - `check` — what `doctor` tells, and what is removed in time.
//!
//! All connections live on the background runtime, and so does every change: one that its caller
//! gives up is brought to its end, so no transaction is left open.

mod check;
mod claimed;
mod error;
mod first_flight;
mod follow;
mod limits;
mod listen;
mod literal;
mod locks;
mod longest;
mod look;
mod moment;
mod names;
mod pick;
mod plain_tasks;
mod pool;
mod read;
mod renew;
mod row;
mod schema;
mod session;
mod settings;
mod tasks;
mod tls;
mod transact;
mod write;

use crate::platform::fork::between_forks;
use crate::store::{
    Answer, Committed, Limits, Maintained, Maintenance, Query, Renewal, Renewed, Signal, Store,
    StoreError, StoreInfo, Transaction, Waited,
};
use crate::url::EngineUrl;
use crate::world::background_runtime;
use async_trait::async_trait;
use claimed::ClaimedTasks;
use error::PgError;
use listen::{Hearing, Listener};
use names::Names;
use pick::Picks;
use pool::{Pool, Pooled};
use session::Value;
use settings::Settings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenure_core::{Change, GrantId, Revision};
use tokio::task::{JoinError, JoinHandle};

/// Opens a [`PostgresStore`] with other than the usual settings.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Whether the process ends soon and does one thing at a time.
    pub one_shot: bool,
    /// How often to look for changes although messages tell of them.
    pub poll_interval: Duration,
    /// Is told once that the server does not answer and is tried again.
    pub warn: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        let poll_interval = Duration::from_secs(5);
        PostgresOptions { one_shot: false, poll_interval, warn: Arc::new(|_| ()) }
    }
}

/// Keeps everything in one schema of a PostgreSQL database. The server's clock judges leases.
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    url: String,
    names: Arc<Names>,
    pool: Pool,
    listener: Listener,
    options: PostgresOptions,
    picks: Picks,
    claimed: ClaimedTasks,
    has_told_trouble: AtomicBool,
    /// The highest number of a change that this process has committed.
    highest: AtomicU64,
}

/// How often waiters look where no messages arrive.
const POLL: Duration = Duration::from_millis(200);

/// How soon to look again for events that wait for a lower number.
const SOON: Duration = Duration::from_millis(10);

impl PostgresStore {
    /// The store that this URL names. It is reached for the first time when it is used; its tables
    /// are made then if they are missing.
    pub fn open(url: &EngineUrl) -> Result<PostgresStore, StoreError> {
        PostgresStore::open_with(url, PostgresOptions::default())
    }

    /// The same with these settings.
    pub fn open_with(
        url: &EngineUrl,
        options: PostgresOptions,
    ) -> Result<PostgresStore, StoreError> {
        let shown = url.to_string();
        let inner = || -> Result<Inner, PgError> {
            let settings = Settings::of(url)?;
            let names = Arc::new(Names::new(&settings.schema, &settings.prefix));
            let listener = Listener::new(&names, settings.pooled);
            let pool = Pool::new(settings, names.clone())?;
            let (picks, claimed) = (Picks::default(), ClaimedTasks::default());
            let (has_told_trouble, highest) = (AtomicBool::new(false), AtomicU64::new(0));
            let url = shown.clone();
            Ok(Inner {
                url,
                names,
                pool,
                listener,
                options,
                picks,
                claimed,
                has_told_trouble,
                highest,
            })
        };
        let inner = inner().map_err(|error| error.report(&shown))?;
        Ok(PostgresStore { inner: Arc::new(inner) })
    }

    /// Carries something out where the connections live, to its end even if the caller gives up.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let task = self.spawn(work)?;
        self.outcome(task.await)
    }

    /// The same for what has nothing to bring to its end: it stops when the caller gives up.
    async fn run_until_dropped<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut task = AbortOnDrop(self.spawn(work)?);
        self.outcome((&mut task.0).await)
    }

    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, StoreError>>, StoreError> {
        match background_runtime() {
            Ok(runtime) => Ok(runtime.spawn(between_forks(work))),
            Err(error) => Err(PgError::from(error).report(&self.inner.url)),
        }
    }

    fn outcome<T>(&self, ended: Result<Result<T, StoreError>, JoinError>) -> Result<T, StoreError> {
        match ended {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(StoreError::Unknown {
                    store: self.inner.url.clone(),
                    reason: error.to_string(),
                }),
            },
        }
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Inner {
    /// Gives a connection back after a change.
    fn after_commit(self: &Arc<Inner>, session: Pooled, change: &Change) {
        self.claimed.note(change);
        transact::give_back(session);
    }

    /// Waits until a change is told or may have been missed; returns the revision.
    async fn changed(
        self: &Arc<Inner>,
        since: Revision,
        patience: Duration,
    ) -> Result<Revision, StoreError> {
        let mut retry = Retry::new(self);
        let deadline = Instant::now().checked_add(patience);
        let left =
            || deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        loop {
            let heard = self.listener.changes();
            let (revision, hidden) = match follow::newest(self).await {
                Ok(newest) => newest,
                Err(error) => {
                    retry.after(error).await?;
                    continue;
                }
            };
            if revision > since || left().is_zero() {
                return Ok(revision);
            }
            if !self.listener.is_ready() || self.listener.hearing() == Hearing::On {
                // Only now, so that a look without patience does not connect once more.
                self.listener.watch(self).await;
            }
            let pause = match self.listener.hearing() {
                _ if hidden => SOON,
                Hearing::On => self.options.poll_interval,
                _ => POLL,
            };
            self.listener.changed(heard, pause.min(left())).await;
        }
    }

    async fn turn(self: &Arc<Inner>, grant: GrantId, patience: Duration) -> Result<(), StoreError> {
        let deadline = Instant::now().checked_add(patience);
        let left =
            || deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        loop {
            if self.listener.hearing() == Hearing::On {
                self.listener.turn(grant, left()).await;
                return Ok(());
            }
            // No message will come, so it is looked whether the place was woken or is gone.
            self.listener.turn(grant, POLL.min(left())).await;
            if left().is_zero() || self.was_woken(grant).await.unwrap_or(true) {
                return Ok(());
            }
        }
    }

    /// Whether the request was woken since it last asked, or has no place any more.
    async fn was_woken(&self, grant: GrantId) -> Result<bool, PgError> {
        let session = self.pool.get().await?;
        let sql = "SELECT wakes FROM @waits WHERE grant_id = $1 LIMIT 1";
        let rows = session.query(sql, &[Value::Text(grant.to_string())]).await?;
        session.prepare().await;
        let wakes: Option<i64> = rows.first().map(|row| row.get(0));
        Ok(wakes.is_none_or(|wakes| self.listener.has_more_wakes(grant, wakes)))
    }
}

/// How long to go on after errors that may pass.
struct Retry {
    store: String,
    begun: Instant,
    patience: Duration,
    pause: Duration,
    inner: Arc<Inner>,
}

impl Retry {
    fn new(inner: &Arc<Inner>) -> Retry {
        Retry {
            store: inner.url.clone(),
            begun: Instant::now(),
            patience: limits::PATIENCE,
            pause: Duration::from_millis(20),
            inner: inner.clone(),
        }
    }

    /// The same for what is worth nothing after this time.
    fn within(inner: &Arc<Inner>, patience: Duration) -> Retry {
        Retry { patience: patience.min(limits::PATIENCE), ..Retry::new(inner) }
    }

    /// Pauses after an error that may pass; fails with it if it may not, or if it lasts too long.
    async fn after(&mut self, error: PgError) -> Result<(), StoreError> {
        let is_known = !self.inner.pool.connector().store_id().is_empty();
        if error.is_missing_statement() {
            self.inner.pool.stop_preparing();
        }
        if matches!(error, PgError::Timeout(_)) {
            self.inner.pool.forget_idle();
        }
        if error.is_missing_table() && is_known {
            return Err(PgError::Replaced.report(&self.store));
        }
        // The time to connect was chosen by the user, and is over.
        let is_given_up = matches!(error, PgError::Silent(..)) && !is_known;
        if is_given_up || !error.is_passing() || self.begun.elapsed() + self.pause > self.patience {
            return Err(error.report(&self.store));
        }
        if !self.inner.has_told_trouble.swap(true, Ordering::Relaxed) {
            let patience = self.patience.as_secs();
            (self.inner.options.warn)(&format!("{}: {error}; trying for {patience}s", self.store));
        }
        // Not all at once, when a server comes back.
        let jitter = uuid::Uuid::new_v4().as_u128() as u64 % 1000;
        tokio::time::sleep(self.pause.mul_f64(0.5 + jitter as f64 / 1000.0)).await;
        self.pause = (self.pause * 2).min(Duration::from_secs(1));
        Ok(())
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            url: self.inner.url.clone(),
            engine: "PostgreSQL".to_owned(),
            local: false,
            limits: Limits::LOCAL,
            ended_boots: vec![],
            is_new: self.inner.pool.connector().is_new(),
        }
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        self.run(transact::transact(self.inner.clone(), transaction)).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        self.run(renew::renew(self.inner.clone(), renewals.to_vec())).await
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let inner = self.inner.clone();
        self.run(async move {
            let mut retry = Retry::new(&inner);
            loop {
                match follow::query(&inner, &query).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => retry.after(error).await?,
                }
            }
        })
        .await
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        let inner = self.inner.clone();
        match signal {
            Signal::Change { since } => {
                let changed = async move { inner.changed(since, patience).await };
                Ok(Waited::Change(self.run_until_dropped(changed).await?))
            }
            Signal::Turn { grant } => {
                let turn = async move { inner.turn(grant, patience).await };
                self.run_until_dropped(turn).await?;
                Ok(Waited::Turn)
            }
        }
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        let inner = self.inner.clone();
        self.run(async move {
            let mut retry = Retry::new(&inner);
            loop {
                let done = match work {
                    Maintenance::Tidy => check::tidy(&inner).await.map(Maintained::Tidied),
                    // What is tidied there are records, and nothing is counted.
                    Maintenance::Leftovers => Ok(Maintained::Left(0)),
                    Maintenance::Check => check::check(&inner).await.map(Maintained::Checked),
                    Maintenance::Moved => {
                        let moved = check::moved(&inner).await;
                        moved.map(|withheld| Maintained::Moved { withheld })
                    }
                    Maintenance::Trim(trim) => {
                        check::trim(&inner, trim).await.map(Maintained::Trimmed)
                    }
                };
                match done {
                    Ok(done) => return Ok(done),
                    Err(error) => retry.after(error).await?,
                }
            }
        })
        .await
    }
}
