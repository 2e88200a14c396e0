//! All that a store remembers, in memory, indexed so that looking costs the same however much
//! there is.
//!
//! The memory store is this and a mutex; the file store is this and a journal.

mod answers;
mod paths;
mod record;
mod tasks;

pub(crate) use record::{Record, Renewed, StoredHold, StoredWaiter};
pub(crate) use tasks::{Tasks, surplus_of};

use crate::store::path_prefixes::{self, PathPrefixes};
use crate::store::store_time::{StoreTime, from_ms, milliseconds_up};
use crate::store::{ENDED_BOOTS_MAX, Renewal};
use answers::Answers;
use paths::PathIndex;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tenure_core::{
    GrantId, HoldSnapshot, Kind, Owner, Resource, Revision, Scope, Snapshot, TaskScope,
    WaiterSnapshot, WallTime,
};

/// How much of a queue is shown at first. Enough to skip some dead ones and to let a few readers
/// go at once; few enough that the length of a queue does not matter.
const FRONT: usize = 8;

/// The records.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By the resource's key.
    holds: BTreeMap<String, Vec<StoredHold>>,
    /// By ticket.
    waits: BTreeMap<u64, StoredWaiter>,
    /// Who waits for a resource, by its key.
    queues: BTreeMap<String, Queue>,
    /// Which of those held are paths.
    held_paths: PathIndex,
    /// Which of those waited for are paths.
    queued_paths: PathIndex,
    pub(crate) tasks: Tasks,
    pub(crate) answers: Answers,
    /// The newest event's number.
    pub(crate) revision: u64,
    /// The boot under which deadlines are counted; empty where its id could not be read.
    pub(crate) boot: String,
    /// The boots before it, oldest first.
    pub(crate) ended_boots: Vec<String>,
}

#[derive(Debug)]
struct Queue {
    resource: Resource,
    tickets: BTreeSet<u64>,
}

/// The keys of one kind lie between these two.
fn keys_of(kind: Kind) -> std::ops::Range<String> {
    // The character after the colon is the semicolon.
    format!("{kind}:")..format!("{kind};")
}

impl Ledger {
    /// An empty one whose numbers go on from here.
    pub(crate) fn at(revision: u64, boot: &str, ended_boots: &[String]) -> Ledger {
        let (boot, ended_boots) = (boot.to_owned(), ended_boots.to_vec());
        Ledger { revision, boot, ended_boots, ..Ledger::default() }
    }

    /// The newest time of a hold or a place in a queue.
    pub(crate) fn newest_time_ms(&self) -> i64 {
        let holds = self.held().map(|stored| {
            let ttl_ms = milliseconds_up(stored.hold.ttl);
            stored.since_ms.max(stored.deadline_ms.saturating_sub(ttl_ms))
        });
        let waits = self.waits.values().map(|stored| {
            let ttl_ms = milliseconds_up(stored.waiter.ttl);
            stored.since_ms.max(stored.deadline_ms.saturating_sub(ttl_ms))
        });
        holds.chain(waits).max().unwrap_or(0)
    }

    /// Whether one of these renewals makes a lease longer than it was.
    pub(crate) fn lengthens(&self, renewals: &[Renewal]) -> bool {
        renewals.iter().any(|renewal| {
            let mut holds = renewal.resources.iter().flat_map(|resource| self.holders(resource));
            holds.any(|stored| stored.hold.grant == renewal.grant && renewal.ttl > stored.hold.ttl)
        })
    }

    /// What a rule gets to see.
    pub(crate) fn show(&self, scope: &Scope, at: StoreTime) -> Snapshot {
        let mut view =
            View { ledger: self, at, seen: Snapshot::default(), tickets: BTreeSet::new() };
        match scope {
            Scope::Everything => {
                view.holds(self.holds.values());
                view.tickets.extend(self.waits.keys());
            }
            Scope::Queues(resources) => view.at(resources, None, usize::MAX),
            Scope::At { resources, ticket } => view.at(resources, *ticket, FRONT),
            Scope::Waits { resources, owner } => view.waits(resources, owner),
            Scope::Tasks(scope) => view.tasks(scope),
        }
        let mut seen = view.finish();
        seen.whole = *scope == Scope::Everything;
        seen.shows_waits = matches!(scope, Scope::Waits { .. });
        seen.next = self.revision + 1;
        seen.revision = Revision(self.revision);
        seen.wall = WallTime(at.wall_ms);
        seen
    }

