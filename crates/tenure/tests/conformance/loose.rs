//! A store that promises what the contract asks and nothing more, to show that neither the suite nor
//! the rules take more for granted.
//!
//! It is a list of records that is searched from end to end. Each resource counts its own numbers,
//! with gaps, so that unrelated resources have the same tokens and tickets. Revisions have gaps, and
//! rise without events. Scopes show only what they name. Ready tasks are left out at random where a
//! store may do so. A change that is too large is refused.

use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tenure::core::rules::tasks::EVERYTHING;
use tenure::core::{
    Change, EndedTask, Event, GrantId, Hold, HoldSnapshot, Kind, Pick, RecordKind, RecordSnapshot,
    Resource, Revision, Scope, Section, SectionSnapshot, Snapshot, Status, StoredReply, Task,
    TaskId, TaskScope, Touched, Waiter, WaiterSnapshot, WallTime, Want, Write,
};
use tenure::store::{
    Answer, Committed, EventsAfter, Limits, Maintained, Maintenance, NewestEvents, Prefer, Query,
    Renewal, Renewed, Signal, Store, StoreError, StoreInfo, Tally, Transaction, Waited,
};
use tenure::world::{Clock, ManualClock};
use tokio::sync::{Notify, watch};

/// See the module.
pub struct Loose {
    clock: Arc<ManualClock>,
    limits: Limits,
    state: Mutex<State>,
    reached: watch::Sender<u64>,
    woken: Mutex<HashMap<GrantId, Arc<Notify>>>,
}

#[derive(Default)]
struct State {
    holds: Vec<StoredHold>,
    waits: Vec<StoredWait>,
    tasks: Vec<Task>,
    sections: BTreeMap<String, Section>,
    replies: HashMap<String, StoredReply>,
    records: BTreeMap<(RecordKind, String), StoredText>,
    events: Vec<Event>,
    /// The highest number that was given out for each resource.
    numbers: Vec<(Resource, u64)>,
    /// The highest number that a change over everything took.
    floor: u64,
    /// The highest age.
    age: u64,
    revision: u64,
    dice: u64,
}

struct StoredHold {
    hold: Hold,
    since: Duration,
    deadline: Duration,
    acquired_at: WallTime,
    renewed_at: WallTime,
}

struct StoredWait {
    waiter: Waiter,
    since: Duration,
    deadline: Duration,
    waiting_since: WallTime,
    woken: Option<Duration>,
}

struct StoredText {
    text: String,
    at: WallTime,
    deadline: Option<Duration>,
}

/// The moment of an operation.
#[derive(Clone, Copy)]
struct At {
    now: Duration,
    wall: WallTime,
}

impl Loose {
    pub fn new(clock: Arc<ManualClock>, records_max: Option<usize>) -> Loose {
        Loose {
            clock,
            limits: Limits { records_max, ..Limits::LOCAL },
            state: Mutex::default(),
            reached: watch::Sender::new(0),
            woken: Mutex::default(),
        }
    }

    fn at(&self) -> At {
        At { now: self.clock.now(), wall: self.clock.wall() }
    }

    fn bell(&self, grant: GrantId) -> Arc<Notify> {
        self.woken.lock().entry(grant).or_default().clone()
    }
}

