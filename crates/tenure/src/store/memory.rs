//! The store of one process: the reference to read first.

use crate::store::ledger::{Ledger, Record};
use crate::store::memory_records::MemoryRecords;
use crate::store::store_time::StoreTime;
use crate::store::wake_registry::WakeRegistry;
use crate::store::{
    Answer, Committed, EventSearch, EventsAfter, Limits, Maintained, Maintenance, NewestEvents,
    Prefer, Query, Renewal, Renewed, Signal, Store, StoreError, StoreInfo, Transaction, Trim,
    Waited, cannot_move,
};
use crate::watched::Watched;
use crate::world::{Clock, SystemClock};
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Change, Event, Revision, Scope, Snapshot, WallTime, Write};

/// Most events kept; older ones are forgotten.
const EVENTS_MAX: usize = 10_000;

/// Keeps everything in memory, for one process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    turns: WakeRegistry,
    newest: Watched<Revision>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    events: VecDeque<Event>,
    records: MemoryRecords,
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
            newest: Watched::new(Revision(0)),
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
        let first = change.first_revision(self.ledger.revision + 1);
        for write in change.writes {
            match write {
                Write::PutRecord(record) => {
                    self.records.put(record, at);
                    continue;
                }
                Write::DropRecords(range) => {
                    self.records.drop_all(&range);
                    continue;
                }
                Write::Wait(ref waiter) => {
                    turns.expect(waiter.grant);
                }
                Write::DropWait(ref waiter) => turns.forget(waiter.grant),
                _ => {}
            }
            if let Some(record) = Record::of(write, at, "") {
                self.ledger.apply(record);
            }
        }
        for (number, event) in (first..).zip(change.events) {
            self.ledger.revision = number;
            let revision = Revision(number);
            self.events.push_back(Event::new(revision, WallTime(at.wall_ms), event));
        }
        while self.events.len() > EVENTS_MAX {
            self.events.pop_front();
        }
    }

    fn search(&self, search: &EventSearch) -> Vec<Event> {
        let (limit, admits) = (search.limit as usize, |event: &&Event| search.admits(event));
        match search.prefer {
            Prefer::Oldest => self.events.iter().filter(admits).take(limit).cloned().collect(),
            Prefer::Newest => {
                let newest = self.events.iter().rev().filter(admits).take(limit);
                let mut found: Vec<Event> = newest.cloned().collect();
                found.reverse();
                found
            }
        }
    }
}

impl State {
    fn trim(&mut self, trim: Trim, clock: &dyn Clock) -> u64 {
        let total = self.events.len() as u64;
        let most = trim.keep.candidates(0, total, trim.limit);
        let oldest = self.events.iter().take(most as usize).map(|event| event.at);
        let times: Vec<WallTime> = oldest.collect();
        let surplus = trim.keep.surplus_events(&times, total, clock.wall());
        if !trim.dry_run {
            self.events.drain(..surplus);
        }
        surplus as u64
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            url: "memory:".to_owned(),
            engine: "memory".to_owned(),
            local: true,
            limits: Limits::LOCAL,
            ended_boots: vec![],
            is_new: false,
        }
    }

    async fn transact(&self, mut transaction: Transaction) -> Result<Committed, StoreError> {
        let (before, revision, wake) = {
            let mut state = self.state();
            let at = StoreTime::of(&*self.clock);
            let before = Revision(state.ledger.revision);
            let slot = transaction.slot();
            let answered = slot.and_then(|slot| state.ledger.answers.get(slot));
            let show = |scope: &Scope| {
                let snapshot = state.ledger.show(scope, at);
                Ok::<_, StoreError>((Snapshot { answered: answered.clone(), ..snapshot }, ()))
            };
            let mut wake = Vec::new();
            if let Some(mut change) = transaction.choose(show)?.change {
                wake = std::mem::take(&mut change.wake);
                state.apply(change, at, &self.turns);
            }
            (before, Revision(state.ledger.revision), wake)
        };
        // An earlier writer may come here later: the newest revision must not fall back.
        self.newest.update(|newest| newest.max(revision));
        for grant in wake {
            self.turns.wake(grant);
        }
        Ok(Committed { revision: (revision > before).then_some(revision) })
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

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let state = self.state();
        Ok(match query {
            Query::Snapshot(scope) => {
                let snapshot = state.ledger.show(&scope, StoreTime::of(&*self.clock));
                Answer::Snapshot(Box::new(snapshot))
            }
            Query::Events(EventsAfter { after, limit }) => {
                let seen = state.events.partition_point(|event| event.revision <= after);
                let later = state.events.iter().skip(seen).take(limit as usize);
                Answer::Events(later.cloned().collect())
            }
            Query::NewestEvents(NewestEvents { limit }) => {
                let older = state.events.len().saturating_sub(limit as usize);
                Answer::Events(state.events.iter().skip(older).cloned().collect())
            }
            Query::SearchEvents(search) => Answer::Events(state.search(&search)),
            Query::Records(search) => {
                Answer::Records(state.records.search(&search, StoreTime::of(&*self.clock)))
            }
            Query::Tasks(filter) => Answer::Tasks(state.ledger.tasks.list(&filter)),
            Query::TaskCounts => Answer::TaskCounts(state.ledger.tasks.tallies()),
            Query::SurplusTasks(asked) => {
                Answer::SurplusTasks(state.ledger.tasks.surplus(&asked, self.clock.wall()))
            }
        })
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        match signal {
            Signal::Change { since } => {
                let beyond = self.newest.wait_for(|revision| revision > since);
                let _ = tokio::time::timeout(patience, beyond).await;
                Ok(Waited::Change(Revision(self.state().ledger.revision)))
            }
            Signal::Turn { grant } => {
                self.turns.wait(grant, patience).await;
                Ok(Waited::Turn)
            }
        }
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        Ok(match work {
            Maintenance::Tidy => Maintained::Tidied(0),
            Maintenance::Leftovers => Maintained::Left(0),
            Maintenance::Check => Maintained::Checked(vec![]),
            Maintenance::Moved => return Err(cannot_move()),
            Maintenance::Trim(trim) => Maintained::Trimmed(self.state().trim(trim, &*self.clock)),
        })
    }
}
