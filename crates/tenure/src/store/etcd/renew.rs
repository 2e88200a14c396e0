//! Renewal: the lease of etcd starts anew, and the hold is put on condition that it is as it was. Neither
//! alone would do: a lease can be kept alive after its hold was broken, and a key that is put does not
//! renew its lease.

use super::base::Base;
use super::compares::{About, Compares};
use super::connection::{Ask, EACH_MAX, Write};
use super::error::Failure;
use super::handle::Handle;
use super::keys::Family;
use super::leases::{LeaseBook, LeaseUse, seconds_up};
use super::limits::{LARGE_WRITE_TIMEOUT, renewal_try};
use super::look::Start;
use super::records::{Life, StoredHold};
use crate::store::{Renewal, Renewed, StoreError};
use etcd_client::{Compare, PutOptions, TxnOp};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a renewal is tried that others' changes of the same holds are in the way of.
const TRIES_MAX: u32 = 10;

/// What a renewal writes.
struct Prepared {
    /// Which of the renewals.
    index: usize,
    write: Write,
    /// The leases that must be kept alive.
    kept: BTreeSet<i64>,
    /// The keys that it compares, with their revisions.
    keys: Vec<(String, i64)>,
    /// Whether nothing but the time of the renewal is put.
    is_plain: bool,
    /// Keys that are attached to a longer or shorter lease.
    attached: Vec<(String, i64)>,
    /// The same keys with the leases that they were attached to before.
    detached: Vec<(String, i64)>,
}

