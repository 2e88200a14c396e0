//! Making the target equal to the source.

use super::digest::{self, Contents, Tally, canonical_event, is_own};
use super::marker::{Marker, is_marker};
use super::progress::Progress;
use super::side::{Side, failed};
use super::{LABEL, Recover, held};
use crate::exit::Exit;
use crate::failure::Failure;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tenure::core::rules::tasks::EVERYTHING;
use tenure::core::{
    Change, Event, EventKind, GrantId, Hold, Holder, Kind, Mode, NewEvent, RecordKind, RecordRange,
    Resource, Revision, Scope, Section, SmallRecord, Snapshot, Status, Task, TaskId, TaskScope,
    Token, Want, Write,
};
use tenure::store::{RecordSearch, StoreExt, Transaction};

/// How many records one change writes at most: few enough that other users of the target's database do
/// not wait, and below the limits of all stores.
const RECORDS_WRITTEN: usize = 200;

/// How many bytes of tasks one change writes, unless a single task has more: below the limits of all
/// stores.
const BYTES_WRITTEN: usize = 512 * 1024;

/// How many outputs are read at once: each may be long.
const OUTPUTS_READ: u32 = 32;

/// The lock under which the numbers of the target are raised, and released at once.
const LOCK: &str = "tenure-migration";

/// The lease of that lock, which no store finds too short.
const LOCK_LEASE: Duration = Duration::from_secs(60);

/// A migration under way.
pub(super) struct Copier<'a> {
    pub(super) source: &'a Side,
    pub(super) target: &'a Side,
    pub(super) marker: Marker,
    pub(super) progress: &'a Progress,
    pub(super) recover: Recover,
}

/// What both sides have.
pub(super) struct Verified {
    pub(super) contents: Contents,
    pub(super) events_dropped: usize,
}