    /// Where this waiting request is to be woken.
    pub(crate) fn mailbox_of(&self, grant: GrantId) -> Option<&str> {
        // Few wait, and few of those are woken at once.
        let stored = self.waits.values().find(|stored| stored.waiter.grant == grant);
        stored.map(|stored| stored.mailbox.as_str())
    }

    /// Whether no other request waits before this one for a resource that it wants.
    pub(crate) fn is_first(&self, grant: GrantId) -> bool {
        let found = self.waits.iter().find(|(_, stored)| stored.waiter.grant == grant);
        found.is_none_or(|(ticket, stored)| {
            stored.waiter.wants.iter().any(|want| {
                let queue = self.queues.get(&want.resource.key());
                queue.and_then(|queue| queue.tickets.first()) == Some(ticket)
            })
        })
    }

    /// Who holds this very resource.
    pub(crate) fn holders(&self, resource: &Resource) -> &[StoredHold] {
        self.holds.get(&resource.key()).map_or(&[], Vec::as_slice)
    }

    /// All that is held.
    pub(crate) fn held(&self) -> impl Iterator<Item = &StoredHold> {
        self.holds.values().flatten()
    }

    /// Whether all that the renewal names is still held as it says.
    pub(crate) fn may_renew(&self, renewal: &Renewal, at: StoreTime) -> bool {
        renewal.resources.iter().all(|resource| {
            self.holders(resource).iter().any(|stored| {
                stored.hold.grant == renewal.grant
                    && stored.hold.token == renewal.token
                    && stored.deadline_ms > at.now_ms
            })
        })
    }

    /// Remembers one thing.
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Hold(stored) => {
                let resource = &stored.hold.want.resource;
                self.held_paths.insert(resource);
                self.holds.entry(resource.key()).or_default().push(stored);
            }
            Record::Renew(renewed) => self.renew(renewed),
            Record::DropHold { resource, grant } => {
                let key = resource.key();
                if let Some(holders) = self.holds.get_mut(&key) {
                    holders.retain(|stored| stored.hold.grant != grant);
                    if holders.is_empty() {
                        self.holds.remove(&key);
                        self.held_paths.remove(&resource);
                    }
                }
            }
            Record::Wait(stored) => self.wait(stored),
            Record::KeepPlace { ticket, ttl_ms, deadline_ms, mailbox } => {
                if let Some(stored) = self.waits.get_mut(&ticket) {
                    stored.waiter.ttl = from_ms(ttl_ms);
                    stored.deadline_ms = deadline_ms;
                    stored.mailbox = mailbox;
                    stored.woken_ms = None;
                }
            }
            Record::Woken { ticket, at_ms } => {
                if let Some(stored) = self.waits.get_mut(&ticket) {
                    stored.woken_ms = Some(at_ms);
                }
            }
            Record::DropWait { ticket } => self.drop_wait(ticket),
            Record::Task(task) => self.tasks.put(*task),
            Record::DropTask(id) => self.tasks.remove(&id),
            Record::Section(section) => self.tasks.put_section(section),
            Record::DropSection(name) => self.tasks.remove_section(&name),
            Record::Boot { id, same: true, .. } => self.boot = id,
            Record::Boot { id, begin_ms, .. } => self.begin_boot(id, begin_ms),
            Record::Archived { section, count } => self.tasks.archived(section, count),
            Record::Answer { answered, at, at_ms } => self.answers.put(answered, at, at_ms),
        }
    }

    fn renew(&mut self, renewed: Renewed) {
        for resource in &renewed.resources {
            let holders = self.holds.get_mut(&resource.key()).into_iter().flatten();
            for stored in holders.filter(|stored| stored.hold.grant == renewed.grant) {
                *stored = renewed.apply_to(stored);
            }
        }
    }

    fn wait(&mut self, stored: StoredWaiter) {
        let ticket = stored.waiter.ticket;
        for want in &stored.waiter.wants {
            let queue = self.queues.entry(want.resource.key()).or_insert_with(|| Queue {
                resource: want.resource.clone(),
                tickets: BTreeSet::new(),
            });
            queue.tickets.insert(ticket);
            self.queued_paths.insert(&want.resource);
        }
        self.waits.insert(ticket, stored);
    }

    fn drop_wait(&mut self, ticket: u64) {
        let Some(stored) = self.waits.remove(&ticket) else { return };
        for want in &stored.waiter.wants {
            let key = want.resource.key();
            if let Some(queue) = self.queues.get_mut(&key) {
                queue.tickets.remove(&ticket);
                if queue.tickets.is_empty() {
                    self.queues.remove(&key);
                    self.queued_paths.remove(&want.resource);
                }
            }
        }
    }

    fn begin_boot(&mut self, id: String, begin_ms: i64) {
        let ended = std::mem::replace(&mut self.boot, id);
        if !ended.is_empty() {
            self.ended_boots.push(ended);
            let surplus = self.ended_boots.len().saturating_sub(ENDED_BOOTS_MAX);
            self.ended_boots.drain(..surplus);
        }
        self.answers.begin_boot(begin_ms);
        for stored in self.holds.values_mut().flatten() {
            stored.since_ms = begin_ms;
            stored.deadline_ms = begin_ms.saturating_add(stored.hold.ttl.as_millis() as i64);
        }
        for stored in self.waits.values_mut() {
            stored.since_ms = begin_ms;
            stored.deadline_ms = begin_ms.saturating_add(stored.waiter.ttl.as_millis() as i64);
            stored.woken_ms = None;
        }
    }

    /// Records that together make this ledger, tasks and answers aside.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let holds = self.holds.values().flatten().cloned().map(Record::Hold);
        let waits = self.waits.values().cloned().map(Record::Wait);
        holds.chain(waits).chain(self.tasks.section_records())
    }
}