impl State {
    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.dice >> 33) % sides
    }

    fn show(&mut self, scope: &Scope, at: At) -> Snapshot {
        let mut shown = match scope {
            Scope::Everything => self.around(|_| true, at),
            Scope::At { resources, .. } | Scope::Queues(resources) => {
                self.around(|one| resources.iter().any(|other| other.overlaps(one)), at)
            }
            Scope::Waits { resources, owner } => {
                let wanted = self.waits.iter().flat_map(|stored| &stored.waiter.wants);
                let wanted: Vec<Resource> =
                    wanted.map(|want| &want.resource).chain(resources).cloned().collect();
                let mut shown = self.around(|_| true, at);
                shown.holds.retain(|held| {
                    let resource = &held.hold.want.resource;
                    owner.owns(&held.hold) || wanted.iter().any(|one| one.overlaps(resource))
                });
                shown
            }
            Scope::Tasks(scope) => self.show_tasks(scope, at),
        };
        shown.whole = *scope == Scope::Everything;
        shown.shows_waits = matches!(scope, Scope::Waits { .. });
        shown.next = self.next(scope, &shown);
        // The revision may rise without events.
        self.revision += 1;
        shown.revision = Revision(self.revision);
        shown.wall = at.wall;
        shown.holds.sort_by_key(|held| held.hold.token);
        shown.waiters.sort_by_key(|place| place.waiter.ticket);
        shown
    }

    /// A number beyond those of the resources that the scope names, and no higher than it must be.
    fn next(&self, scope: &Scope, shown: &Snapshot) -> u64 {
        let is_in = |resource: &Resource| match scope {
            Scope::Everything => true,
            Scope::At { resources, .. }
            | Scope::Queues(resources)
            | Scope::Waits { resources, .. } => resources.iter().any(|one| one.overlaps(resource)),
            Scope::Tasks(_) => is_around(&shown.tasks, resource),
        };
        let numbers = self.numbers.iter().filter(|(resource, _)| is_in(resource));
        let ages = match scope {
            Scope::Tasks(scope) if scope.adds => self.age,
            _ => 0,
        };
        numbers.map(|(_, number)| *number).max().unwrap_or(0).max(ages).max(self.floor) + 1
    }

    fn around(&self, is_shown: impl Fn(&Resource) -> bool, at: At) -> Snapshot {
        let wanted = |want: &Want| is_shown(&want.resource);
        let holds = self.holds.iter().filter(|stored| wanted(&stored.hold.want));
        let waits = self.waits.iter().filter(|stored| stored.waiter.wants.iter().any(wanted));
        Snapshot {
            holds: holds.map(|stored| stored.show(at)).collect(),
            waiters: waits.map(|stored| stored.show(at)).collect(),
            ..Snapshot::default()
        }
    }

    fn show_tasks(&mut self, scope: &TaskScope, at: At) -> Snapshot {
        let mut ids: BTreeSet<TaskId> = scope.ids.iter().cloned().collect();
        let named: Vec<Task> =
            self.tasks.iter().filter(|task| ids.contains(&task.id)).cloned().collect();
        let sections: BTreeSet<Option<String>> =
            named.iter().filter(|_| scope.beside).map(|task| task.section.clone()).collect();
        for task in &self.tasks {
            let working = task.status == Status::InProgress;
            let claimed = task.claim.as_ref().map(|claim| claim.grant);
            let is_shown = task.key.as_ref().is_some_and(|key| scope.keys.contains(key))
                || (scope.dependents && task.depends_on.iter().any(|id| scope.ids.contains(id)))
                || (scope.dependencies
                    && named.iter().any(|one| one.depends_on.contains(&task.id)))
                || (working && (scope.in_progress || sections.contains(&task.section)))
                || claimed.is_some_and(|grant| scope.grants.contains(&grant));
            if is_shown {
                ids.insert(task.id.clone());
            }
        }
        let (mut more_to_pick, mut skipped) = (false, false);
        for section in sections.into_iter().flatten() {
            let pick = Pick { section: Some(section), depth: 1, ..Pick::default() };
            self.pick(&pick, at, &mut ids);
        }
        if let Some(pick) = &scope.pick {
            (more_to_pick, skipped) = self.pick(pick, at, &mut ids);
        }
        let mut tasks: Vec<Task> =
            self.tasks.iter().filter(|task| ids.contains(&task.id)).cloned().collect();
        tasks.sort_by_key(|task| task.age);
        let under: Vec<Resource> = self
            .holds
            .iter()
            .filter(|stored| scope.grants.contains(&stored.hold.grant))
            .map(|stored| stored.hold.want.resource.clone())
            .collect();
        let shown = self.around(|one| is_around(&tasks, one) || under.contains(one), at);
        let sections = self.show_sections(scope, &tasks);
        Snapshot { tasks, sections, more_to_pick, skipped, ..shown }
    }

    /// The first of each section; says whether there are more, and whether some were left out.
    fn pick(&mut self, pick: &Pick, at: At, ids: &mut BTreeSet<TaskId>) -> (bool, bool) {
        let mut ready: BTreeMap<Option<String>, Vec<&Task>> = BTreeMap::new();
        let wanted = |task: &&Task| {
            task.is_ready(at.wall)
                && (pick.section.is_none() || pick.section == task.section)
                && pick.labels.iter().all(|label| task.labels.contains(label))
        };
        for task in self.tasks.iter().filter(wanted) {
            ready.entry(task.section.clone()).or_default().push(task);
        }
        let mut sections: Vec<Vec<TaskId>> = Vec::new();
        for tasks in ready.values_mut() {
            tasks.sort_by_key(|task| task.order());
            sections.push(tasks.iter().map(|task| task.id.clone()).collect());
        }
        let (mut more, mut skipped) = (false, false);
        for section in sections {
            more |= section.len() > pick.depth;
            for id in section.into_iter().take(pick.depth) {
                match pick.may_skip && self.roll(3) > 0 {
                    true => skipped = true,
                    false => drop(ids.insert(id)),
                }
            }
        }
        (more, skipped)
    }

    /// The sections of the tasks, those that they depend on, and the one that stands for all; with
    /// whether anything is open in them, or how much where all are asked for.
    fn show_sections(&self, scope: &TaskScope, tasks: &[Task]) -> Vec<SectionSnapshot> {
        let used = self.tasks.iter().filter_map(|task| task.section.clone());
        let all: BTreeSet<String> = self.sections.keys().cloned().chain(used).collect();
        let of_tasks: BTreeSet<&str> =
            tasks.iter().filter_map(|task| task.section.as_deref()).collect();
        let described = of_tasks.iter().filter_map(|name| self.sections.get(*name));
        let before: BTreeSet<&str> =
            described.flat_map(|section| &section.depends_on).map(String::as_str).collect();
        let names = all.iter().filter(|name| {
            let name = name.as_str();
            scope.all_sections
                || of_tasks.contains(name)
                || before.contains(name)
                || name == EVERYTHING
        });
        let one = |name: &String| {
            let tasks = self.tasks.iter().filter(|task| task.section.as_ref() == Some(name));
            let open = tasks.filter(|task| !task.status.is_final()).count() as u64;
            SectionSnapshot {
                section: self.sections.get(name).cloned().unwrap_or_else(|| Section::named(name)),
                open: if scope.all_sections { open } else { open.min(1) },
            }
        };
        names.map(one).collect()
    }

    fn apply(&mut self, change: &Change, at: At) -> Option<Revision> {
        let last = change.last_number();
        for write in &change.writes {
            for touched in write.touches() {
                if let Touched::Resource(resource) = touched {
                    self.take_number(resource, last);
                }
            }
            self.write(write.clone(), at);
        }
        for event in &change.events {
            self.revision += 1 + self.roll(5);
            let revision = Revision(self.revision);
            self.events.push(Event::new(revision, at.wall, event.clone()));
        }
        (!change.events.is_empty()).then_some(Revision(self.revision))
    }

    fn take_number(&mut self, resource: &Resource, last: u64) {
        let gap = self.roll(4);
        match self.numbers.iter_mut().find(|(one, _)| one == resource) {
            Some((_, number)) => *number = (*number).max(last) + gap,
            None => self.numbers.push((resource.clone(), last + gap)),
        }
    }

    fn write(&mut self, write: Write, at: At) {
        match write {
            Write::Hold(hold) => {
                let (since, deadline) = (at.now, at.now + hold.ttl);
                let (acquired_at, renewed_at) = (at.wall, at.wall);
                self.holds.push(StoredHold { hold, since, deadline, acquired_at, renewed_at });
            }
            Write::Extend { resource, grant, ttl, operation } => {
                for stored in self.holds_of(&resource, grant) {
                    stored.renew(ttl, at);
                    stored.hold.operation = operation.clone().or(stored.hold.operation.take());
                }
            }
            Write::DropHold { resource, grant } => self.holds.retain(|stored| {
                stored.hold.grant != grant || stored.hold.want.resource != resource
            }),
            Write::Wait(waiter) => {
                let (since, deadline, waiting_since) = (at.now, at.now + waiter.ttl, at.wall);
                let woken = None;
                self.waits.push(StoredWait { waiter, since, deadline, waiting_since, woken });
            }
            Write::KeepPlace(waiter) => {
                for stored in self.waits.iter_mut().filter(|one| one.waiter.grant == waiter.grant) {
                    stored.waiter.ttl = waiter.ttl;
                    stored.deadline = at.now + waiter.ttl;
                    stored.woken = None;
                }
            }
            Write::Woken(waiter) => {
                for stored in self.waits.iter_mut().filter(|one| one.waiter.grant == waiter.grant) {
                    stored.woken = Some(at.now);
                }
            }
            Write::DropWait(waiter) => {
                self.waits.retain(|stored| stored.waiter.grant != waiter.grant);
            }
            Write::Task(task) => {
                self.age = self.age.max(task.age);
                self.tasks.retain(|one| one.id != task.id);
                self.tasks.push(*task);
            }
            Write::DropTask(id) => self.tasks.retain(|task| task.id != id),
            Write::Section(section) => {
                self.sections.insert(section.name.clone(), section);
            }
            Write::DropSection(name) => drop(self.sections.remove(&name)),
            Write::PutRecord(record) => {
                let deadline = record.ttl.map(|ttl| at.now + ttl);
                let key = (record.kind, record.key);
                self.records.insert(key, StoredText { text: record.text, at: at.wall, deadline });
            }
            Write::DropRecords(range) => {
                self.records.retain(|(kind, key), _| !range.has(*kind, key));
            }
            Write::Answer(reply) => drop(self.replies.insert(reply.slot.clone(), reply)),
        }
    }

    fn holds_of(
        &mut self,
        resource: &Resource,
        grant: GrantId,
    ) -> impl Iterator<Item = &mut StoredHold> {
        self.holds.iter_mut().filter(move |stored| {
            stored.hold.grant == grant && stored.hold.want.resource == *resource
        })
    }

    fn renew(&mut self, renewal: &Renewal, at: At) -> Renewed {
        let is_held = |resource: &Resource| {
            self.holds.iter().any(|stored| {
                stored.hold.want.resource == *resource
                    && stored.hold.grant == renewal.grant
                    && stored.hold.token == renewal.token
                    && stored.deadline > at.now
            })
        };
        if !renewal.resources.iter().all(is_held) {
            return Renewed::Lost;
        }
        for resource in &renewal.resources {
            for stored in self.holds_of(resource, renewal.grant) {
                stored.renew(renewal.ttl, at);
                let evidence = renewal.bind.clone();
                stored.hold.holder.evidence = evidence.or(stored.hold.holder.evidence.take());
            }
        }
        Renewed::Renewed
    }
}

