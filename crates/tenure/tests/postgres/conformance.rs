//! The whole conformance suite, on the server's real clock.

use super::{open, schema_of};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tenure::store::Store;
use tenure_conformance::{Harness, run_all};
use tenure_testkit::postgres::{fresh_url, psql, shared_url};

struct Schemas {
    /// What is added to each URL.
    options: &'static str,
}

#[async_trait]
impl Harness for Schemas {
    async fn fresh(&self) -> Arc<dyn Store> {
        open(&format!("{}{}", fresh_url(), self.options))
    }

    async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        let other = open(&store.info().url);
        other.query(tenure::store::Query::TaskCounts).await.unwrap();
        other
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let url = store.info().url;
        drop(store);
        open(&url)
    }

    async fn replace(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let url = store.info().url;
        let schema = schema_of(&url);
        // It must be there before it can be removed.
        store.query(tenure::store::Query::TaskCounts).await.unwrap();
        tokio::task::spawn_blocking(move || {
            psql(&shared_url(), &format!("DROP SCHEMA {schema} CASCADE")).unwrap();
        })
        .await
        .unwrap();
        let new = open(&url);
        new.query(tenure::store::Query::TaskCounts).await.unwrap();
        Some(new)
    }

    /// Longer than a busy machine takes for the few round trips in which such a lease must not lapse.
    fn short_lease(&self) -> Duration {
        Duration::from_millis(1500)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time + Duration::from_millis(2)).await;
    }

    /// Most cases wait for the server or for leases to end; each has connections of its own.
    fn cases_at_once(&self) -> usize {
        4
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_conforms() {
    run_all(&Schemas { options: "" }).await;
}

/// As behind a pooler: no prepared statements and no messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_without_messages() {
    run_all(&Schemas { options: "&pgbouncer=true" }).await;
}
