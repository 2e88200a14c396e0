//! The store in an etcd cluster, `etcd://HOST:PORT,HOST:PORT/PREFIX`.
//!
//! A transaction is an optimistic loop: look at a part of the keys at one revision, let the rule decide,
//! and write in one etcd transaction on condition that all guards of what was looked at are unchanged;
//! again where others were faster. A guard is a key of a resource that *every* change of its holds or its
//! queue puts, and that is never deleted alone. Comparing the records themselves is not enough: what was
//! deleted, or deleted and made again, compares as untouched.
//!
//! Whether a lease lives is said by a key of its own that is attached to an etcd lease, so a lapsed hold
//! stays visible until a rule takes it over.
//!
//! - `keys` — the layout. `records`, `base`, `task_index` — what lies there.
//! - `look`, `look_at_tasks`, with `around`, `guards`, `ready`, `remembered` and `shown` — what a rule is
//!   shown. `plan`, `writes`, `compares`, `commit` — what it decided is written.
//! - `renew`, `leases`, `watches`, `wait`, `history`, `task_lists`, `small_records`, `maintain` — the rest of
//!   the contract.
//! - `address`, `connection`, `error` — the servers. `handle` — an open store.

mod address;
mod around;
mod base;
mod commit;
mod compares;
mod connection;
mod error;
mod guards;
mod handle;
mod history;
mod keys;
mod leases;
mod limits;
mod look;
mod look_at_tasks;
mod maintain;
mod plan;
mod ready;
mod records;
mod remembered;
mod renew;
mod shown;
mod small_records;
mod task_index;
mod task_lists;
mod wait;
mod watches;
mod writes;

use crate::platform::fork::between_forks;
use crate::store::{
    Answer, Committed, EventsAfter, Limits, Maintained, Maintenance, NewestEvents, Query, Renewal,
    Renewed, Signal, Store, StoreError, StoreInfo, Transaction, Waited,
};
use crate::url::EngineUrl;
use crate::world::{Clock, SystemClock, background_runtime};
use address::Address;
use async_trait::async_trait;
use error::Failure;
use handle::Handle;
use std::future::Future;
use std::panic;
use std::sync::Arc;
use std::time::Duration;

/// What the servers can take. They keep leases of whole seconds, and none shorter than two. What bounds a
/// change in practice is its size, which the servers check.
const LIMITS: Limits = Limits { shortest_lease: Duration::from_secs(2), records_max: Some(10_000) };

/// How often a query is answered again whose revision was compacted meanwhile.
const COMPACTED_MAX: u32 = 3;

/// How an etcd store is opened.
#[derive(Clone)]
pub struct EtcdOptions {
    /// How often a follower looks for changes that no watch told of.
    pub poll_interval: Duration,
    /// Tells the time of day for what is shown. Leases are judged by the servers.
    pub clock: Arc<dyn Clock>,
}

impl Default for EtcdOptions {
    fn default() -> EtcdOptions {
        EtcdOptions { poll_interval: Duration::from_secs(5), clock: Arc::new(SystemClock) }
    }
}

/// A store in an etcd cluster. Its connections and all of its work live on the background runtime of the
/// process: a caller that goes away leaves nothing half done.
pub struct EtcdStore {
    handle: Arc<Handle>,
}

impl EtcdStore {
    /// The store at this URL. It connects when it is first used.
    pub fn open(url: &EngineUrl) -> Result<EtcdStore, StoreError> {
        EtcdStore::open_with(url, EtcdOptions::default())
    }

    /// The same with options.
    pub fn open_with(url: &EngineUrl, options: EtcdOptions) -> Result<EtcdStore, StoreError> {
        let address = Address::of(url)?;
        Ok(EtcdStore { handle: Arc::new(Handle::new(address, options)) })
    }