/// Whether a scope with these tasks shows what is held and waited for on this resource.
fn is_around(tasks: &[Task], resource: &Resource) -> bool {
    tasks.iter().any(|task| match resource.kind() {
        Kind::Lock => false,
        Kind::Task => task.id.resource() == *resource,
        Kind::Section => task.section.as_deref() == Some(resource.name()),
        Kind::Path => task
            .files
            .iter()
            .any(|glob| Resource::new(Kind::Path, glob).is_ok_and(|file| file.overlaps(resource))),
    })
}

impl StoredHold {
    fn renew(&mut self, ttl: Duration, at: At) {
        self.hold.ttl = ttl;
        self.deadline = at.now + ttl;
        self.renewed_at = at.wall;
    }

    fn show(&self, at: At) -> HoldSnapshot {
        let left = self.deadline.saturating_sub(at.now);
        HoldSnapshot {
            hold: self.hold.clone(),
            left,
            held_for: at.now.saturating_sub(self.since),
            acquired_at: self.acquired_at,
            renewed_at: self.renewed_at,
            expires_at: WallTime(at.wall.0 + left.as_millis() as i64),
            stale: None,
        }
    }
}

impl StoredWait {
    fn show(&self, at: At) -> WaiterSnapshot {
        WaiterSnapshot {
            waiter: self.waiter.clone(),
            left: self.deadline.saturating_sub(at.now),
            waited_for: at.now.saturating_sub(self.since),
            waiting_since: self.waiting_since,
            woken_for: self.woken.map(|woken| at.now.saturating_sub(woken)),
        }
    }
}

