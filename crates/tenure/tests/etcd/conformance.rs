//! The suite that every store passes, on one member and on three, in real time.

use crate::kit::{open_used, raw, unique};
use async_trait::async_trait;
use etcd_client::DeleteOptions;
use std::sync::Arc;
use std::time::Duration;
use tenure::store::Store;
use tenure_conformance::{Harness, run_all};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::shared_url;

/// By how much a lapse can be late: etcd looks for ended leases twice in a second, and ends them by a
/// write.
const LATE: Duration = Duration::from_millis(1300);

struct Stores {
    /// The URL of the servers, without a prefix.
    servers: String,
}

#[async_trait]
impl Harness for Stores {
    async fn fresh(&self) -> Arc<dyn Store> {
        open_used(&format!("{}/{}", self.servers, unique("test"))).await
    }

    async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        open_used(&store.info().url).await
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let url = store.info().url;
        assert_eq!(Arc::strong_count(&store), 1, "somebody else still has the store open");
        drop(store);
        open_used(&url).await
    }

    async fn replace(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let url = store.info().url;
        let (mut client, prefix) = raw(&url).await;
        client.delete(prefix, Some(DeleteOptions::new().with_prefix())).await.unwrap();
        Some(open_used(&url).await)
    }

    fn short_lease(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time + LATE).await;
    }

    /// Most cases wait for leases to end.
    fn cases_at_once(&self) -> usize {
        8
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shared_servers_conform() {
    run_all(&Stores { servers: shared_url() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_members_conform() {
    let cluster = Etcd::start(3);
    run_all(&Stores { servers: cluster.url("").trim_end_matches('/').to_owned() }).await;
}
