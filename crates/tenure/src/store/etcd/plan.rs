//! A change as keys: what is compared, put and deleted.

use super::base::{EVENTS_MAX, encode};
use super::compares::{About, Compares};
use super::connection::{Ask, Write as EtcdWrite};
use super::error::{Failure, too_large};
use super::handle::Handle;
use super::leases::{LeaseBook, LeaseUse, seconds_up};
use super::look::Look;
use super::look_at_tasks::resources_of;
use super::records::StoredTask;
use crate::store::format::Form;
use crate::store::format::etcd::{ChangeRecord, LogRecord};
use crate::store::format::parts::EventRecord;
use etcd_client::{Compare, CompareOp, DeleteOptions, PutOptions, TxnOp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use tenure_core::{Change, GrantId, Revision, Task, Touched, WallTime, Write};

/// After so many changes a new segment of the history begins. At that moment each change that is being
/// made is made again; a reader of the newest events reads one or two segments.
const SEGMENT_CHANGES: i64 = 256;

/// So many segments are kept.
const SEGMENTS_KEPT: usize = 64;

/// What happens to a key.
pub(super) enum Effect {
    Put { value: Vec<u8>, lease: Option<i64> },
    Delete,
}

/// A change that is ready to be sent.
pub(super) struct Plan {
    pub(super) write: EtcdWrite,
    /// Whether it compares so much that most other changes are in its way.
    pub(super) is_wide: bool,
    /// The key that this change alone puts, if it records events: where it is, the change was made.
    pub(super) marker: Option<Marker>,
    pub(super) events: u64,
    /// Requests of this handle that are woken by the change.
    pub(super) wakes_here: Vec<GrantId>,
    /// Requests of this handle that wait no longer.
    pub(super) left: Vec<GrantId>,
    /// Keys that are attached to leases.
    pub(super) attached: Vec<(String, i64)>,
    /// Keys that are deleted or moved to another lease, with the leases that they were attached to.
    pub(super) detached: Vec<(String, i64)>,
}

/// The key of one change in the history.
pub(super) struct Marker {
    pub(super) key: String,
    /// The segment of the history in which it is.
    pub(super) segment: u64,
}

/// What a change needs before it can be sent.
pub(super) struct Draft<'a> {
    pub(super) handle: &'a Handle,
    pub(super) look: &'a mut Look,
    pub(super) leases: &'a mut LeaseBook,
    pub(super) now: WallTime,
    pub(super) effects: BTreeMap<String, Effect>,
    pub(super) compares: Compares,
    pub(super) deleted: Vec<Range<String>>,
    wakes_here: Vec<GrantId>,
    pub(super) left: Vec<GrantId>,
    pub(super) detached: Vec<(String, i64)>,
}

impl Handle {
    /// Prepares a change that was decided on this look: gets its leases, and reads what it touches
    /// beyond the look.
    pub(super) async fn plan(
        &self,
        look: &mut Look,
        change: &Change,
        leases: &mut LeaseBook,
        stop: Option<i64>,
    ) -> Result<Plan, Failure> {
        self.read_what_is_touched(look, change).await?;
        if change.writes.iter().any(|write| matches!(write, Write::Wait(_) | Write::KeepPlace(_))) {
            // Before the place is visible, so that no wake is missed.
            self.watches.open_mailbox(self).await?;
        }
        leases.get_all(&self.leases, lease_uses(change)).await?;
        let compares = std::mem::take(&mut look.compares);
        let now = self.now();
        let mut draft = Draft {
            handle: self,
            look,
            leases,
            now,
            effects: BTreeMap::new(),
            compares,
            deleted: vec![],
            wakes_here: vec![],
            left: vec![],
            detached: vec![],
        };
        draft.common(change, stop);
        for write in &change.writes {
            draft.write(write).await?;
        }
        draft.guard_what_is_touched(change);
        draft.tasks_around(change);
        draft.wake(&change.wake).await?;
        let marker = draft.record(change)?;
        Ok(draft.finish(marker, change.events.len() as u64))
    }

