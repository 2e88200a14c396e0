//! A store that gets into trouble when told to.

use async_trait::async_trait;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::store::{
    Answer, Committed, Maintained, Maintenance, Query, Renewal, Renewed, Signal, Store, StoreError,
    StoreInfo, Transaction, Waited,
};
use tenure::world::ManualClock;
use tokio::sync::watch;

/// Passes everything on to another store, except for the trouble that it was told to make.
pub struct Faulty {
    inner: Arc<dyn Store>,
    /// So many more changes fail without being made.
    pub failing_changes: AtomicU32,
    /// So many more changes are made, but reported as unknown.
    pub unknown_changes: AtomicU32,
    /// So many more renewals fail without being made.
    pub failing_renewals: AtomicU32,
    /// Changes that were asked for.
    pub changes: AtomicU32,
    /// How often events were read.
    pub looks_at_events: AtomicU32,
    /// Renewals that were made.
    pub renewals: AtomicU32,
    /// Leases of which a renewal said that they are lost.
    pub losses: AtomicU32,
    /// Whether this is a store on another machine.
    pub is_far: AtomicBool,
    /// So many more answers to changes and renewals come late, and by how much on this clock.
    pub late_answers: AtomicU32,
    late: Mutex<Option<(Arc<ManualClock>, Duration)>>,
    /// Whether nothing is answered at all.
    silent: watch::Sender<bool>,
}

/// While this lives, the store answers nothing. A client of the store can only end after it.
pub struct Silence(Arc<Faulty>);

impl Drop for Silence {
    fn drop(&mut self) {
        self.0.silent.send_replace(false);
    }
}

/// Every time from now on.
pub const ALWAYS: u32 = u32::MAX;

impl Faulty {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Faulty> {
        Arc::new(Faulty {
            inner,
            failing_changes: AtomicU32::new(0),
            unknown_changes: AtomicU32::new(0),
            failing_renewals: AtomicU32::new(0),
            changes: AtomicU32::new(0),
            looks_at_events: AtomicU32::new(0),
            renewals: AtomicU32::new(0),
            losses: AtomicU32::new(0),
            is_far: AtomicBool::new(false),
            late_answers: AtomicU32::new(0),
            late: Mutex::new(None),
            silent: watch::Sender::new(false),
        })
    }

    /// Answers late from now on, so many times.
    pub fn answer_late(&self, times: u32, clock: &Arc<ManualClock>, by: Duration) {
        *self.late.lock().unwrap() = Some((clock.clone(), by));
        self.late_answers.store(times, Ordering::SeqCst);
    }

    fn be_late(&self) {
        if is_due(&self.late_answers)
            && let Some((clock, by)) = &*self.late.lock().unwrap()
        {
            clock.advance(*by);
        }
    }

    /// Answers nothing from now on.
    pub fn fall_silent(self: &Arc<Faulty>) -> Silence {
        self.silent.send_replace(true);
        Silence(self.clone())
    }

    async fn answer(&self) {
        let mut silent = self.silent.subscribe();
        silent.wait_for(|silent| !silent).await.unwrap();
    }
}

/// Whether this is one of the times that were told.
fn is_due(count: &AtomicU32) -> bool {
    let take = |left: u32| match left {
        ALWAYS => Some(ALWAYS),
        left => left.checked_sub(1),
    };
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
}

fn unavailable() -> StoreError {
    StoreError::Unavailable { store: "faulty".into(), reason: "told to".into(), hint: None }
}

#[async_trait]
impl Store for Faulty {
    fn info(&self) -> StoreInfo {
        let info = self.inner.info();
        StoreInfo { local: info.local && !self.is_far.load(Ordering::SeqCst), ..info }
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.answer().await;
        if is_due(&self.failing_changes) {
            return Err(unavailable());
        }
        let committed = self.inner.transact(transaction).await?;
        self.be_late();
        if is_due(&self.unknown_changes) {
            return Err(StoreError::Unknown { store: "faulty".into(), reason: "told to".into() });
        }
        Ok(committed)
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        self.answer().await;
        if is_due(&self.failing_renewals) {
            return Err(unavailable());
        }
        let renewed = self.inner.renew(renewals).await?;
        self.be_late();
        self.renewals.fetch_add(1, Ordering::SeqCst);
        let lost = renewed.iter().filter(|answer| **answer == Renewed::Lost).count();
        self.losses.fetch_add(lost as u32, Ordering::SeqCst);
        Ok(renewed)
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let is_of_events = matches!(query, Query::Events(_));
        let answer = self.inner.query(query).await;
        // Only now, so that a look that is counted later has seen all that happened before.
        self.looks_at_events.fetch_add(u32::from(is_of_events), Ordering::SeqCst);
        answer
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        self.inner.wait(signal, patience).await
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.inner.maintain(work).await
    }
}
