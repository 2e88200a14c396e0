//! Measures the calls of a server to its store.

use super::metric_types::{
    Counter1, Counter2, Histograms, call_buckets, counter, labelled, seconds,
};
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::{Decision, GrantId, Snapshot, Write};
use tenure::store::{
    Answer, Committed, Maintained, Maintenance, Query, Renewal, Renewed, Signal, Store, StoreError,
    StoreInfo, Transaction, Waited, transact_with,
};

/// The metrics of store calls. Clones share them.
#[derive(Clone)]
pub(super) struct StoreMetrics {
    calls: Histograms<1>,
    errors: Counter2,
    renewals: Counter1,
    late: Counter,
    refused_tokens: Counter,
    leases: Arc<Mutex<Leases>>,
}

impl StoreMetrics {
    pub(super) fn new(registry: &mut Registry, refused_tokens: Counter) -> StoreMetrics {
        let errors = Counter2::default();
        registry.register(
            "store_errors",
            "Calls of this server to its store that failed, by call and kind of error",
            errors.clone(),
        );
        StoreMetrics {
            calls: seconds(
                registry,
                "store_call",
                "How long the store took, by call; waiting for changes is not counted",
                call_buckets,
            ),
            errors,
            renewals: labelled(
                registry,
                "renewals",
                "Renewals of leases through this server: renewed, lost (lapsed or broken), failed (store error)",
                "outcome",
                &["renewed", "lost", "failed"],
            ),
            late: counter(
                registry,
                "renewals_late",
                "Renewals through this server after two thirds of the lease had passed",
            ),
            refused_tokens,
            leases: Arc::default(),
        }
    }

    fn failed(&self, call: &'static str, error: &StoreError) {
        self.errors.get_or_create(&[("call", call), ("kind", error_kind(error))]).inc();
    }

    fn renewed(&self, renewals: &[Renewal], outcome: &Result<Vec<Renewed>, StoreError>) {
        let count = |word, times: usize| {
            self.renewals.get_or_create(&[("outcome", word)]).inc_by(times as u64);
        };
        let Ok(answers) = outcome else { return count("failed", renewals.len()) };
        let lost = answers.iter().filter(|answer| **answer == Renewed::Lost).count();
        count("renewed", answers.len() - lost);
        count("lost", lost);
        self.refused_tokens.inc_by(lost as u64);
        let late = self.leases().renewed(Instant::now(), renewals, answers);
        self.late.inc_by(late);
    }

    fn wrote(&self, writes: &[LeaseWrite]) {
        let late = self.leases().wrote(Instant::now(), writes);
        self.late.inc_by(late);
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock()
    }
}

/// One word for the kind of error.
pub fn error_kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable { .. } => "unavailable",
        StoreError::Withheld { .. } => "withheld",
        StoreError::Unknown { .. } => "unknown",
        StoreError::Corrupt { .. } => "corrupt",
        StoreError::Gone { .. } => "gone",
        StoreError::Unsupported { .. } => "unsupported",
        StoreError::Refused { .. } => "refused",
        StoreError::Contended { .. } => "contended",
        StoreError::Text(_) => "text",
        _ => "other",
    }
}

/// When leases were granted or last renewed through this server.
#[derive(Default)]
struct Leases {
    renewed_at: HashMap<GrantId, (Instant, Duration)>,
}

/// The most leases that are remembered; beyond that, ended ones are forgotten.
const LEASES_MAX: usize = 10_000;

impl Leases {
    /// Records these renewals; returns how many were late.
    fn renewed(&mut self, now: Instant, renewals: &[Renewal], answers: &[Renewed]) -> u64 {
        let mut late = 0;
        for (renewal, answer) in renewals.iter().zip(answers) {
            match answer {
                Renewed::Renewed => late += self.begun(now, renewal.grant, renewal.ttl),
                Renewed::Lost => drop(self.renewed_at.remove(&renewal.grant)),
            }
        }
        late
    }

    /// Records the leases that these writes grant or renew, and forgets ended ones; returns how
    /// many renewals were late.
    fn wrote(&mut self, now: Instant, writes: &[LeaseWrite]) -> u64 {
        let mut late = 0;
        for write in writes {
            match write {
                LeaseWrite::Began { grant, ttl } => late += self.begun(now, *grant, *ttl),
                LeaseWrite::Ended { grant } => drop(self.renewed_at.remove(grant)),
            }
        }
        late
    }

    /// Records the start of a lease; returns 1 if it was a late renewal, else 0.
    fn begun(&mut self, now: Instant, grant: GrantId, ttl: Duration) -> u64 {
        if self.renewed_at.len() >= LEASES_MAX {
            self.renewed_at.retain(|_, (at, ttl)| now.saturating_duration_since(*at) < *ttl);
        }
        if self.renewed_at.len() >= LEASES_MAX {
            self.renewed_at.clear();
        }
        let before = self.renewed_at.insert(grant, (now, ttl));
        let late = |(at, ttl): (Instant, Duration)| now.saturating_duration_since(at) * 3 > ttl * 2;
        u64::from(before.is_some_and(late))
    }
}

