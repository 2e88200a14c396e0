//! A store that each process opens for itself.

use super::{
    Answer, Committed, Maintained, Maintenance, Query, Renewal, Renewed, Signal, Store, StoreError,
    StoreInfo, Transaction, Waited,
};
use crate::world::PerProcess;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

type Opened = Result<Arc<dyn Store>, StoreError>;

/// A store that a process forked from this one opens anew when it first uses it. The connections,
/// descriptors and threads of the parent's store are the parent's, and are left alone.
pub(crate) struct PerProcessStore {
    open: Box<dyn Fn() -> Opened + Send + Sync>,
    info: StoreInfo,
    here: PerProcess<Opened>,
}

impl PerProcessStore {
    /// Opens the store in this process.
    pub(crate) fn open(
        open: impl Fn() -> Opened + Send + Sync + 'static,
    ) -> Result<PerProcessStore, StoreError> {
        let store = open()?;
        let info = store.info();
        let here = PerProcess::new();
        here.get_or_init(|| Ok(store));
        Ok(PerProcessStore { open: Box::new(open), info, here })
    }

    fn here(&self) -> Opened {
        self.here.get_or_init(|| (self.open)()).clone()
    }
}

#[async_trait]
impl Store for PerProcessStore {
    fn info(&self) -> StoreInfo {
        let opened = self.here.get().and_then(|opened| opened.as_ref().ok());
        let is_new = opened.is_some_and(|store| store.info().is_new);
        StoreInfo { is_new, ..self.info.clone() }
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        self.here()?.transact(transaction).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        self.here()?.renew(renewals).await
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        self.here()?.query(query).await
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        self.here()?.wait(signal, patience).await
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.here()?.maintain(work).await
    }
}