    /// Does this work on the background runtime, to its end.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Handle>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let runtime = background_runtime().map_err(|error| StoreError::Unavailable {
            store: self.handle.url().to_owned(),
            reason: format!("no thread could be started: {error}"),
            hint: None,
        })?;
        match runtime.spawn(between_forks(work(self.handle.clone()))).await {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            Err(_) => Err(StoreError::Unknown {
                store: self.handle.url().to_owned(),
                reason: "the process ends".to_owned(),
            }),
        }
    }
}

#[async_trait]
impl Store for EtcdStore {
    fn info(&self) -> StoreInfo {
        let version = self.handle.version();
        StoreInfo {
            url: self.handle.url().to_owned(),
            engine: version.map_or_else(|| "etcd".to_owned(), |version| format!("etcd {version}")),
            local: false,
            limits: LIMITS,
            ended_boots: vec![],
            is_new: self.handle.is_new(),
        }
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        self.run(|handle| async move { handle.transact(transaction).await }).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let renewals = renewals.to_vec();
        self.run(|handle| async move { handle.renew(&renewals).await }).await
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        self.run(|handle| async move { handle.query(query).await }).await
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        match signal {
            Signal::Change { since } => {
                let wait = move |handle: Arc<Handle>| async move {
                    handle.wait_for_change(since, patience).await
                };
                Ok(Waited::Change(self.run(wait).await?))
            }
            Signal::Turn { grant } => {
                self.handle.wakes.wait(grant, patience).await;
                Ok(Waited::Turn)
            }
        }
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        match work {
            Maintenance::Tidy => {
                let tidied = self.run(|handle| async move { handle.tidy().await }).await?;
                Ok(Maintained::Tidied(tidied))
            }
            Maintenance::Leftovers => {
                let left = self.run(|handle| async move { handle.count_leftovers().await }).await?;
                Ok(Maintained::Left(left))
            }
            Maintenance::Check => {
                let findings = self.run(|handle| async move { handle.check().await }).await?;
                Ok(Maintained::Checked(findings))
            }
            Maintenance::Moved => {
                self.run(|handle| async move { handle.raise_epoch().await }).await?;
                // Leases of etcd begin anew after a restore, and holds of the older state stay.
                Ok(Maintained::Moved { withheld: Duration::ZERO })
            }
            Maintenance::Trim(trim) => {
                let trim = |handle: Arc<Handle>| async move {
                    let trimmed = handle.trim_events(trim).await;
                    trimmed.map_err(|failure| handle.connection.unwritten(failure))
                };
                Ok(Maintained::Trimmed(self.run(trim).await?))
            }
        }
    }
}

impl Handle {
    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let mut tries = 0;
        loop {
            match self.answer(&query).await {
                Err(Failure::Compacted) if tries < COMPACTED_MAX => tries += 1,
                Err(failure) => return Err(self.connection.unwritten(failure)),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    async fn answer(&self, query: &Query) -> Result<Answer, Failure> {
        Ok(match query {
            Query::Snapshot(scope) => {
                Answer::Snapshot(Box::new(self.look(scope, None, 0).await?.snapshot))
            }
            Query::Events(EventsAfter { after, limit }) => {
                Answer::Events(self.events_after(*after, *limit).await?)
            }
            Query::NewestEvents(NewestEvents { limit }) => {
                Answer::Events(self.newest_events(*limit).await?)
            }
            Query::SearchEvents(search) => Answer::Events(self.search_events(search).await?),
            Query::Records(search) => Answer::Records(self.search_records(search).await?),
            Query::Tasks(filter) => Answer::Tasks(self.list_tasks(filter).await?),
            Query::TaskCounts => Answer::TaskCounts(self.count_tasks().await?),
            Query::SurplusTasks(asked) => Answer::SurplusTasks(self.surplus_tasks(asked).await?),
        })
    }
}

/// A random number below `end`: changes that were too late at the same moment must not be tried again at the
/// same moment.
fn random_below(end: u64) -> u64 {
    (uuid::Uuid::new_v4().as_u128() >> 64) as u64 % end.max(1)
}