impl Copier<'_> {
    async fn write(&self, writes: Vec<Write>) -> Result<(), Failure> {
        let limits = self.target.store.info().limits;
        let most = limits.records_max.unwrap_or(usize::MAX).clamp(1, RECORDS_WRITTEN);
        let mut rest = writes.into_iter().peekable();
        while rest.peek().is_some() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while let Some(write) = rest.next_if(|write| {
                batch.is_empty() || (batch.len() < most && bytes + size(write) <= BYTES_WRITTEN)
            }) {
                bytes += size(&write);
                batch.push(write);
            }
            let ids = batch.iter().filter_map(|write| match write {
                Write::Task(task) => Some(task.id.clone()),
                Write::DropTask(id) => Some(id.clone()),
                _ => None,
            });
            let scope = TaskScope {
                ids: ids.collect(),
                all_sections: true,
                adds: true,
                ..TaskScope::default()
            };
            // It takes no numbers, because they were raised above all ages before; so it needs no event.
            let change = Change { writes: batch, durable: true, ..Change::default() };
            let rule = move |_: &Snapshot| change.clone().decide();
            let transaction = Transaction::new(Scope::Tasks(scope), rule);
            self.target.store.transact(transaction).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Copies the records of sections. That which pauses everything stays as it is until the end.
    pub(super) async fn sections(&self) -> Result<(), Failure> {
        let source = sections_of(self.source).await?;
        let target = sections_of(self.target).await?;
        let mut writes = Vec::new();
        for (name, section) in &source {
            if target.get(name) != Some(section) {
                writes.push(Write::Section(section.clone()));
            }
        }
        let gone = target.keys().filter(|name| !source.contains_key(*name));
        writes.extend(gone.map(|name| Write::DropSection(name.clone())));
        self.write(writes).await
    }

    /// A page of the source's tasks, as they are moved.
    async fn moved_after(&self, after_age: u64) -> Result<Vec<Task>, Failure> {
        let tasks = self.source.tasks_after(after_age).await?;
        let Some((recoveries_max, wall)) = self.recover else { return Ok(tasks) };
        Ok(tasks.into_iter().map(|task| held::recovered(task, recoveries_max, wall)).collect())
    }

    /// Copies tasks, oldest first, and removes those that are no longer in the source.
    pub(super) async fn tasks(&self) -> Result<(), Failure> {
        let mut after = 0;
        loop {
            let page = self.moved_after(after).await?;
            let last = page.last().map_or(u64::MAX, |task| task.age);
            let there = self.target.tasks_between(after, last).await?;
            let there: HashMap<&TaskId, &Task> =
                there.iter().map(|task| (&task.id, task)).collect();
            let ids: HashMap<&TaskId, &Task> = page.iter().map(|task| (&task.id, task)).collect();
            let gone = there.values().filter(|task| !ids.contains_key(&task.id));
            let gone = gone.filter(|task| !is_marker(task));
            let mut writes: Vec<Write> =
                gone.map(|task| Write::DropTask(task.id.clone())).collect();
            let new = page.iter().filter(|task| there.get(&task.id) != Some(task));
            writes.extend(new.map(|task| Write::Task(Box::new(task.clone()))));
            let is_end = page.is_empty();
            self.write(writes).await?;
            if is_end {
                return Ok(());
            }
            self.progress.tasks(page.len());
            after = last;
        }
    }

    /// Copies what the commands of tasks printed. Workers are not copied: they register anew.
    pub(super) async fn outputs(&self) -> Result<(), Failure> {
        let mut after = String::new();
        loop {
            let range = RecordRange::all(RecordKind::Output);
            let search = RecordSearch { range, after, limit: OUTPUTS_READ };
            let page = self.source.store.read(search).await.map_err(failed)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.key.clone();
            let put = page.into_iter().map(|record| {
                let (kind, key, text, ttl) = (RecordKind::Output, record.key, record.text, None);
                Write::PutRecord(SmallRecord { kind, key, text, ttl })
            });
            self.write(put.collect()).await?;
        }
    }

    /// Copies the history after what was copied before.
    pub(super) async fn history(&mut self) -> Result<(), Failure> {
        loop {
            let events = self.source.events_after(self.marker.copied).await?;
            let Some(last) = events.last().map(|event| event.revision) else { return Ok(()) };
            let copied: Vec<&Event> = events.iter().filter(|event| !is_own(event)).collect();
            for batch in copied.chunks(RECORDS_WRITTEN) {
                let until = batch.last().map_or(last, |event| event.revision);
                let new = batch.iter().map(|event| event.event.clone().happened_at(event.at));
                self.marker.advance(&*self.target.store, until, new.collect()).await?;
                self.progress.events(batch.len());
            }
            if self.marker.copied < last {
                self.marker.advance(&*self.target.store, last, vec![]).await?;
            }
        }
    }

    /// Whether tasks or sections of the source changed since this revision. Locks and paths are not
    /// copied, so they do not count.
    pub(super) async fn is_changed_since(&self, since: Revision) -> Result<bool, Failure> {
        let mut after = since;
        loop {
            let events = self.source.events_after(after).await?;
            let Some(last) = events.last() else { return Ok(false) };
            after = last.revision;
            let is_copied = |event: &Event| {
                let kind = event.event.resource.as_ref().map(Resource::kind);
                matches!(kind, Some(Kind::Task | Kind::Section)) && !is_own(event)
            };
            if events.iter().any(is_copied) {
                return Ok(true);
            }
        }
    }

    /// Reads both sides whole and compares them.
    pub(super) async fn verify(&self) -> Result<Verified, Failure> {
        self.progress.verifying();
        let mut source = digest::Sum::default();
        let mut after = 0;
        loop {
            let page = self.moved_after(after).await?;
            let Some(last) = page.last().map(|task| task.age) else { break };
            if let Some(task) = page.iter().find(|task| task.status == Status::InProgress) {
                let message = format!("task:{} was claimed meanwhile", task.id);
                return Err(Failure::new(Exit::Error, "SOURCE_CHANGED", message)
                    .hint("Stop all workers and run the same command again: it goes on."));
            }
            page.iter().for_each(|task| source.task(task));
            after = last;
        }
        let mut target = digest::Sum::default();
        let mut after = 0;
        loop {
            let page = self.target.tasks_after(after).await?;
            let Some(last) = page.last().map(|task| task.age) else { break };
            page.iter().filter(|task| !is_marker(task)).for_each(|task| target.task(task));
            after = last;
        }
        sections_of(self.source).await?.values().for_each(|section| source.section(section));
        sections_of(self.target).await?.values().for_each(|section| target.section(section));
        let there = event_sums(self.target, self.marker.base, LAST).await?;
        let here = event_sums(self.source, Revision(0), self.marker.copied).await?;
        // A store keeps so many events and forgets older ones.
        let dropped = here.len().saturating_sub(there.len());
        let dropped = if there.len() >= digest::EVENTS_KEPT { dropped } else { 0 };
        here.iter().skip(dropped).for_each(|sum| source.event(sum));
        there.iter().for_each(|sum| target.event(sum));
        let (source, target) = (source.finish(), target.finish());
        if source != target {
            return Err(differing(&source, &target));
        }
        self.check_counts(&target).await?;
        Ok(Verified { contents: target, events_dropped: dropped })
    }

    /// The numbers that the target keeps beside its tasks must agree with its tasks.
    async fn check_counts(&self, contents: &Contents) -> Result<(), Failure> {
        let counts = self.target.store.read(tenure::store::TaskCounts).await.map_err(failed)?;
        let mut kept: Tally = BTreeMap::new();
        for count in counts {
            let is_marked = count.section.is_none() && count.status == Status::Blocked;
            let number = count.count - u64::from(is_marked);
            if number > 0 {
                kept.insert((count.section, count.status.word()), number);
            }
        }
        if kept == contents.counts {
            return Ok(());
        }
        let message = format!("{} counts its tasks wrongly: {kept:?}", self.target.url);
        Err(Failure::new(Exit::CheckFailed, "NOT_EQUAL", message)
            .hint("Run `tenure doctor` there."))
    }
}

