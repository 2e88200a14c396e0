//! The store of one process: the reference to read first.

use crate::clock::{Clock, SystemClock};
use crate::store::ledger::{Ledger, Record};
use crate::store::store_time::StoreTime;
use crate::store::wake_registry::WakeRegistry;
use crate::store::{
    Decide, Finding, Renewal, Renewed, Store, StoreError, StoreInfo, Tally, TaskFilter,
};
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Change, Decision, Event, GrantId, Revision, Scope, Snapshot, Task, WallTime, Write,
};
use tokio::sync::watch;

/// Most events kept; older ones are forgotten.
const EVENTS_MAX: usize = 10_000;

/// Keeps everything in memory, for one process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    turns: WakeRegistry,
    newest: watch::Sender<Revision>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    events: VecDeque<Event>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::with_clock(Arc::new(SystemClock))
    }

    /// An empty store that judges leases by this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> MemoryStore {
        MemoryStore {
            clock,
            state: Mutex::default(),
            turns: WakeRegistry::default(),
            newest: watch::Sender::new(Revision(0)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl State {
    fn apply(&mut self, change: Change, at: StoreTime, turns: &WakeRegistry) {
        for write in change.writes {
            match &write {
                Write::Wait(waiter) => {
                    turns.expect(waiter.grant);
                }
                Write::DropWait(waiter) => turns.forget(waiter.grant),
                _ => {}
            }
            self.ledger.apply(Record::of(write, at, ""));
        }
        for event in change.events {
            self.ledger.revision += 1;
            let revision = Revision(self.ledger.revision);
            self.events.push_back(Event { revision, at: WallTime(at.wall_ms), event });
        }
        while self.events.len() > EVENTS_MAX {
            self.events.pop_front();
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            url: "memory:".to_owned(),
            engine: "memory".to_owned(),
            local: true,
            ended_boots: vec![],
        }
    }

    async fn transact_once(
        &self,
        slot: Option<&str>,
        scope: &Scope,
        decide: Decide<'_>,
    ) -> Result<Revision, StoreError> {
        let (revision, wake) = {
            let mut state = self.state();
            let at = StoreTime::of(&*self.clock);
            let answered = slot.and_then(|slot| state.ledger.answers.get(slot));
            let mut decision = decide(&Snapshot { answered, ..state.ledger.show(scope, at) });
            if decision == Decision::NeedAll {
                decision = decide(&state.ledger.show(&Scope::Everything, at));
            }
            let mut wake = Vec::new();
            if let Decision::Write(mut change) = decision {
                wake = std::mem::take(&mut change.wake);
                state.apply(change, at, &self.turns);
            }
            (Revision(state.ledger.revision), wake)
        };
        // Whoever wrote before may only come here after: the newest must not fall back.
        self.newest.send_if_modified(|newest| {
            let newer = *newest < revision;
            *newest = revision.max(*newest);
            newer
        });
        for grant in wake {
            self.turns.wake(grant);
        }
        Ok(revision)
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let mut state = self.state();
        let at = StoreTime::of(&*self.clock);
        let one = |renewal: &Renewal| {
            if !state.ledger.may_renew(renewal, at) {
                return Renewed::Lost;
            }
            state.ledger.apply(Record::of_renewal(renewal, at));
            Renewed::Renewed
        };
        Ok(renewals.iter().map(one).collect())
    }

    async fn read(&self, scope: &Scope) -> Result<Snapshot, StoreError> {
        Ok(self.state().ledger.show(scope, StoreTime::of(&*self.clock)))
    }

    async fn changed(&self, since: Revision, patience: Duration) -> Result<Revision, StoreError> {
        let mut newest = self.newest.subscribe();
        let beyond = newest.wait_for(|revision| *revision > since);
        let _ = tokio::time::timeout(patience, beyond).await;
        Ok(Revision(self.state().ledger.revision))
    }

    async fn turn(&self, grant: GrantId, patience: Duration) -> Result<(), StoreError> {
        self.turns.wait(grant, patience).await;
        Ok(())
    }

    async fn events(&self, after: Revision, limit: u32) -> Result<Vec<Event>, StoreError> {
        let state = self.state();
        let later = state.events.iter().filter(|event| event.revision > after);
        Ok(later.take(limit as usize).cloned().collect())
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<Task>, StoreError> {
        Ok(self.state().ledger.tasks.list(filter))
    }

    async fn tallies(&self) -> Result<Vec<Tally>, StoreError> {
        Ok(self.state().ledger.tasks.tallies())
    }

    async fn tidy(&self) -> Result<usize, StoreError> {
        Ok(0)
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(vec![])
    }
}
