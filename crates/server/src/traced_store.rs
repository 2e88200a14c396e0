//! Traces the calls to a store.

use crate::log::{METRIC, TRACE};
use crate::metrics::error_kind;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::store::{
    Answer, Committed, Maintained, Maintenance, Query, Renewal, Renewed, Signal, Store, StoreError,
    StoreInfo, Transaction, Waited,
};
use tracing::field::Empty;
use tracing::{Instrument, Level, Span};

/// A store whose calls within a trace are spans; it keeps the contract of the wrapped store.
pub struct TracedStore {
    store: Arc<dyn Store>,
    engine: String,
}

impl TracedStore {
    /// Wraps a store. For [`ClientBuilder::wrap`](tenure::ClientBuilder::wrap).
    pub fn wrap(store: Arc<dyn Store>) -> Arc<dyn Store> {
        let engine = store.info().engine;
        Arc::new(TracedStore { store, engine })
    }

    async fn traced<T>(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        // What a server does on its own is no part of a trace.
        if Span::current().is_none() {
            return work.await;
        }
        let begun = Instant::now();
        let span = tracing::info_span!(
            target: TRACE,
            "store call",
            "otel.name" = %format_args!("store {call}"),
            "otel.kind" = "client",
            "otel.status_code" = Empty,
            "db.system.name" = %self.engine,
            "db.operation.name" = call,
            "error.type" = Empty,
        );
        let outcome = work.instrument(span.clone()).await;
        if let Err(error) = &outcome {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", error_kind(error));
        }
        tracing::event!(target: METRIC, Level::INFO, {
            histogram.tenure.store.call.duration = begun.elapsed().as_secs_f64(),
            db.operation.name = call,
        });
        outcome
    }
}

#[async_trait]
impl Store for TracedStore {
    fn info(&self) -> StoreInfo {
        self.store.info()
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        self.traced("transact", self.store.transact(transaction)).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        self.traced("renew", self.store.renew(renewals)).await
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        self.traced(query.word(), self.store.query(query)).await
    }

    /// Waiting is no work of the store, and has no span.
    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        self.store.wait(signal, patience).await
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.traced(work.word(), self.store.maintain(work)).await
    }
}