/// The highest number that the source ever gave out.
pub(super) async fn highest_number(source: &Side, seen: &Snapshot) -> Result<u64, Failure> {
    let adding = TaskScope { adds: true, all_sections: true, ..TaskScope::default() };
    let adding = source.store.read(&Scope::Tasks(adding)).await.map_err(failed)?;
    // A store may have numbers of its own in each scope; those of the history are of all scopes.
    Ok(seen.next.max(adding.next).max(highest_in_history(source).await? + 1) - 1)
}

/// Whether all numbers that the store gives out from now on are above this one.
pub(super) async fn is_above(target: &Side, highest: u64) -> Result<bool, Failure> {
    let there = target.store.read(&Scope::Everything).await.map_err(failed)?;
    Ok(there.next > highest)
}

/// Raises the numbers of the target above this one, so that no token of the source is ever accepted in
/// the target.
pub(super) async fn raise_numbers(
    source: &Side,
    target: &Side,
    highest: u64,
) -> Result<(), Failure> {
    if is_above(target, highest).await? {
        return Ok(());
    }
    let resource: Resource = LOCK.parse().expect("the lock's name is a resource");
    let operation = format!("migration from {}", source.url);
    let rule = move |seen: &Snapshot| {
        let token = Token(highest.max(seen.next));
        let hold = Hold {
            want: Want { resource: resource.clone(), mode: Mode::Exclusive },
            grant: GrantId::random(),
            token,
            holder: Holder::anonymous(LABEL.to_owned()),
            operation: Some(operation.clone()),
            ttl: LOCK_LEASE,
            slot: None,
        };
        let ended = Write::DropHold { resource: resource.clone(), grant: hold.grant };
        let note = |kind| NewEvent::new(Some(resource.clone()), LABEL, Some(token), kind);
        let acquired = EventKind::Acquired { operation: Some(operation.clone()) };
        let events = vec![note(acquired), note(EventKind::Released)];
        let writes = vec![Write::Hold(hold), ended];
        Change { writes, events, durable: true, ..Change::default() }.decide()
    };
    let raise = Transaction::new(Scope::Everything, rule);
    target.store.transact(raise).await.map_err(failed)?;
    Ok(())
}

async fn highest_in_history(source: &Side) -> Result<u64, Failure> {
    let (mut highest, mut after) = (0, Revision(0));
    loop {
        let events = source.events_after(after).await?;
        let Some(last) = events.last() else { return Ok(highest) };
        after = last.revision;
        let tokens = events.iter().filter_map(|event| event.event.token);
        highest = tokens.map(|token| token.0).fold(highest, u64::max);
    }
}

fn differing(source: &Contents, target: &Contents) -> Failure {
    let parts = [
        ("tasks", source.tasks == target.tasks && source.counts == target.counts),
        ("sections", source.sections == target.sections),
        ("history", source.events == target.events),
    ];
    let names: Vec<&str> = parts.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
    let message = format!("the target differs from the source in its {}", names.join(" and "));
    Failure::new(Exit::CheckFailed, "NOT_EQUAL", message)
        .details(json!({ "source": source.json(), "target": target.json() }))
        .hint("Run the same command again; if the source was replaced since it began, name an empty target.")
}

/// What a store has that would be moved.
pub(super) async fn contents(side: &Side) -> Result<Contents, Failure> {
    let mut sum = digest::Sum::default();
    let mut after = 0;
    loop {
        let page = side.tasks_after(after).await?;
        let Some(last) = page.last().map(|task| task.age) else { break };
        page.iter().filter(|task| !is_marker(task)).for_each(|task| sum.task(task));
        after = last;
    }
    sections_of(side).await?.values().for_each(|section| sum.section(section));
    event_sums(side, Revision(0), LAST).await?.iter().for_each(|event| sum.event(event));
    Ok(sum.finish())
}

/// The sections of a store, without the record that pauses everything.
async fn sections_of(side: &Side) -> Result<BTreeMap<String, Section>, Failure> {
    let sections = side.sections().await?.into_iter().map(|seen| seen.section);
    let named = sections.filter(|section| section.name != EVERYTHING);
    Ok(named.map(|section| (section.name.clone(), section)).collect())
}

/// A revision that no event has reached.
const LAST: Revision = Revision(u64::MAX >> 1);

/// The checksum of each event that is moved, after one revision and up to another.
async fn event_sums(
    side: &Side,
    after: Revision,
    up_to: Revision,
) -> Result<Vec<[u8; 32]>, Failure> {
    let (mut sums, mut after) = (Vec::new(), after);
    loop {
        let events = side.events_after(after).await?;
        let Some(last) = events.last() else { return Ok(sums) };
        after = last.revision;
        let moved = events.iter().filter(|event| event.revision <= up_to && !is_own(event));
        sums.extend(moved.map(canonical_event));
    }
}

fn size(write: &Write) -> usize {
    match write {
        Write::Task(task) => serde_json::to_string(task).map_or(0, |text| text.len()),
        Write::PutRecord(record) => record.text.len(),
        _ => 0,
    }
}