#[async_trait]
impl Store for Loose {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            url: "loose:".to_owned(),
            engine: "loose".to_owned(),
            local: true,
            limits: self.limits,
            ended_boots: vec![],
            is_new: false,
        }
    }

    async fn transact(&self, mut transaction: Transaction) -> Result<Committed, StoreError> {
        let (at, slot) = (self.at(), transaction.slot().map(str::to_owned));
        let mut state = self.state.lock();
        let chosen = transaction.choose(|scope| {
            let answered = slot.as_ref().and_then(|slot| state.replies.get(slot)).cloned();
            Ok::<_, StoreError>((Snapshot { answered, ..state.show(scope, at) }, ()))
        })?;
        let Some(change) = chosen.change else { return Ok(Committed { revision: None }) };
        self.limits.check(&change)?;
        for write in &change.writes {
            if let Write::Wait(waiter) = write {
                self.bell(waiter.grant);
            }
        }
        if chosen.snapshot.whole {
            state.floor = state.floor.max(change.last_number());
        }
        let revision = state.apply(&change, at);
        self.reached.send_replace(state.revision);
        drop(state);
        change.wake.iter().for_each(|grant| self.bell(*grant).notify_one());
        Ok(Committed { revision })
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let (at, mut state) = (self.at(), self.state.lock());
        Ok(renewals.iter().map(|renewal| state.renew(renewal, at)).collect())
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let (at, mut state) = (self.at(), self.state.lock());
        Ok(match query {
            Query::Snapshot(scope) => Answer::Snapshot(Box::new(state.show(&scope, at))),
            Query::Events(EventsAfter { after, limit }) => {
                let later = state.events.iter().filter(|event| event.revision > after);
                Answer::Events(later.take(limit as usize).cloned().collect())
            }
            Query::NewestEvents(NewestEvents { limit }) => {
                let older = state.events.len().saturating_sub(limit as usize);
                Answer::Events(state.events[older..].to_vec())
            }
            Query::SearchEvents(search) => {
                let mut found: Vec<Event> =
                    state.events.iter().filter(|event| search.admits(event)).cloned().collect();
                let limit = search.limit as usize;
                match search.prefer {
                    Prefer::Oldest => found.truncate(limit),
                    Prefer::Newest => drop(found.drain(..found.len().saturating_sub(limit))),
                }
                Answer::Events(found)
            }
            Query::Records(search) => {
                let found = state.records.iter().filter(|((kind, key), stored)| {
                    search.range.has(*kind, key)
                        && *key > search.after
                        && stored.deadline.is_none_or(|deadline| deadline > at.now)
                });
                let shown = found.map(|((_, key), stored)| RecordSnapshot {
                    key: key.clone(),
                    text: stored.text.clone(),
                    written_at: stored.at,
                });
                Answer::Records(shown.take(search.limit as usize).collect())
            }
            Query::Tasks(filter) => {
                state.tasks.sort_by_key(|task| task.age);
                let tasks = state.tasks.iter().filter(|task| filter.admits(task));
                let tasks = tasks.take(filter.limit as usize).cloned();
                Answer::Tasks(tasks.map(|task| filter.listed(task)).collect())
            }
            Query::TaskCounts => {
                let mut counts: Vec<Tally> = Vec::new();
                for Task { section, status, .. } in &state.tasks {
                    match counts.iter_mut().find(|t| t.section == *section && t.status == *status) {
                        Some(tally) => tally.count += 1,
                        None => counts.push(Tally {
                            section: section.clone(),
                            status: *status,
                            count: 1,
                        }),
                    }
                }
                Answer::TaskCounts(counts)
            }
            Query::SurplusTasks(asked) => {
                let tasks = state.tasks.iter().filter(|task| task.status == asked.status);
                let mut ended: Vec<EndedTask> = tasks.filter_map(Task::ended).collect();
                let total = ended.len() as u64;
                ended.sort();
                ended.drain(..ended.len().min(asked.skip as usize));
                ended.truncate(asked.limit as usize);
                let times: Vec<WallTime> = ended.iter().map(|ended| ended.at).collect();
                ended.truncate(asked.keep.surplus(&times, asked.skip.into(), total, at.wall));
                Answer::SurplusTasks(ended)
            }
        })
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        match signal {
            Signal::Change { since } => {
                let mut reached = self.reached.subscribe();
                let beyond = reached.wait_for(|reached| *reached > since.0);
                let _ = tokio::time::timeout(patience, beyond).await;
                Ok(Waited::Change(Revision(self.state.lock().revision)))
            }
            Signal::Turn { grant } => {
                let bell = self.bell(grant);
                let _ = tokio::time::timeout(patience, bell.notified()).await;
                Ok(Waited::Turn)
            }
        }
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        Ok(match work {
            Maintenance::Tidy => Maintained::Tidied(0),
            Maintenance::Leftovers => Maintained::Left(0),
            Maintenance::Check => Maintained::Checked(vec![]),
            Maintenance::Moved => {
                let (what, instead) = ("a loose store is never moved".into(), "Nothing.".into());
                return Err(StoreError::Unsupported { what, instead });
            }
            Maintenance::Trim(trim) => {
                let (at, mut state) = (self.at(), self.state.lock());
                let oldest = state.events.iter().take(trim.limit as usize).map(|event| event.at);
                let times: Vec<WallTime> = oldest.collect();
                let total = state.events.len() as u64;
                let surplus = trim.keep.surplus_events(&times, total, at.wall);
                if !trim.dry_run {
                    state.events.drain(..surplus);
                }
                Maintained::Trimmed(surplus as u64)
            }
        })
    }
}