struct View<'a> {
    ledger: &'a Ledger,
    at: StoreTime,
    seen: Snapshot,
    /// Whose places are shown: a request for several resources may be met in several queues.
    tickets: BTreeSet<u64>,
}

impl View<'_> {
    fn at(&mut self, resources: &[Resource], ticket: Option<u64>, front: usize) {
        let different: HashSet<&Resource> = resources.iter().collect();
        let (paths, named): (Vec<&Resource>, Vec<&Resource>) =
            different.into_iter().partition(|resource| resource.kind() == Kind::Path);
        for resource in named {
            self.named(resource, ticket, front);
        }
        let overlaps = |other: &Resource| paths.iter().any(|path| path.overlaps(other));
        self.paths(&PathPrefixes::to(paths.iter().copied()), overlaps, ticket, front);
    }

    fn named(&mut self, resource: &Resource, ticket: Option<u64>, front: usize) {
        let key = resource.key();
        self.holds(self.ledger.holds.get(&key).into_iter());
        if let Some(queue) = self.ledger.queues.get(&key) {
            self.queue(&queue.tickets, ticket, front);
        }
    }

    /// What is held and waited for on those paths near that are `shown`.
    fn paths(
        &mut self,
        near: &PathPrefixes,
        shown: impl Fn(&Resource) -> bool,
        ticket: Option<u64>,
        front: usize,
    ) {
        let ledger = self.ledger;
        let holds = ledger.held_paths.near(near).filter_map(|key| ledger.holds.get(key));
        let overlapping = holds.filter(|holders| {
            holders.first().is_some_and(|stored| shown(&stored.hold.want.resource))
        });
        self.holds(overlapping);
        let queues = ledger.queued_paths.near(near).filter_map(|key| ledger.queues.get(key));
        let overlapping = queues.filter(|queue| shown(&queue.resource));
        let tickets: BTreeSet<u64> =
            overlapping.flat_map(|queue| &queue.tickets).copied().collect();
        self.queue(&tickets, ticket, front);
    }

    /// All that is waited for, what is held there, and what the owner holds.
    fn waits(&mut self, resources: &[Resource], owner: &Owner) {
        let ledger = self.ledger;
        let waited = ledger.queues.values().map(|queue| &queue.resource).chain(resources);
        let (paths, named): (Vec<&Resource>, Vec<&Resource>) =
            waited.partition(|resource| resource.kind() == Kind::Path);
        let keys: HashSet<String> = named.iter().map(|resource| resource.key()).collect();
        let shown = ledger.held().filter(|stored| {
            let held = &stored.hold.want.resource;
            let is_waited_for = match held.kind() {
                Kind::Path => paths.iter().any(|path| path.overlaps(held)),
                _ => keys.contains(&held.key()),
            };
            is_waited_for || owner.owns(&stored.hold)
        });
        self.seen.holds.extend(shown.map(|stored| stored.show(self.at)));
        self.tickets.extend(ledger.waits.keys());
    }

    /// Tasks, all sections, and what is held and waited for around them.
    fn tasks(&mut self, scope: &TaskScope) {
        self.ledger.tasks.show(scope, self.at.wall_ms, &mut self.seen);
        let sections = keys_of(Kind::Section);
        self.holds(self.ledger.holds.range(sections.clone()).map(|(_, holders)| holders));
        let queues = self.ledger.queues.range(sections).map(|(_, queue)| queue);
        self.tickets.extend(queues.flat_map(|queue| &queue.tickets));
        self.paths(
            &PathPrefixes::to(&path_prefixes::files(&self.seen.tasks)),
            |_| true,
            None,
            usize::MAX,
        );
        let shown: Vec<Resource> = self.seen.tasks.iter().map(|task| task.id.resource()).collect();
        for resource in shown {
            self.named(&resource, None, usize::MAX);
        }
    }

    fn holds<'h>(&mut self, holds: impl Iterator<Item = &'h Vec<StoredHold>>) {
        let at = self.at;
        self.seen.holds.extend(holds.flatten().map(|stored| stored.show(at)));
    }

    /// Adds the front of a queue, and the place of a ticket that is further back with the one
    /// before it, whose end it is to notice; without a ticket that is the end of the queue.
    fn queue(&mut self, tickets: &BTreeSet<u64>, ticket: Option<u64>, front: usize) {
        self.tickets.extend(tickets.iter().take(front));
        if tickets.len() <= front {
            return;
        }
        let last = *tickets.iter().nth(front - 1).expect("a queue is longer than its front");
        let until = self.seen.shown_until.map_or(last, |until| until.min(last));
        self.seen.shown_until = Some(until);
        let place = ticket.unwrap_or(u64::MAX);
        if place > last {
            self.tickets.extend(tickets.range(..=place).rev().take(2));
        }
    }

    fn finish(self) -> Snapshot {
        let mut seen = self.seen;
        seen.sort_holds();
        let places = self.tickets.iter().filter_map(|ticket| self.ledger.waits.get(ticket));
        seen.waiters = places.map(|stored| stored.show(self.at)).collect();
        seen
    }
}

