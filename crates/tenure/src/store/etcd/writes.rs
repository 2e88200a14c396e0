//! One write of a rule as keys that are put, deleted and compared.

use super::base::encode;
use super::compares::About;
use super::error::Failure;
use super::keys::Family;
use super::leases::{LeaseUse, seconds_up};
use super::plan::{Draft, Effect};
use super::records::{Life, StoredHold, StoredPlace, StoredTask};
use super::task_index;
use crate::store::RecordSearch;
use crate::store::format::Form;
use crate::store::format::etcd::{SlotRecord, TextRecord};
use crate::store::format::parts::SectionRecord;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::{GrantId, Resource, Task, TaskId, Waiter, Write};

impl Draft<'_> {
    /// Adds what one write of a rule does to keys.
    pub(super) async fn write(&mut self, write: &Write) -> Result<(), Failure> {
        match write {
            Write::Hold(hold) => {
                let life = self.lease(hold.grant, hold.ttl, false).await?;
                let (acquired_at, renewed_at) = (self.now, self.now);
                let stored = StoredHold {
                    hold: hold.clone(),
                    acquired_at,
                    renewed_at,
                    revision: 0,
                    life: Some(life),
                };
                self.put_hold(stored, true);
            }
            Write::Extend { resource, grant, ttl, operation } => {
                self.extend(resource, *grant, *ttl, operation.as_ref()).await?;
            }
            Write::DropHold { resource, grant } => self.drop_hold(resource, *grant),
            Write::Wait(waiter) => {
                let life = self.lease(waiter.grant, waiter.ttl, true).await?;
                self.handle.wakes.expect(waiter.grant);
                let place = StoredPlace {
                    waiter: waiter.clone(),
                    mailbox: self.handle.mailbox.clone(),
                    waiting_since: self.now,
                    kept_at: self.now,
                    woken_at: None,
                    life: Some(life),
                };
                self.put_place(place, true);
            }
            Write::KeepPlace(waiter) => self.keep_place(waiter).await?,
            Write::Woken(waiter) => {
                if let Some(place) = self.look.places.get(&(waiter.ticket, waiter.grant)) {
                    let place = StoredPlace { woken_at: Some(self.now), ..place.clone() };
                    self.put_place(place, false);
                }
            }
            Write::DropWait(waiter) => self.drop_place(waiter),
            Write::Task(task) => self.put_task(task),
            Write::DropTask(id) => self.drop_task(id),
            Write::Section(section) => {
                let value = encode(&SectionRecord::of(section));
                self.put(self.handle.keys.section(&section.name), value);
                self.put(self.handle.keys.store("sections"), vec![]);
            }
            Write::DropSection(name) => {
                self.delete(self.handle.keys.section(name));
                self.put(self.handle.keys.store("sections"), vec![]);
            }
            Write::PutRecord(record) => {
                let lease = match record.ttl {
                    Some(ttl) => Some(self.handle.connection.grant_lease(seconds_up(ttl)).await?),
                    None => None,
                };
                let key = self.handle.keys.record(record.kind, &record.key);
                let text = TextRecord { written_at: self.now, text: record.text.clone() };
                self.effects.insert(key, Effect::Put { value: encode(&text), lease });
            }
            Write::DropRecords(range) => {
                let (first, last) = RecordSearch::all(range.clone()).bounds();
                let keys = self.handle.keys.records(range.kind, &first, &last);
                // etcd refuses to change a key twice in one transaction.
                self.effects.retain(|key, _| !keys.contains(key));
                self.deleted.push(keys);
            }
            Write::Answer(reply) => {
                let lease = self.handle.reply_lease.get(&self.handle.connection).await?;
                let key = self.handle.keys.slot(&reply.slot);
                let revision = self.look.reply_revision;
                self.compares.same(About::Store, key.clone(), revision);
                let value = encode(&SlotRecord::of(reply));
                self.effects.insert(key, Effect::Put { value, lease: Some(lease) });
            }
        }
        Ok(())
    }

    async fn lease(&mut self, grant: GrantId, ttl: Duration, place: bool) -> Result<Life, Failure> {
        let wanted = LeaseUse { grant, seconds: seconds_up(ttl), place };
        let lease = self.leases.get(&self.handle.leases, wanted).await?;
        Ok(Life { lease, revision: 0 })
    }

    /// The lease that lives on: the same one, started anew, if it has the right length; else a new one.
    async fn continued(
        &mut self,
        life: Option<Life>,
        before: Duration,
        (grant, ttl, place): (GrantId, Duration, bool),
    ) -> Result<(Life, bool), Failure> {
        if let Some(life) = life.filter(|_| seconds_up(before) == seconds_up(ttl)) {
            match self.handle.connection.keep_lease(life.lease).await {
                Ok(()) => return Ok((life, false)),
                Err(Failure::NoLease) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok((self.lease(grant, ttl, place).await?, true))
    }

    fn put_hold(&mut self, stored: StoredHold, with_life: bool) {
        let keys = &self.handle.keys;
        let (resource, grant) = (&stored.hold.want.resource, stored.hold.grant);
        let key = keys.hold(Family::Holds, resource, grant);
        let life_key = keys.hold(Family::Lives, resource, grant);
        if with_life && let Some(life) = stored.life {
            self.put_leased(life_key, life.lease);
        }
        self.put(key.clone(), stored.value());
        self.look.holds.insert(key, stored);
    }

    /// A renewal puts a hold without its guard, so a hold that is written over is compared itself.
    fn hold_unchanged(&mut self, key: &str, stored: &StoredHold) {
        if stored.revision > 0 {
            self.compares.same(About::Holds, key.to_owned(), stored.revision);
        }
    }

    async fn extend(
        &mut self,
        resource: &Resource,
        grant: GrantId,
        ttl: Duration,
        operation: Option<&String>,
    ) -> Result<(), Failure> {
        let key = self.handle.keys.hold(Family::Holds, resource, grant);
        let Some(mut stored) = self.look.holds.get(&key).cloned() else { return Ok(()) };
        self.hold_unchanged(&key, &stored);
        if let Some(life) = stored.life.filter(|life| life.revision > 0) {
            let life_key = self.handle.keys.hold(Family::Lives, resource, grant);
            self.compares.same(About::Lives, life_key, life.revision);
        }
        let (life, is_new) =
            self.continued(stored.life, stored.hold.ttl, (grant, ttl, false)).await?;
        if let Some(before) = stored.life.filter(|_| is_new) {
            let life_key = self.handle.keys.hold(Family::Lives, resource, grant);
            self.detached.push((life_key, before.lease));
        }
        stored.life = Some(life);
        stored.hold.ttl = ttl;
        stored.renewed_at = self.now;
        if let Some(operation) = operation {
            stored.hold.operation = Some(operation.clone());
        }
        self.put_hold(stored, is_new);
        Ok(())
    }

    fn drop_hold(&mut self, resource: &Resource, grant: GrantId) {
        let key = self.handle.keys.hold(Family::Holds, resource, grant);
        let Some(stored) = self.look.holds.remove(&key) else { return };
        self.hold_unchanged(&key, &stored);
        let life_key = self.handle.keys.hold(Family::Lives, resource, grant);
        self.detached.extend(stored.life.map(|life| (life_key.clone(), life.lease)));
        self.delete(key);
        self.delete(life_key);
    }

    fn put_place(&mut self, place: StoredPlace, with_life: bool) {
        let (ticket, grant) = (place.waiter.ticket, place.waiter.grant);
        for want in &place.waiter.wants {
            let keys = &self.handle.keys;
            let key = keys.place(Family::Places, &want.resource, ticket, grant);
            let life_key = keys.place(Family::PlaceLives, &want.resource, ticket, grant);
            self.put(key, place.value());
            if with_life && let Some(life) = place.life {
                self.put_leased(life_key, life.lease);
            }
        }
        self.look.places.insert((ticket, grant), place);
    }

    async fn keep_place(&mut self, waiter: &Waiter) -> Result<(), Failure> {
        let key = (waiter.ticket, waiter.grant);
        let Some(mut place) = self.look.places.get(&key).cloned() else { return Ok(()) };
        self.handle.wakes.expect(waiter.grant);
        let wanted = (waiter.grant, waiter.ttl, true);
        let (life, is_new) = self.continued(place.life, place.waiter.ttl, wanted).await?;
        if is_new {
            self.detach_place(waiter, place.life);
        }
        if place.woken_at.is_some() {
            self.delete(self.handle.keys.wake(&place.mailbox, waiter.grant));
        }
        place.waiter.ttl = waiter.ttl;
        place.mailbox = self.handle.mailbox.clone();
        place.kept_at = self.now;
        place.woken_at = None;
        place.life = Some(life);
        self.put_place(place, is_new);
        Ok(())
    }

    /// The keys of a place are not attached to this lease any more.
    fn detach_place(&mut self, waiter: &Waiter, life: Option<Life>) {
        let Some(life) = life else { return };
        for want in &waiter.wants {
            let keys = &self.handle.keys;
            let key = keys.place(Family::PlaceLives, &want.resource, waiter.ticket, waiter.grant);
            self.detached.push((key, life.lease));
        }
    }

    fn drop_place(&mut self, waiter: &Waiter) {
        for want in &waiter.wants {
            for family in [Family::Places, Family::PlaceLives] {
                let keys = &self.handle.keys;
                let key = keys.place(family, &want.resource, waiter.ticket, waiter.grant);
                self.delete(key);
            }
        }
        self.left.push(waiter.grant);
        if let Some(place) = self.look.places.remove(&(waiter.ticket, waiter.grant)) {
            self.detach_place(waiter, place.life);
            self.delete(self.handle.keys.wake(&place.mailbox, waiter.grant));
        }
    }

    fn task_unchanged(&mut self, id: &TaskId) -> Option<StoredTask> {
        let before = self.look.tasks.get(id).cloned().flatten();
        let revision = before.as_ref().map_or(0, |before| before.revision);
        let key = self.handle.keys.task(id);
        self.compares.same(About::Tasks, key, revision);
        before
    }

    fn put_task(&mut self, task: &Task) {
        let before = match self.look.tasks.get(&task.id) {
            // A new task is guarded by the key that all additions put.
            Some(None) => None,
            _ => self.task_unchanged(&task.id),
        };
        let keys = &self.handle.keys;
        let after = task_index::entries(keys, task);
        let earlier = before.as_ref().map(|before| task_index::entries(keys, &before.task));
        for key in earlier.iter().flat_map(BTreeMap::keys).filter(|key| !after.contains_key(*key)) {
            self.delete(key.clone());
        }
        for (key, value) in after {
            if earlier.as_ref().and_then(|earlier| earlier.get(&key)) != Some(&value) {
                self.put(key, value);
            }
        }
        if let Some(section) =
            task.section.as_ref().filter(|one| !self.look.used_sections.contains(*one))
        {
            self.put(self.handle.keys.used_section(section), vec![]);
        }
        if before.is_none() {
            let age = self.look.base.age.max(task.age);
            self.look.base.age = age;
            self.put(self.handle.keys.store("adds"), age.to_string().into_bytes());
        }
        let revision = before.map_or(0, |before| before.revision);
        let stored = StoredTask { task: task.clone(), revision };
        self.look.tasks.insert(task.id.clone(), Some(stored));
    }

    fn drop_task(&mut self, id: &TaskId) {
        let Some(before) = self.task_unchanged(id) else { return };
        for key in task_index::entries(&self.handle.keys, &before.task).into_keys() {
            self.delete(key);
        }
        self.put(self.handle.keys.store("drops"), vec![]);
    }
}
