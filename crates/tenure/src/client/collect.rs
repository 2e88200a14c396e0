//! Removing what is beyond the limits of [`Retention`]: now and then after a change, and on request. What
//! a store keeps for itself, and what crashed processes left in it, is tidied by the same turns.

use super::backend::{Local, Sent};
use crate::store::{StoreError, StoreExt, SurplusTasks, Tally, TaskCounts, Trim};
use crate::world::World;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tenure_core::act::{Acquire, Act, ClaimTasks};
use tenure_core::rules::tasks::RetireAsk;
use tenure_core::{EndedTask, Keep, Retention, Revision, Status};

/// After so many events at most a turn follows, on average. A task records three to six events.
const EVENTS_PER_TURN: u64 = 512;

/// A store that keeps little is looked after more often, so that it never has much more than that.
const EVENTS_PER_TURN_MIN: u64 = 16;

/// So many tasks of each status are removed in a turn: several times as many as are finished between
/// two turns, so that a store which is beyond its limits comes back to them.
const TASKS_MAX: usize = 1024;

/// So many events are removed in a turn, for the same reason.
const EVENTS_MAX: u32 = 8192;

/// So many tasks are removed in one change: other writers wait for a few milliseconds at most.
const TASKS_AT_ONCE: usize = 64;

/// So many tasks that must stay are passed over in a turn to find others that may go.
const SKIPPED_MAX: u32 = 1024;

/// So many are listed at once when all are to be removed.
const PAGE: u32 = 50_000;

/// The label under which events tell of removed tasks.
const BY: &str = "retention";

/// What a collection removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Collected {
    /// So many finished tasks.
    pub tasks: u64,
    /// So many events.
    pub events: u64,
}

type Collecting<'a> = Pin<Box<dyn Future<Output = Result<Collected, StoreError>> + Send + 'a>>;

/// How far a collection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// It removes a bounded number.
    Turn,
    /// It removes all that is beyond the limits.
    All,
    /// It counts that, and removes nothing.
    DryRun,
}

/// Decides when a turn is due, and takes it.
pub(crate) struct Collector {
    pub(crate) retention: Retention,
    world: Arc<dyn World>,
    /// Whether the process ends soon: then a turn is taken before the caller goes on, because nothing
    /// runs beside it for long enough.
    one_shot: bool,
    /// After so many events a turn follows, on average.
    events_per_turn: u64,
    /// The process that is taking a turn; 0 for none.
    busy: AtomicU32,
}

impl Collector {
    pub(crate) fn new(retention: Retention, world: Arc<dyn World>, one_shot: bool) -> Collector {
        let events_per_turn = events_per_turn(&retention);
        Collector { retention, world, one_shot, events_per_turn, busy: AtomicU32::new(0) }
    }

    /// Takes a turn if one is due after a change that recorded so many events: beside the caller, or
    /// before it goes on in a process that ends soon. A claim or an acquire never waits for it.
    pub(super) async fn after<A: Act>(
        self: &Arc<Self>,
        local: &Local,
        newest: Revision,
        events: u64,
    ) {
        if !is_due(newest, events, self.events_per_turn) {
            return;
        }
        let is_urgent = [Acquire::VERB, ClaimTasks::VERB].contains(&A::VERB);
        let pid = self.world.process_id();
        if A::VERB == RetireAsk::VERB
            || (is_urgent && self.one_shot)
            || self.busy.swap(pid, Ordering::AcqRel) == pid
        {
            return;
        }
        let (collector, local) = (self.clone(), local.without_actor());
        let turn = async move {
            // What a turn leaves, because the store is busy or gone, is left to the next one.
            let _ = local.collect(Extent::Turn).await;
            let _ = local.store.tidy().await;
            collector.busy.store(0, Ordering::Release);
        };
        match self.one_shot {
            true => turn.await,
            false => drop(self.world.spawn_background(Box::pin(turn))),
        }
    }
}

fn events_per_turn(retention: &Retention) -> u64 {
    let limits = [retention.events, retention.tasks, retention.failed];
    let least = limits.iter().filter_map(|keep| keep.newest).min();
    least.map_or(EVENTS_PER_TURN, |least| (least / 4).clamp(EVENTS_PER_TURN_MIN, EVENTS_PER_TURN))
}

