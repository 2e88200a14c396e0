//! The test that every store passes whole.
//!
//! To test a [`Store`], implement [`Harness`] and call [`run_all`] in one test; there are
//! no flags to leave a part out. Only what [`Store`] offers is used, and nothing is taken for
//! granted about how fast the machine is.
//!
//! The topics, in reading order:
//!
//! - `records` — what was written is what is read.
//! - `looks` — a look shows what it must, and says what it left out.
//! - `paths` — those that overlap are found among many.
//! - `atomic` — looking and writing are one step, against everybody.
//! - `numbers` — revisions, tokens and tickets only rise.
//! - `leases` and `renewal` — time is judged by the store's clock, and who may renew.
//! - `places` — the queue.
//! - `events` — the history.
//! - `tasks` — tasks and sections, each task to one worker.
//! - `retention` — old tasks and events are found and removed.
//! - `identity` — a store that was removed or replaced is gone for all open handles.
//! - `answers` — a request that came twice is decided once.
//! - `waking` — no wake and no change is missed.
//!
//! `kit` is what they share.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use tenure::world::ManualClock;
//! use tenure_conformance::{Harness, run_all};
//! use tenure::store::{MemoryStore, Store};
//!
//! /// Every store of it judges leases by one clock, which moves when told to.
//! #[derive(Default)]
//! struct InMemory {
//!     clock: Arc<ManualClock>,
//! }
//!
//! #[async_trait::async_trait]
//! impl Harness for InMemory {
//!     async fn fresh(&self) -> Arc<dyn Store> {
//!         Arc::new(MemoryStore::with_clock(self.clock.clone()))
//!     }
//!
//!     async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
//!         store.clone() // its records cannot be reached in any other way
//!     }
//!
//!     async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
//!         store
//!     }
//!
//!     async fn replace(&self, _: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
//!         None // no other process can reach its records
//!     }
//!
//!     fn short_lease(&self) -> Duration {
//!         Duration::from_millis(120)
//!     }
//!
//!     async fn pass(&self, time: Duration) {
//!         self.clock.advance(time);
//!     }
//!
//!     fn cases_at_once(&self) -> usize {
//!         1 // they share the clock
//!     }
//! }
//!
//! # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
//! # async fn main() {
//! run_all(&InMemory::default()).await;
//! # }
//! ```

mod answers;
mod atomic;
mod event_search;
mod events;
mod identity;
mod kit;
mod leases;
mod looks;
mod numbers;
mod paths;
mod places;
mod records;
mod renewal;
mod retention;
mod small_records;
mod tasks;
mod waking;

use crate::kit::Case;
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;
use tenure::store::Store;
use tokio::runtime::{Handle, RuntimeFlavor};

/// How the suite gets at stores of one kind.
#[async_trait]
pub trait Harness: Send + Sync {
    /// A new and empty store.
    async fn fresh(&self) -> Arc<dyn Store>;

    /// A second handle to the records of this store, such as another process would have. It must
    /// share nothing with the first that another process could not share.
    async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store>;

    /// Closes the store, of which this is the only handle, and opens its records again.
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store>;

    /// Removes the records of this store, which is open, and makes an empty store in their place, as
    /// cleaning a folder does. `None` for a store whose records no other program can remove.
    async fn replace(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>>;

    /// A lease that the suite can let lapse: as short as the engine can keep, because real clocks are
    /// slept through; whole milliseconds, so that a clock made for tests can be moved to its exact
    /// end. 120 milliseconds are enough for a store that counts milliseconds.
    fn short_lease(&self) -> Duration;

    /// Lets so much time pass on the clock by which the stores judge leases: moves a clock made for
    /// tests, or sleeps. A harness that sleeps does so for at least as long, plus the
    /// resolution of the store's clock.
    async fn pass(&self, time: Duration);

    /// How many cases may run at the same time: one where the stores share a clock that is moved; several
    /// where the suite mostly sleeps and waits for servers.
    fn cases_at_once(&self) -> usize;
}

const TOPICS: [&[Case]; 16] = [
    records::CASES,
    looks::CASES,
    paths::CASES,
    atomic::CASES,
    numbers::CASES,
    leases::CASES,
    renewal::CASES,
    places::CASES,
    events::CASES,
    event_search::CASES,
    small_records::CASES,
    tasks::CASES,
    retention::CASES,
    identity::CASES,
    answers::CASES,
    waking::CASES,
];

/// How long one case may take. Many times what it needs, beside others and on a busy machine: only a wake that was
/// lost lasts so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs every case, each on a fresh store.
///
/// # Panics
///
/// When cases failed, saying which and why. Also on a runtime with one thread: there nothing
/// happens at once, and half of the suite would show nothing.
pub async fn run_all(harness: &dyn Harness) {
    assert!(
        Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread,
        "the conformance suite needs a runtime with several threads: \
         #[tokio::test(flavor = \"multi_thread\", worker_threads = 4)]"
    );
    let run = async |case: &Case| {
        let why = match tokio::time::timeout(PATIENCE, (case.run)(harness)).await {
            Ok(Ok(())) => return None,
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => format!("it did not end within {PATIENCE:?}"),
        };
        Some(format!("{}: {why}", case.name))
    };
    let cases = TOPICS.iter().copied().flatten();
    let failures: Vec<String> = stream::iter(cases.map(run))
        .buffer_unordered(harness.cases_at_once())
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert!(failures.is_empty(), "the store does not conform:\n{}", failures.join("\n"));
}
