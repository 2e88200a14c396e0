//! A look at a part of the store: what the rule is shown, and all that a change must find unchanged.

use super::around::{Around, FRONT};
use super::base::{Base, Found, decode};
use super::compares::{About, Compares, range_unput};
use super::connection::{Ask, Pages};
use super::error::Failure;
use super::guards::Guards;
use super::handle::Handle;
use super::keys::{Family, Keys};
use super::records::{StoredHold, StoredPlace, StoredTask};
use super::remembered::RESOURCES_MAX;
use super::shown::Shown;
use crate::store::format::Form;
use crate::store::format::etcd::SlotRecord;
use std::collections::{BTreeSet, HashMap};
use tenure_core::{GrantId, Scope, Snapshot, StoredReply, TaskId};

/// What was seen, at one revision.
pub(super) struct Look {
    pub(super) revision: i64,
    pub(super) base: Base,
    pub(super) snapshot: Snapshot,
    pub(super) guards: Guards,
    /// By the key of the hold.
    pub(super) holds: HashMap<String, StoredHold>,
    /// By ticket and grant.
    pub(super) places: HashMap<(u64, GrantId), StoredPlace>,
    /// The tasks that were looked for; nothing for one that does not exist.
    pub(super) tasks: HashMap<TaskId, Option<StoredTask>>,
    /// The sections that have or had tasks.
    pub(super) used_sections: BTreeSet<String>,
    /// The revision of the stored reply; 0 if there is none.
    pub(super) reply_revision: i64,
    /// What every change that is based on this look compares, whatever it writes.
    pub(super) compares: Compares,
    /// What a change reads again after it wrote, so that the next look is known; empty if that would not
    /// be useful.
    pub(super) asks: Vec<Ask>,
    /// Whether it was known without asking the servers.
    pub(super) is_remembered: bool,
}

/// What is read first by every look: what concerns the whole store, and the reply of a slot.
pub(super) struct Start {
    slot: Option<String>,
}

impl Start {
    pub(super) fn ask(keys: &Keys, slot: Option<&str>, asks: &mut Vec<Ask>) -> Start {
        asks.push(Ask::all(keys.stores()));
        if let Some(slot) = slot {
            asks.push(Ask::one(keys.slot(slot)));
        }
        Start { slot: slot.map(str::to_owned) }
    }

    pub(super) fn take(self, handle: &Handle, pages: &mut Pages) -> Result<Started, Failure> {
        let base = match Base::of(&pages.next(), &handle.keys, handle.url())? {
            Found::Store(base) => handle.same_store(*base)?,
            Found::Nothing => return Err(handle.gone()),
        };
        let mut started = Started { base, reply: None, reply_revision: 0 };
        if self.slot.is_some() {
            let page = pages.next();
            if let Some(entry) = page.first() {
                let record: SlotRecord = decode(entry, handle.url())?;
                started.reply_revision = entry.mod_revision();
                started.reply = Some(record.into_core());
            }
        }
        Ok(started)
    }
}

pub(super) struct Started {
    pub(super) base: Base,
    pub(super) reply: Option<StoredReply>,
    pub(super) reply_revision: i64,
}

impl Handle {
    /// Looks at a scope. `tries` says how often a change that looked so was too late.
    pub(super) async fn look(
        &self,
        scope: &Scope,
        slot: Option<&str>,
        tries: u32,
    ) -> Result<Look, Failure> {
        self.open().await?;
        if let Scope::Tasks(scope) = scope {
            return self.look_at_tasks(scope, slot, tries).await;
        }
        let asked = self.ask(scope, slot);
        let pages = self.connection.read(&asked.asks, None).await?;
        self.see(scope, asked, pages)
    }

    /// The look at a scope that an earlier change of this handle made possible.
    pub(super) fn remembered_look(&self, scope: &Scope) -> Option<Look> {
        let Scope::At { resources, .. } = scope else { return None };
        if resources.len() > RESOURCES_MAX {
            return None;
        }
        let asked = self.ask(scope, None);
        let pages = self.remembered.take(&asked.asks)?;
        let mut look = self.see(scope, asked, pages).ok()?;
        if !look.snapshot.waiters.is_empty() {
            return None;
        }
        for (key, stored) in &look.holds {
            look.compares.same(About::Holds, key.clone(), stored.revision);
            if let Some(life) = stored.life {
                let (resource, grant) = (&stored.hold.want.resource, stored.hold.grant);
                let key = self.keys.hold(Family::Lives, resource, grant);
                look.compares.same(About::Lives, key, life.revision);
            }
        }
        look.is_remembered = true;
        Some(look)
    }

    /// What must be read for a look at a scope other than tasks.
    fn ask(&self, scope: &Scope, slot: Option<&str>) -> Asked {
        let keys = &self.keys;
        let mut asks = Vec::new();
        let start = Start::ask(keys, slot, &mut asks);
        let mut around = Around::default();
        match scope {
            Scope::At { resources, ticket } => around.ask_fronts(keys, resources, *ticket),
            Scope::Queues(resources) => around.ask_all(keys, resources.iter()),
            Scope::Waits { resources, .. } => {
                around.ask_everything(keys, false);
                around.ask_guards(keys, resources);
            }
            Scope::Everything => around.ask_everything(keys, true),
            Scope::Tasks(_) => {}
        }
        asks.append(&mut around.asks);
        Asked { asks, start, around }
    }

    /// Makes a look of what was read.
    fn see(&self, scope: &Scope, asked: Asked, mut pages: Pages) -> Result<Look, Failure> {
        let keys = &self.keys;
        let Asked { mut asks, start, mut around } = asked;
        let has_slot = start.slot.is_some();
        let started = start.take(self, &mut pages)?;
        around.take(&mut pages, self.url())?;
        around.join(keys);
        let now = self.now();
        let mut snapshot = match scope {
            Scope::At { resources, ticket } => Shown::at(&around, resources, *ticket, FRONT),
            Scope::Queues(resources) => Shown::at(&around, resources, None, usize::MAX),
            Scope::Waits { resources, owner } => Shown::waits(&around, resources, owner),
            Scope::Everything | Scope::Tasks(_) => Shown::all(&around),
        }
        .snapshot(now);
        snapshot.whole = *scope == Scope::Everything;
        snapshot.shows_waits = matches!(scope, Scope::Waits { .. });
        let revision = pages.revision;
        let mut compares = Compares::default();
        match scope {
            Scope::At { resources, .. } | Scope::Queues(resources) => {
                around.guards.unchanged(keys, resources.iter(), revision, &mut compares);
            }
            Scope::Waits { resources, .. } => {
                around.guards.unchanged(keys, resources.iter(), revision, &mut compares);
                compares.push(started.base.unchanged(keys, "waits"));
            }
            Scope::Everything | Scope::Tasks(_) => {
                compares.push(range_unput(keys.guards(), revision));
            }
        }
        // Where others wait, they will have changed something before the next look.
        let is_useful = match scope {
            Scope::At { resources, .. } => {
                resources.len() <= RESOURCES_MAX && !has_slot && snapshot.waiters.is_empty()
            }
            _ => false,
        };
        if !is_useful {
            asks.clear();
        }
        let look = around.into_look(started, snapshot, revision, now, compares);
        Ok(Look { asks, ..look })
    }
}

/// The reads of a look.
struct Asked {
    asks: Vec<Ask>,
    start: Start,
    around: Around,
}
