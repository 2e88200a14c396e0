//! What a store shows: all of it, what was asked for, or only the fronts of queues.

use super::{StoredHold, StoredWaiter, World};
use std::time::Duration;
use tenure_core::{
    HoldSnapshot, Kind, Owner, Resource, Revision, Scope, Snapshot, WaiterSnapshot, WallTime, Want,
};

/// How much of a look at some resources is shown. A look at everything always shows everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Everything, whatever was asked for.
    Whole,
    /// What overlaps the resources that were asked for.
    Asked,
    /// Like a database: holds by name, of each queue so many from the front, the own place, and
    /// the one before it.
    /// All paths count as one queue, because any two may overlap whatever their names.
    Front(usize),
}

impl View {
    /// Every way of showing that the rules must cope with.
    pub const ALL: [View; 5] =
        [View::Whole, View::Asked, View::Front(1), View::Front(2), View::Front(3)];
}

impl World {
    pub fn show(&self, scope: &Scope) -> Snapshot {
        let mut seen = match (scope, self.view) {
            (Scope::Tasks(_), View::Whole) => self.show_all_tasks(),
            (Scope::Tasks(scope), _) => self.show_tasks(scope),
            (Scope::Everything, _) | (_, View::Whole) => self.show_if(|_| true),
            (Scope::At { resources, ticket }, View::Front(front)) => {
                self.show_fronts(resources, *ticket, front)
            }
            (Scope::Waits { resources, owner }, _) => self.show_waits(resources, owner),
            (Scope::At { resources, .. } | Scope::Queues(resources), _) => self
                .show_if(|want| resources.iter().any(|resource| resource.overlaps(&want.resource))),
        };
        seen.whole = *scope == Scope::Everything || self.view == View::Whole;
        seen.shows_waits = matches!(scope, Scope::Waits { .. });
        seen.holds.sort_by_key(|seen| seen.hold.token);
        seen.waiters.sort_by_key(|seen| seen.waiter.ticket);
        seen.waiters.dedup_by_key(|seen| seen.waiter.ticket);
        seen.revision = Revision(self.events.len() as u64);
        seen.next = seen.revision.0 + 1;
        seen.wall = self.wall();
        seen
    }

    pub(super) fn show_if(&self, concerned: impl Fn(&Want) -> bool) -> Snapshot {
        let holds = self.holds.iter().filter(|stored| concerned(&stored.hold.want));
        let waiters =
            self.waiters.iter().filter(|stored| stored.waiter.wants.iter().any(&concerned));
        Snapshot {
            holds: holds.map(|stored| self.show_hold(stored)).collect(),
            waiters: waiters.map(|stored| self.show_waiter(stored)).collect(),
            ..Snapshot::default()
        }
    }

    /// All places in queues, and of the holds those that a wait could be for or that the owner has.
    fn show_waits(&self, resources: &[Resource], owner: &Owner) -> Snapshot {
        let mut seen = self.show_if(|_| true);
        let wanted = seen.waiters.iter().flat_map(|seen| &seen.waiter.wants);
        let wanted: Vec<Resource> =
            wanted.map(|want| &want.resource).chain(resources).cloned().collect();
        seen.holds.retain(|seen| {
            let held = &seen.hold.want.resource;
            owner.owns(&seen.hold) || wanted.iter().any(|resource| resource.overlaps(held))
        });
        seen
    }

    fn show_fronts(&self, resources: &[Resource], ticket: Option<u64>, front: usize) -> Snapshot {
        let mut all = Snapshot::default();
        let named = resources.iter().filter(|resource| resource.kind() != Kind::Path);
        for resource in named {
            self.show_front(&mut all, ticket, front, |want| want.resource == *resource);
        }
        if resources.iter().any(|resource| resource.kind() == Kind::Path) {
            self.show_front(&mut all, ticket, front, |want| want.resource.kind() == Kind::Path);
        }
        all
    }

    fn show_front(
        &self,
        all: &mut Snapshot,
        ticket: Option<u64>,
        front: usize,
        in_queue: impl Fn(&Want) -> bool,
    ) {
        let mut queue = self.show_if(in_queue);
        queue.waiters.sort_by_key(|seen| seen.waiter.ticket);
        if queue.waiters.len() > front {
            let last = queue.waiters[front - 1].waiter.ticket;
            all.shown_until = Some(all.shown_until.map_or(last, |until| until.min(last)));
            let mut tickets = queue.waiters.iter().map(|seen| seen.waiter.ticket);
            let before = tickets.rfind(|one| ticket.is_none_or(|own| *one < own));
            queue.waiters.retain(|seen| {
                let shown = Some(seen.waiter.ticket);
                seen.waiter.ticket <= last || shown == ticket || shown == before
            });
        }
        all.holds.append(&mut queue.holds);
        all.waiters.append(&mut queue.waiters);
    }

    /// The time of day.
    pub fn wall(&self) -> WallTime {
        WallTime(i64::try_from(self.now_ms).unwrap())
    }

    fn show_hold(&self, stored: &StoredHold) -> HoldSnapshot {
        let wall = |ms: u64| WallTime(i64::try_from(ms).unwrap());
        HoldSnapshot {
            hold: stored.hold.clone(),
            left: Duration::from_millis(stored.deadline_ms.saturating_sub(self.now_ms)),
            held_for: Duration::from_millis(self.now_ms - stored.since_ms),
            acquired_at: wall(stored.since_ms),
            renewed_at: wall(stored.since_ms),
            expires_at: wall(stored.deadline_ms),
            stale: None,
        }
    }

    fn show_waiter(&self, stored: &StoredWaiter) -> WaiterSnapshot {
        WaiterSnapshot {
            waiter: stored.waiter.clone(),
            left: Duration::from_millis(stored.deadline_ms.saturating_sub(self.now_ms)),
            waited_for: Duration::from_millis(self.now_ms - stored.since_ms),
            waiting_since: WallTime(i64::try_from(stored.since_ms).unwrap()),
            woken_for: stored.woken_ms.map(|ms| Duration::from_millis(self.now_ms - ms)),
        }
    }
}