/// Whether a turn follows a change with this newest event. Numbers are stirred, so that no pattern of
/// changes and no distance between revisions misses the turns.
fn is_due(newest: Revision, events: u64, per_turn: u64) -> bool {
    let stirred = newest.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let stirred = (stirred ^ (stirred >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (stirred >> 40) % per_turn < events
}

impl Local {
    /// Removes what is beyond the limits. In a box, because a turn follows from acts and consists of acts.
    pub(crate) fn collect(&self, extent: Extent) -> Collecting<'_> {
        Box::pin(self.collect_by_status(extent))
    }

    async fn collect_by_status(&self, extent: Extent) -> Result<Collected, StoreError> {
        let retention = self.collector.as_ref().map_or(Retention::ALL, |one| one.retention);
        let mut collected = Collected::default();
        if retention.tasks != Keep::ALL || retention.failed != Keep::ALL {
            let tallies: Vec<Tally> = self.store.read(TaskCounts).await?;
            for status in Status::ALL {
                let of_status = tallies.iter().filter(|tally| tally.status == status);
                let total = of_status.map(|tally| tally.count).sum();
                let keep = retention.of(status);
                collected.tasks += self.retire(status, keep, total, extent).await?;
            }
        }
        let dry_run = extent == Extent::DryRun;
        let limit = if extent == Extent::Turn { EVENTS_MAX } else { u32::MAX };
        let trim = Trim { keep: retention.events, limit, dry_run };
        collected.events = self.store.trim(trim).await?;
        Ok(collected)
    }

    /// Removes the tasks of one status, of which there are so many; returns how many. Most turns find
    /// nothing to remove, and know it from the number alone.
    async fn retire(
        &self,
        status: Status,
        keep: Keep,
        total: u64,
        extent: Extent,
    ) -> Result<u64, StoreError> {
        let limit = if extent == Extent::Turn { TASKS_MAX as u32 } else { PAGE };
        let (mut removed, mut skip) = (0, 0);
        if keep.candidates(0, total, limit) == 0 {
            return Ok(0);
        }
        loop {
            let surplus = SurplusTasks { status, keep, skip, limit };
            let found: Vec<EndedTask> = self.store.read(surplus).await?;
            for some in found.chunks(TASKS_AT_ONCE) {
                let ask = RetireAsk { tasks: some.to_vec(), by: BY.to_owned() };
                let gone = match extent {
                    Extent::DryRun => {
                        let seen = self.store.read(&ask.scope()).await?;
                        ask.decide(&seen, &*self.witness).1.len()
                    }
                    Extent::Turn | Extent::All => self.perform(Sent::default(), &ask).await?.len(),
                };
                removed += gone;
                skip += (some.len() - if extent == Extent::DryRun { 0 } else { gone }) as u32;
            }
            let is_enough = extent == Extent::Turn && (removed >= TASKS_MAX || skip >= SKIPPED_MAX);
            if is_enough || found.len() < limit as usize {
                return Ok(removed as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the distance between revisions, turns come about as often as they should.
    #[test]
    fn turns_are_due_in_proportion_to_events() {
        for (distance, events) in [(1, 1), (2, 2), (3, 3), (64, 1), (256, 1), (4096, 4), (1000, 1)]
        {
            let changes = 100_000;
            let newest = (1..=changes).map(|number| Revision(number * distance));
            for per_turn in [EVENTS_PER_TURN_MIN, 100, EVENTS_PER_TURN] {
                let is_due = |newest: &Revision| is_due(*newest, events, per_turn);
                let turns = newest.clone().filter(is_due).count() as f64;
                let expected = (changes * events) as f64 / per_turn as f64;
                let ratio = turns / expected;
                assert!((0.5..2.0).contains(&ratio), "every {distance}: {turns} of {expected}");
            }
        }
        let large = EVENTS_PER_TURN;
        assert!(is_due(Revision(1), large, EVENTS_PER_TURN), "one follows every large change");
    }

    #[test]
    fn a_store_that_keeps_little_is_looked_after_more_often() {
        let of = |events, tasks| {
            let events = Keep { newest: events, age: None };
            events_per_turn(&Retention { events, tasks, ..Retention::ALL })
        };
        assert_eq!(of(None, Keep::ALL), EVENTS_PER_TURN);
        assert_eq!(of(Some(100_000), Keep::newest(100_000)), EVENTS_PER_TURN);
        assert_eq!(of(Some(1_000), Keep::newest(100)), 25);
        assert_eq!(of(Some(0), Keep::ALL), EVENTS_PER_TURN_MIN);
    }
}