    /// A change may touch more than its scope named: another queue of a waiter, or a task that it writes
    /// over. That is read as it was at the look.
    async fn read_what_is_touched(&self, look: &mut Look, change: &Change) -> Result<(), Failure> {
        let touched = change.writes.iter().flat_map(Write::touches);
        let (mut guards, mut tasks) = (BTreeSet::new(), BTreeSet::new());
        for touched in touched {
            match touched {
                Touched::Resource(resource) => {
                    let key = self.keys.guard(resource);
                    if look.guards.get(&key).is_none() {
                        guards.insert(key);
                    }
                }
                Touched::Task(id) if !look.tasks.contains_key(id) => drop(tasks.insert(id.clone())),
                _ => {}
            }
        }
        if guards.is_empty() && tasks.is_empty() {
            return Ok(());
        }
        let asks = guards.iter().map(|key| Ask::one(key.clone()));
        let asks: Vec<Ask> =
            asks.chain(tasks.iter().map(|id| Ask::one(self.keys.task(id)))).collect();
        let mut pages = self.connection.read(&asks, Some(look.revision)).await?;
        for key in guards {
            look.guards.read_one(key, &pages.next());
        }
        for id in tasks {
            let page = pages.next();
            let task = page.first().map(|entry| StoredTask::of(entry, self.url())).transpose()?;
            look.tasks.insert(id, task);
        }
        Ok(())
    }
}

impl Draft<'_> {
    pub(super) fn put(&mut self, key: String, value: Vec<u8>) {
        self.effects.insert(key, Effect::Put { value, lease: None });
    }

    pub(super) fn put_leased(&mut self, key: String, lease: i64) {
        self.effects.insert(key, Effect::Put { value: vec![], lease: Some(lease) });
    }

    pub(super) fn delete(&mut self, key: String) {
        self.effects.insert(key, Effect::Delete);
    }

    /// What every change compares.
    fn common(&mut self, change: &Change, stop: Option<i64>) {
        let (keys, base) = (&self.handle.keys, &self.look.base);
        let stopped =
            Compare::mod_revision(keys.store("stop"), CompareOp::Equal, stop.unwrap_or(0));
        self.compares.push(base.same_store(keys));
        self.compares.push(base.unchanged(keys, "epoch"));
        self.compares.push(base.unchanged(keys, "floor"));
        self.compares.push(stopped);
        if self.look.snapshot.shows_waits && !change.writes.is_empty() {
            let key = keys.store("waits");
            self.put(key, vec![]);
        }
        if stop.is_some() {
            let key = self.handle.keys.store("stop");
            self.delete(key);
        }
        // All scopes overlap everything, so all see higher numbers afterwards.
        let last = change.last_number();
        if self.look.snapshot.whole && last > self.look.base.numbers_floor {
            let key = self.handle.keys.store("floor");
            self.put(key, last.to_string().into_bytes());
        }
    }

    /// Puts the guard of everything that is touched, with the highest number there.
    fn guard_what_is_touched(&mut self, change: &Change) {
        let last = change.last_number();
        let touched = change.writes.iter().flat_map(Write::touches);
        let resources = touched.filter_map(|touched| match touched {
            Touched::Resource(resource) => Some(self.handle.keys.guard(resource)),
            _ => None,
        });
        let guards: BTreeSet<String> = resources.collect();
        for key in guards {
            let guard = self.look.guards.get(&key).unwrap_or_default();
            self.compares.same(About::Guards, key.clone(), guard.revision);
            let number = guard.number.max(last).max(self.look.base.numbers_floor);
            self.put(key, number.to_string().into_bytes());
        }
    }

    /// What is held around each task that is written must be as it was.
    fn tasks_around(&mut self, change: &Change) {
        let tasks = change.writes.iter().filter_map(|write| match write {
            Write::Task(task) => Some((**task).clone()),
            _ => None,
        });
        // A task that was added a moment ago has nothing around it that matters yet.
        let tasks = tasks.filter(|task| {
            let before = self.look.tasks.get(&task.id).and_then(Option::as_ref);
            before.is_some_and(|before| before.revision > 0)
        });
        let tasks: Vec<Task> = tasks.collect();
        let resources = resources_of(&tasks);
        let revision = self.look.revision;
        let (keys, guards) = (&self.handle.keys, &self.look.guards);
        guards.unchanged(keys, resources.iter(), revision, &mut self.compares);
    }

    /// Tells the handles of the waiters that are woken.
    async fn wake(&mut self, grants: &[GrantId]) -> Result<(), Failure> {
        let places = self.look.places.values();
        let known: HashMap<GrantId, String> =
            places.map(|place| (place.waiter.grant, place.mailbox.clone())).collect();
        let unknown = grants.iter().any(|grant| !known.contains_key(grant));
        let elsewhere = match unknown {
            true => self.handle.mailboxes().await?,
            false => HashMap::new(),
        };
        for grant in grants {
            let mailbox = known.get(grant).or_else(|| elsewhere.get(grant));
            let Some(mailbox) = mailbox else { continue };
            if *mailbox == self.handle.mailbox {
                self.wakes_here.push(*grant);
            } else {
                let key = self.handle.keys.wake(mailbox, *grant);
                self.put(key, vec![]);
            }
        }
        Ok(())
    }

    /// Writes the events; returns the key of the change.
    fn record(&mut self, change: &Change) -> Result<Option<Marker>, Failure> {
        if change.events.is_empty() {
            return Ok(None);
        }
        let count = change.events.len() as u64;
        if count > EVENTS_MAX {
            return Err(too_large());
        }
        let (keys, base) = (&self.handle.keys, &self.look.base);
        self.compares.push(base.unchanged(keys, "log"));
        let mut segment = base.log.segment;
        if base.changes - base.log.changes_before >= SEGMENT_CHANGES {
            let log = next_segment(&base.log, base.revision("log"), base.changes);
            segment = log.segment;
            let oldest = log.earlier.first().map_or(segment, |(number, _)| *number);
            self.deleted.push(keys.segments(0..oldest));
            let key = keys.store("log");
            self.put(key, encode(&log));
        }
        let events = change.events.iter().map(EventRecord::of).collect();
        let record = ChangeRecord { at: self.now, events };
        let id = uuid::Uuid::new_v4().simple().to_string();
        let marker = self.handle.keys.change(segment, &id);
        // A copy of this change that was sent before, and was made, is not made again.
        let is_new = Compare::create_revision(marker.clone(), CompareOp::Equal, 0);
        self.compares.push(is_new);
        self.put(marker.clone(), encode(&record));
        self.put(self.handle.keys.store("head"), count.to_string().into_bytes());
        Ok(Some(Marker { key: marker, segment }))
    }

    fn finish(self, marker: Option<Marker>, events: u64) -> Plan {
        let mut operations = Vec::with_capacity(self.effects.len());
        let mut attached = Vec::new();
        for range in self.deleted {
            let options = DeleteOptions::new().with_range(range.end);
            operations.push(TxnOp::delete(range.start, Some(options)));
        }
        for (key, effect) in self.effects {
            operations.push(match effect {
                Effect::Put { value, lease } => {
                    attached.extend(lease.map(|lease| (key.clone(), lease)));
                    let options = lease.map(|lease| PutOptions::new().with_lease(lease));
                    TxnOp::put(key, value, options)
                }
                Effect::Delete => TxnOp::delete(key, None),
            });
        }
        let keys = &self.handle.keys;
        let drops = self.look.base.unchanged(keys, "drops");
        let (compares, is_wide) = self.compares.list(keys, self.look.revision, drops);
        let mut write = EtcdWrite { compares, operations, ..EtcdWrite::default() };
        write.and_read(std::mem::take(&mut self.look.asks));
        Plan {
            write,
            is_wide,
            marker,
            events,
            wakes_here: self.wakes_here,
            left: self.left,
            attached,
            detached: self.detached,
        }
    }
}

