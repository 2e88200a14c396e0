//! The store of one process: the reference to read first.

use crate::clock::{Clock, SystemClock};
use crate::store::turns::Turns;
use crate::store::{
    Decide, Finding, Renewal, Renewed, Store, StoreError, StoreInfo, Tally, TaskFilter,
};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tenure_core::{
    Change, Decision, Event, GrantId, Hold, Kind, Look, Pick, Resource, Revision, Section, Seen,
    SeenHold, SeenSection, SeenWaiter, Status, Task, TaskId, TaskLook, Waiter, WallTime, Write,
};
use tokio::sync::watch;

/// Most events kept; older ones are forgotten.
const EVENTS_MAX: usize = 10_000;

/// Keeps everything in memory, for one process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    turns: Turns,
    newest: watch::Sender<Revision>,
}

#[derive(Default)]
struct State {
    holds: Vec<StoredHold>,
    waiters: Vec<StoredWaiter>,
    tasks: BTreeMap<TaskId, Task>,
    sections: BTreeMap<String, Section>,
    events: VecDeque<Event>,
    revision: u64,
}

struct StoredHold {
    hold: Hold,
    since: Duration,
    deadline: Duration,
    acquired_at: WallTime,
    renewed_at: WallTime,
}

struct StoredWaiter {
    waiter: Waiter,
    since: Duration,
    deadline: Duration,
    waiting_since: WallTime,
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
            turns: Turns::default(),
            newest: watch::Sender::new(Revision(0)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl State {
    fn show(&self, look: &Look, clock: &dyn Clock) -> Seen {
        let (now, wall) = (clock.now(), clock.wall());
        let concerned = |resource: &Resource| match look {
            Look::Everything => true,
            Look::At { resources, .. } | Look::Queues(resources) => {
                resources.iter().any(|wanted| wanted.overlaps(resource))
            }
            Look::Tasks(_) => resource.kind() != Kind::Lock,
        };
        let holds = self.holds.iter().filter(|stored| concerned(&stored.hold.want.resource));
        let waiters = self
            .waiters
            .iter()
            .filter(|stored| stored.waiter.wants.iter().any(|want| concerned(&want.resource)));
        let mut seen = Seen {
            holds: holds.map(|stored| stored.show(now, wall)).collect(),
            waiters: waiters.map(|stored| stored.show(now)).collect(),
            whole: *look == Look::Everything,
            next: self.revision + 1,
            revision: Revision(self.revision),
            wall,
            ..Seen::default()
        };
        if let Look::Tasks(look) = look {
            self.show_tasks(look, wall, &mut seen);
        }
        seen
    }

    fn show_tasks(&self, look: &TaskLook, wall: WallTime, seen: &mut Seen) {
        let picked = self.picked(look.pick.as_ref(), wall, seen);
        let ids: HashSet<&TaskId> = look.ids.iter().collect();
        let keys: HashSet<&String> = look.keys.iter().collect();
        let shown = self.tasks.values().filter(|task| {
            ids.contains(&task.id)
                || task.key.as_ref().is_some_and(|key| keys.contains(key))
                || (look.dependents && task.depends_on.iter().any(|id| ids.contains(id)))
                || (look.in_progress && task.status == Status::InProgress)
                || picked.contains(&task.id)
        });
        seen.tasks = shown.cloned().collect();
        let mut open: BTreeMap<&str, u64> = BTreeMap::new();
        for task in self.tasks.values() {
            if let Some(section) = &task.section {
                *open.entry(section).or_default() += u64::from(!task.status.is_final());
            }
        }
        for name in self.sections.keys() {
            open.entry(name).or_default();
        }
        let one = |(name, open): (&str, u64)| {
            let section = self.sections.get(name).cloned().unwrap_or_else(|| Section::named(name));
            SeenSection { section, open }
        };
        seen.sections = open.into_iter().map(one).collect();
    }

    /// The first of each section that could be taken.
    fn picked(&self, pick: Option<&Pick>, wall: WallTime, seen: &mut Seen) -> BTreeSet<TaskId> {
        let Some(pick) = pick else { return BTreeSet::new() };
        let mut by_section: BTreeMap<Option<&str>, Vec<&Task>> = BTreeMap::new();
        for task in self.tasks.values().filter(|task| task.is_ready(wall)) {
            let section = pick.section.is_none() || pick.section == task.section;
            let labels = pick.labels.iter().all(|label| task.labels.contains(label));
            if section && labels {
                by_section.entry(task.section.as_deref()).or_default().push(task);
            }
        }
        let mut picked = BTreeSet::new();
        for tasks in by_section.values_mut() {
            tasks.sort_by_key(|task| task.order());
            seen.more_to_pick |= tasks.len() > pick.depth;
            picked.extend(tasks.iter().take(pick.depth).map(|task| task.id.clone()));
        }
        picked
    }

    fn apply(&mut self, change: Change, clock: &dyn Clock, turns: &Turns) {
        let (now, wall) = (clock.now(), clock.wall());
        for write in change.writes {
            self.write(write, now, wall, turns);
        }
        for event in change.events {
            self.revision += 1;
            self.events.push_back(Event { revision: Revision(self.revision), at: wall, event });
        }
        while self.events.len() > EVENTS_MAX {
            self.events.pop_front();
        }
    }

    fn write(&mut self, write: Write, now: Duration, wall: WallTime, turns: &Turns) {
        match write {
            Write::Hold(hold) => {
                let deadline = now + hold.ttl;
                let since = now;
                self.holds.push(StoredHold {
                    hold,
                    since,
                    deadline,
                    acquired_at: wall,
                    renewed_at: wall,
                });
            }
            Write::Extend { resource, grant, ttl } => {
                for stored in self.holds.iter_mut() {
                    if stored.hold.grant == grant && stored.hold.want.resource == resource {
                        stored.extend(ttl, now, wall);
                    }
                }
            }
            Write::DropHold { resource, grant } => {
                self.holds.retain(|stored| {
                    stored.hold.grant != grant || stored.hold.want.resource != resource
                });
            }
            Write::Wait(waiter) => {
                turns.expect(waiter.grant);
                let deadline = now + waiter.ttl;
                self.waiters.push(StoredWaiter {
                    waiter,
                    since: now,
                    deadline,
                    waiting_since: wall,
                });
            }
            Write::KeepPlace(waiter) => {
                for stored in self.waiters.iter_mut() {
                    if stored.waiter.grant == waiter.grant {
                        stored.waiter.ttl = waiter.ttl;
                        stored.deadline = now + waiter.ttl;
                    }
                }
            }
            Write::DropWait(waiter) => {
                turns.forget(waiter.grant);
                self.waiters.retain(|stored| stored.waiter.grant != waiter.grant);
            }
            Write::Task(task) => {
                self.tasks.insert(task.id.clone(), *task);
            }
            Write::DropTask(id) => {
                self.tasks.remove(&id);
            }
            Write::Section(section) => {
                self.sections.insert(section.name.clone(), section);
            }
            Write::DropSection(name) => {
                self.sections.remove(&name);
            }
        }
    }

    fn renew(&mut self, renewal: &Renewal, now: Duration, wall: WallTime) -> Renewed {
        let mine = |stored: &StoredHold, resource: &Resource| {
            stored.hold.grant == renewal.grant
                && stored.hold.token == renewal.token
                && stored.hold.want.resource == *resource
                && stored.deadline > now
        };
        let all_held = renewal
            .resources
            .iter()
            .all(|resource| self.holds.iter().any(|stored| mine(stored, resource)));
        if !all_held {
            return Renewed::Lost;
        }
        let named = |stored: &StoredHold| {
            stored.hold.grant == renewal.grant
                && renewal.resources.contains(&stored.hold.want.resource)
        };
        for stored in self.holds.iter_mut().filter(|stored| named(stored)) {
            stored.extend(renewal.ttl, now, wall);
            if let Some(evidence) = &renewal.bind {
                stored.hold.holder.evidence = Some(evidence.clone());
            }
        }
        Renewed::Renewed
    }
}

impl StoredHold {
    fn extend(&mut self, ttl: Duration, now: Duration, wall: WallTime) {
        self.hold.ttl = ttl;
        self.deadline = now + ttl;
        self.renewed_at = wall;
    }

    fn show(&self, now: Duration, wall: WallTime) -> SeenHold {
        let left = self.deadline.saturating_sub(now);
        SeenHold {
            hold: self.hold.clone(),
            left,
            held_for: now.saturating_sub(self.since),
            acquired_at: self.acquired_at,
            renewed_at: self.renewed_at,
            expires_at: super::expiry(wall, self.deadline, now),
        }
    }
}

impl StoredWaiter {
    fn show(&self, now: Duration) -> SeenWaiter {
        SeenWaiter {
            waiter: self.waiter.clone(),
            left: self.deadline.saturating_sub(now),
            waited_for: now.saturating_sub(self.since),
            waiting_since: self.waiting_since,
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn info(&self) -> StoreInfo {
        StoreInfo { url: "memory:".to_owned(), engine: "memory".to_owned(), local: true }
    }

    async fn transact(&self, look: &Look, decide: Decide<'_>) -> Result<Revision, StoreError> {
        let (revision, wake) = {
            let mut state = self.state();
            let mut decision = decide(&state.show(look, &*self.clock));
            if decision == Decision::LookWider {
                decision = decide(&state.show(&Look::Everything, &*self.clock));
            }
            let mut wake = Vec::new();
            if let Decision::Write(mut change) = decision {
                wake = std::mem::take(&mut change.wake);
                state.apply(change, &*self.clock, &self.turns);
            }
            (Revision(state.revision), wake)
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
        let (now, wall) = (self.clock.now(), self.clock.wall());
        let mut state = self.state();
        Ok(renewals.iter().map(|renewal| state.renew(renewal, now, wall)).collect())
    }

    async fn read(&self, look: &Look) -> Result<Seen, StoreError> {
        Ok(self.state().show(look, &*self.clock))
    }

    async fn changed(&self, since: Revision, patience: Duration) -> Result<Revision, StoreError> {
        let mut newest = self.newest.subscribe();
        let beyond = newest.wait_for(|revision| *revision > since);
        let _ = tokio::time::timeout(patience, beyond).await;
        Ok(Revision(self.state().revision))
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
        let state = self.state();
        let mut tasks: Vec<Task> =
            state.tasks.values().filter(|task| filter.admits(task)).cloned().collect();
        tasks.sort_by_key(|task| task.age);
        tasks.truncate(filter.limit as usize);
        Ok(tasks)
    }

    async fn tallies(&self) -> Result<Vec<Tally>, StoreError> {
        let state = self.state();
        let mut counts: BTreeMap<(Option<String>, &'static str), (Status, u64)> = BTreeMap::new();
        for task in state.tasks.values() {
            let key = (task.section.clone(), task.status.word());
            counts.entry(key).or_insert((task.status, 0)).1 += 1;
        }
        let tally = |((section, _), (status, count))| Tally { section, status, count };
        Ok(counts.into_iter().map(tally).collect())
    }

    async fn tidy(&self) -> Result<usize, StoreError> {
        Ok(0)
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(vec![])
    }
}