/// What a change does to a lease.
enum LeaseWrite {
    Began { grant: GrantId, ttl: Duration },
    Ended { grant: GrantId },
}

fn lease_writes(decision: &Decision) -> Vec<LeaseWrite> {
    let write = |write: &Write| match write {
        Write::Hold(hold) => Some(LeaseWrite::Began { grant: hold.grant, ttl: hold.ttl }),
        Write::Extend { grant, ttl, .. } => Some(LeaseWrite::Began { grant: *grant, ttl: *ttl }),
        Write::DropHold { grant, .. } => Some(LeaseWrite::Ended { grant: *grant }),
        _ => None,
    };
    decision.writes().iter().filter_map(write).collect()
}

/// A store whose calls are measured; it keeps the contract of the wrapped store.
pub struct Metered {
    store: Arc<dyn Store>,
    numbers: StoreMetrics,
}

impl Metered {
    pub(super) fn new(store: Arc<dyn Store>, numbers: StoreMetrics) -> Metered {
        Metered { store, numbers }
    }

    /// Records how long a call took and whether it failed.
    fn note<T>(
        &self,
        call: &'static str,
        begun: Instant,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let took = begun.elapsed().as_secs_f64();
        self.numbers.calls.get_or_create(&[("call", call)]).observe(took);
        self.note_error(call, outcome)
    }

    fn note_error<T>(
        &self,
        call: &'static str,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        outcome.inspect_err(|error| self.numbers.failed(call, error))
    }
}

#[async_trait]
impl Store for Metered {
    fn info(&self) -> StoreInfo {
        self.store.info()
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        let begun = Instant::now();
        let Transaction { scope, request, mut decide } = transaction;
        let watched = move |snapshot: &Snapshot| {
            let decision = decide(snapshot);
            let writes = lease_writes(&decision);
            (decision, writes)
        };
        let outcome = transact_with(&*self.store, scope, request, watched).await;
        let outcome = outcome.map(|(committed, writes)| {
            self.numbers.wrote(&writes);
            committed
        });
        self.note("transact", begun, outcome)
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let begun = Instant::now();
        let outcome = self.note("renew", begun, self.store.renew(renewals).await);
        self.numbers.renewed(renewals, &outcome);
        outcome
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let (begun, word) = (Instant::now(), query.word());
        self.note(word, begun, self.store.query(query).await)
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        self.note_error(signal.word(), self.store.wait(signal, patience).await)
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        let begun = Instant::now();
        self.note(work.word(), begun, self.store.maintain(work).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::core::Token;

    fn renewal(grant: GrantId, ttl_s: u64) -> Renewal {
        let ttl = Duration::from_secs(ttl_s);
        Renewal { grant, token: Token(1), resources: vec![], ttl, bind: None }
    }

    #[test]
    fn a_renewal_is_late_after_two_thirds_of_the_lease() {
        let mut leases = Leases::default();
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let grant = GrantId::random();
        let one = [renewal(grant, 30)];
        let steps = [(0, 0), (10, 0), (30, 0), (51, 1), (60, 0)];
        for (at, late) in steps {
            assert_eq!(leases.renewed(after(at), &one, &[Renewed::Renewed]), late, "at {at} s");
        }
        assert_eq!(leases.renewed(after(100), &one, &[Renewed::Lost]), 0);
        assert!(leases.renewed_at.is_empty(), "what was lost is forgotten");

        let began = [LeaseWrite::Began { grant, ttl: Duration::from_secs(30) }];
        assert_eq!(leases.wrote(after(200), &began), 0);
        assert_eq!(leases.renewed(after(225), &one, &[Renewed::Renewed]), 1);
        leases.wrote(after(230), &[LeaseWrite::Ended { grant }]);
        assert!(leases.renewed_at.is_empty(), "what ended is forgotten");
    }

    #[test]
    fn leases_that_must_have_ended_are_forgotten() {
        let mut leases = Leases::default();
        let begun = Instant::now();
        let many: Vec<Renewal> = (0..LEASES_MAX).map(|_| renewal(GrantId::random(), 30)).collect();
        leases.renewed(begun, &many, &vec![Renewed::Renewed; many.len()]);
        assert_eq!(leases.renewed_at.len(), LEASES_MAX);
        let later = begun + Duration::from_secs(31);
        leases.renewed(later, &[renewal(GrantId::random(), 30)], &[Renewed::Renewed]);
        assert_eq!(leases.renewed_at.len(), 1);
    }
}