impl StoredHold {
    /// How long the lease lasts still.
    pub(crate) fn left_ms(&self, at: StoreTime) -> i64 {
        // What rounding added to the end is not shown.
        let ttl_ms = self.hold.ttl.as_millis() as i64;
        self.deadline_ms.saturating_sub(at.now_ms).min(ttl_ms)
    }

    pub(crate) fn show(&self, at: StoreTime) -> HoldSnapshot {
        let left_ms = self.left_ms(at);
        HoldSnapshot {
            hold: self.hold.clone(),
            left: from_ms(left_ms),
            held_for: from_ms(at.now_ms.saturating_sub(self.since_ms)),
            acquired_at: self.acquired_at,
            renewed_at: self.renewed_at,
            expires_at: WallTime(at.wall_ms.saturating_add(left_ms)),
            stale: None,
        }
    }
}

impl StoredWaiter {
    fn show(&self, at: StoreTime) -> WaiterSnapshot {
        let ttl_ms = self.waiter.ttl.as_millis() as i64;
        WaiterSnapshot {
            waiter: self.waiter.clone(),
            left: from_ms(self.deadline_ms.saturating_sub(at.now_ms).min(ttl_ms)),
            waited_for: from_ms(at.now_ms.saturating_sub(self.since_ms)),
            waiting_since: self.waiting_since,
            woken_for: self.woken_ms.map(|woken_ms| from_ms(at.now_ms.saturating_sub(woken_ms))),
        }
    }
}