impl Handle {
    pub(super) async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let shortest = super::LIMITS.shortest_lease;
        if let Some(short) = renewals.iter().find(|renewal| renewal.ttl < shortest) {
            return Err(StoreError::Unsupported {
                what: format!(
                    "this lease lasts {:?}, and the store keeps none shorter than {shortest:?}",
                    short.ttl
                ),
                instead: "Ask for a longer lease.".to_owned(),
            });
        }
        let shortest = renewals.iter().map(|renewal| renewal.ttl).min().unwrap_or(shortest);
        let limit = renewal_try(shortest);
        let mut answers: Vec<Option<Renewed>> = vec![None; renewals.len()];
        for _ in 0..TRIES_MAX {
            let open: Vec<usize> =
                (0..answers.len()).filter(|index| answers[*index].is_none()).collect();
            let renewed = self.renew_once(limit, renewals, &open, &mut answers).await;
            renewed.map_err(|failure| self.connection.unwritten(failure))?;
            if let Some(answers) = answers.iter().copied().collect() {
                return Ok(answers);
            }
        }
        Err(StoreError::Contended { store: self.url().to_owned(), tries: TRIES_MAX })
    }

    async fn renew_once(
        &self,
        limit: Duration,
        renewals: &[Renewal],
        open: &[usize],
        answers: &mut [Option<Renewed>],
    ) -> Result<(), Failure> {
        self.open().await?;
        let mut asks = Vec::new();
        let start = Start::ask(&self.keys, None, &mut asks);
        for renewal in open.iter().map(|index| &renewals[*index]) {
            for resource in &renewal.resources {
                let key = |family| self.keys.hold(family, resource, renewal.grant);
                asks.push(Ask::one(key(Family::Holds)));
                asks.push(Ask::one(key(Family::Lives)).keys_only());
            }
        }
        let mut pages = self.connection.read_within(limit, &asks, None).await?;
        let (revision, base) = (pages.revision, start.take(self, &mut pages)?.base);
        let mut leases = LeaseBook::default();
        let mut prepared = Vec::new();
        for index in open {
            let renewal = &renewals[*index];
            let mut holds = Vec::new();
            for _ in &renewal.resources {
                let (hold, life) = (pages.next(), pages.next());
                let (Some(hold), Some(life)) = (hold.first(), life.first()) else { continue };
                let stored = StoredHold::of(hold, self.url())?;
                if stored.hold.token == renewal.token {
                    holds.push(StoredHold { life: Some(Life::of(life)), ..stored });
                }
            }
            if holds.len() < renewal.resources.len() {
                answers[*index] = Some(Renewed::Lost);
            } else {
                let at = (&base, revision);
                prepared.push(self.prepare(*index, renewal, holds, &mut leases, at).await?);
            }
        }
        let same_store = base.same_store(&self.keys);
        // One with many holds needs all that a transaction can take.
        let (large, mut small): (Vec<Prepared>, Vec<Prepared>) =
            prepared.into_iter().partition(|one| one.write.operations.len() > EACH_MAX);
        for one in large {
            self.carry_out(limit, vec![one], same_store.clone(), &mut leases, answers).await?;
        }
        while !small.is_empty() {
            let rest = small.split_off(small.len().min(EACH_MAX));
            self.carry_out(limit, small, same_store.clone(), &mut leases, answers).await?;
            small = rest;
        }
        self.leases.end_unused(leases.left());
        Ok(())
    }

    async fn prepare(
        &self,
        index: usize,
        renewal: &Renewal,
        holds: Vec<StoredHold>,
        leases: &mut LeaseBook,
        (base, revision): (&Base, i64),
    ) -> Result<Prepared, Failure> {
        let mut compares = Compares::default();
        let mut prepared = Prepared {
            index,
            write: Write::default(),
            kept: BTreeSet::new(),
            keys: vec![],
            is_plain: renewal.bind.is_none(),
            attached: vec![],
            detached: vec![],
        };
        // A resource may be named twice, but a key is put only once.
        let mut puts: BTreeMap<String, TxnOp> = BTreeMap::new();
        for mut stored in holds {
            let resource = stored.hold.want.resource.clone();
            let (hold_key, life_key) = (
                self.keys.hold(Family::Holds, &resource, renewal.grant),
                self.keys.hold(Family::Lives, &resource, renewal.grant),
            );
            let Some(life) = stored.life else { continue };
            compares.same(About::Holds, hold_key.clone(), stored.revision);
            compares.same(About::Lives, life_key.clone(), life.revision);
            prepared.keys.push((hold_key.clone(), stored.revision));
            prepared.keys.push((life_key.clone(), life.revision));
            if seconds_up(stored.hold.ttl) == seconds_up(renewal.ttl) {
                prepared.kept.insert(life.lease);
            } else {
                let seconds = seconds_up(renewal.ttl);
                let wanted = LeaseUse { grant: renewal.grant, seconds, place: false };
                let lease = leases.get_started(&self.leases, wanted).await?;
                let options = PutOptions::new().with_lease(lease);
                prepared.attached.push((life_key.clone(), lease));
                prepared.detached.push((life_key.clone(), life.lease));
                puts.insert(life_key.clone(), TxnOp::put(life_key, vec![], Some(options)));
                prepared.is_plain = false;
            }
            stored.hold.ttl = renewal.ttl;
            stored.renewed_at = self.now();
            if let Some(evidence) = &renewal.bind {
                stored.hold.holder.evidence = Some(evidence.clone());
            }
            puts.insert(hold_key.clone(), TxnOp::put(hold_key, stored.value(), None));
        }
        prepared.write.operations = puts.into_values().collect();
        let drops = base.unchanged(&self.keys, "drops");
        (prepared.write.compares, _) = compares.list(&self.keys, revision, drops);
        Ok(prepared)
    }

    /// Keeps the leases alive and puts the holds. A renewal whose holds changed meanwhile is not answered.
    async fn carry_out(
        &self,
        limit: Duration,
        prepared: Vec<Prepared>,
        same_store: Compare,
        leases: &mut LeaseBook,
        answers: &mut [Option<Renewed>],
    ) -> Result<(), Failure> {
        let kept: BTreeSet<i64> =
            prepared.iter().flat_map(|one| one.kept.iter().copied()).collect();
        let keeping = kept.iter().map(|lease| self.connection.keep_lease_within(limit, *lease));
        let writes = prepared.iter().map(|one| one.write.clone()).collect();
        // One with many holds is a large write.
        let most = prepared.iter().map(|one| one.write.operations.len()).max().unwrap_or(0);
        let write_limit = if most > EACH_MAX { limit.max(LARGE_WRITE_TIMEOUT) } else { limit };
        let writing = self.connection.write_each(write_limit, vec![same_store], writes);
        let (alive, made) = tokio::join!(join_all(keeping), writing);
        let mut ended = BTreeSet::new();
        for (lease, alive) in kept.into_iter().zip(alive) {
            match alive {
                Ok(()) => {}
                Err(Failure::NoLease) => drop(ended.insert(lease)),
                Err(failure) => return Err(failure),
            }
        }
        let mut made = match made {
            Err(Failure::NoSpace) if prepared.iter().all(|one| one.is_plain) => {
                vec![false; prepared.len()]
            }
            made => made?,
        };
        if made.is_empty() {
            // The store was replaced just now: the next look says so.
            return Ok(());
        }
        // The leases were kept alive, and where all holds are still there after that, it is what counts;
        // only when they were renewed is not put. One of many holds compares so much that other changes
        // are often in its way.
        let is_late = |(one, made): &(&Prepared, &mut bool)| one.is_plain && !**made;
        let (late, late_made): (Vec<&Prepared>, Vec<&mut bool>) =
            prepared.iter().zip(&mut made).filter(is_late).unzip();
        if !late.is_empty() {
            let unchanged = self.unchanged(limit, &late).await?;
            late_made.into_iter().zip(unchanged).for_each(|(made, unchanged)| *made = unchanged);
        }
        let (mut attached, mut detached) = (Vec::new(), Vec::new());
        for (one, made) in prepared.into_iter().zip(made) {
            if one.kept.iter().any(|lease| ended.contains(lease)) {
                answers[one.index] = Some(Renewed::Lost);
            } else if made {
                answers[one.index] = Some(Renewed::Renewed);
            }
            if made {
                attached.extend(one.attached);
                detached.extend(one.detached);
            }
        }
        self.leases.attach(&leases.use_up(&attached), &attached);
        self.leases.detach(&detached);
        Ok(())
    }

    /// Whether the holds of each renewal are still as they were.
    async fn unchanged(
        &self,
        limit: Duration,
        prepared: &[&Prepared],
    ) -> Result<Vec<bool>, Failure> {
        let keys = prepared.iter().flat_map(|one| &one.keys);
        let asks: Vec<Ask> = keys.map(|(key, _)| Ask::one(key.clone()).keys_only()).collect();
        let mut pages = self.connection.read_within(limit, &asks, None).await?;
        let mut is_unchanged = |revision: i64| {
            let page = pages.next();
            page.first().is_some_and(|entry| entry.mod_revision() == revision)
        };
        let one = |one: &&Prepared| {
            let unchanged = one.keys.iter().filter(|(_, revision)| is_unchanged(*revision));
            unchanged.count() == one.keys.len()
        };
        Ok(prepared.iter().map(one).collect())
    }
}