/// The new leases that a change surely needs.
fn lease_uses(change: &Change) -> HashSet<LeaseUse> {
    let uses = change.writes.iter().filter_map(|write| match write {
        Write::Hold(hold) => Some((hold.grant, hold.ttl, false)),
        Write::Wait(waiter) => Some((waiter.grant, waiter.ttl, true)),
        _ => None,
    });
    let one = |(grant, ttl, place)| LeaseUse { grant, seconds: seconds_up(ttl), place };
    uses.map(one).collect()
}

/// Begins a new segment. `began` is the revision at which the last one did.
fn next_segment(log: &LogRecord, began: i64, changes: i64) -> LogRecord {
    let mut earlier = log.earlier.clone();
    earlier.push((log.segment, began));
    let surplus = earlier.len().saturating_sub(SEGMENTS_KEPT);
    earlier.drain(..surplus);
    LogRecord { segment: log.segment + 1, changes_before: changes, earlier }
}

/// The number of the newest event of a change with this revision.
pub(super) fn newest_event(revision: i64, events: u64) -> Option<Revision> {
    (events > 0).then(|| super::base::event_revision(revision, events - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_segments_are_kept_with_their_beginnings() {
        let mut log = LogRecord { segment: 1, changes_before: 0, earlier: vec![] };
        for number in 1..=100 {
            log = next_segment(&log, number * 1000, number * SEGMENT_CHANGES);
        }
        assert_eq!((log.segment, log.earlier.len()), (101, SEGMENTS_KEPT));
        assert_eq!(log.earlier.first(), Some(&(37, 37_000)));
        assert_eq!(log.earlier.last(), Some(&(100, 100_000)));
    }
}
