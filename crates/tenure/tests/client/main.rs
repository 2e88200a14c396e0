//! How a client behaves, over every store: keeping and losing, sharing and proving, waiting in
//! line, and what it does when the store is in trouble.
//!
//! Nothing here depends on speed: whoever waits, waits for a state.

mod ending;
mod faulty;
mod guards;
mod idle_workers;
mod late;
mod losing;
mod proving;
mod retention;
mod secrets;
mod sharing;
mod trouble;
mod waiting;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::core::{EventKind, Resource, Revision, Snapshot};
use tenure::store::MemoryStore;
use tenure::store::SqliteStore;
use tenure::store::Store;
use tenure::{Attempt, Client, Free, Guard, Lease, LeaseAttempt, Request, Wait};

/// So long may anything take that has to happen; a test that waits for it in vain fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// One set of records, and ways to be one of several clients of it.
enum Stores {
    Memory(Arc<MemoryStore>),
    Sqlite(TempDir),
}

impl Stores {
    fn memory() -> Stores {
        Stores::Memory(Arc::new(MemoryStore::new()))
    }

    fn sqlite() -> Stores {
        Stores::Sqlite(tempfile::tempdir().unwrap())
    }

    /// A handle such as another process would have.
    fn handle(&self) -> Arc<dyn Store> {
        match self {
            Stores::Memory(store) => store.clone(),
            Stores::Sqlite(folder) => {
                Arc::new(SqliteStore::open(&folder.path().join("store.db")).unwrap())
            }
        }
    }

    /// A client that chose its label.
    fn client(&self, label: &str) -> Client {
        Client::builder().label(label).with_store(self.handle()).unwrap()
    }

    /// A client without a label.
    fn anonymous(&self) -> Client {
        Client::builder().with_store(self.handle()).unwrap()
    }
}

/// Runs each of these on every store.
macro_rules! on_every_store {
    ($($test:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                crate::within_patience(super::$test(&crate::Stores::memory())).await;
            })+
        }

        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                crate::within_patience(super::$test(&crate::Stores::sqlite())).await;
            })+
        }
    };
}
use on_every_store;

async fn within_patience<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it did not happen")
}

fn resource(text: &str) -> Resource {
    text.parse().unwrap()
}

fn held(attempt: Attempt) -> Guard {
    match attempt {
        Attempt::Held(guard) => guard,
        Attempt::Busy(busy) => panic!("it should have been free: {busy:?}"),
    }
}

async fn is_busy(client: &Client, name: &str) -> bool {
    matches!(client.try_acquire(name).await.unwrap(), Attempt::Busy(_))
}

async fn lease(request: Request) -> Lease {
    match request.wait(Wait::No).lease().await.unwrap() {
        LeaseAttempt::Held(lease) => lease,
        LeaseAttempt::Busy(busy) => panic!("it should have been free: {busy:?}"),
    }
}

/// Waits until nobody holds it.
async fn ensure_becomes_free(client: &Client, name: &str) {
    let free = client.wait_until_free(name, Wait::UpTo(PATIENCE)).await.unwrap();
    assert_eq!(free, Free::Free);
}

/// Waits until what the store shows is as wanted.
async fn until(client: &Client, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
    loop {
        let seen = client.look_everywhere().await.unwrap();
        if wanted(&seen) {
            return seen;
        }
        client.changed(seen.revision, Duration::from_millis(20)).await.unwrap();
    }
}

/// Waits until so many wait in queues.
async fn until_waiting(client: &Client, count: usize) {
    until(client, |seen| seen.waiters.len() == count).await;
}

async fn events(client: &Client) -> Vec<EventKind> {
    let events = client.events(Revision(0), u32::MAX).await.unwrap();
    events.into_iter().map(|event| event.event.kind).collect()
}
