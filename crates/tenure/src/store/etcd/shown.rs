//! Which of the records that were read a rule is shown.

use super::around::{Around, FRONT};
use super::records::StoredHold;
use std::collections::{BTreeSet, HashSet};
use tenure_core::{GrantId, Kind, Owner, Resource, Snapshot, WallTime};

/// Which of the records that were read are shown.
pub(super) struct Shown<'a> {
    around: &'a Around,
    holds: Box<dyn Fn(&StoredHold) -> bool + 'a>,
    places: BTreeSet<(u64, GrantId)>,
    until: Option<u64>,
}

impl<'a> Shown<'a> {
    pub(super) fn all(around: &'a Around) -> Shown<'a> {
        let places = around.places.values();
        let places = places.map(|place| (place.waiter.ticket, place.waiter.grant)).collect();
        Shown { around, holds: Box::new(|_| true), places, until: None }
    }

    /// What is on these resources and on paths that overlap them.
    pub(super) fn at(
        around: &'a Around,
        resources: &'a [Resource],
        ticket: Option<u64>,
        front: usize,
    ) -> Shown<'a> {
        let touches = |one: &Resource| resources.iter().any(|other| other.overlaps(one));
        let paths: Vec<&Resource> =
            resources.iter().filter(|one| one.kind() == Kind::Path).collect();
        let mut shown = Shown {
            around,
            holds: Box::new(move |stored| touches(&stored.hold.want.resource)),
            places: BTreeSet::new(),
            until: None,
        };
        if front == usize::MAX {
            let waits = around.places.values().map(|place| &place.waiter);
            let waits = waits.filter(|one| one.wants.iter().any(|want| touches(&want.resource)));
            shown.places = waits.map(|waiter| (waiter.ticket, waiter.grant)).collect();
            return shown;
        }
        for (queue, more) in &around.fronts {
            shown.places.extend(queue.iter().take(FRONT));
            if *more && let Some((last, _)) = queue.get(FRONT - 1) {
                shown.until = Some(shown.until.map_or(*last, |until| until.min(*last)));
            }
        }
        // The ends of these queues are whatever else was read of them.
        let is_named = |one: &Resource| one.kind() != Kind::Path && resources.contains(one);
        let place = ticket.unwrap_or(u64::MAX);
        let named = around.places.values().map(|place| &place.waiter).filter(|one| {
            one.ticket <= place && one.wants.iter().any(|want| is_named(&want.resource))
        });
        let mut named: Vec<(u64, GrantId)> = named.map(|one| (one.ticket, one.grant)).collect();
        named.sort_unstable();
        shown.places.extend(named);
        shown.paths_front(&paths, place);
        shown
    }

    fn paths_front(&mut self, paths: &[&Resource], place: u64) {
        let overlapping = self.around.places.values().map(|place| &place.waiter).filter(|one| {
            one.wants.iter().any(|want| paths.iter().any(|path| path.overlaps(&want.resource)))
        });
        let queue: BTreeSet<(u64, GrantId)> =
            overlapping.map(|one| (one.ticket, one.grant)).collect();
        let Some((last, _)) = queue.iter().nth(FRONT).and(queue.iter().nth(FRONT - 1)) else {
            self.places.extend(queue);
            return;
        };
        self.until = Some(self.until.map_or(*last, |until| until.min(*last)));
        self.places.extend(queue.iter().take_while(|(ticket, _)| ticket <= last));
        self.places.extend(queue.iter().rev().filter(|(ticket, _)| *ticket <= place).take(2));
    }

    /// All that is waited for, what is held there, and what the owner holds.
    pub(super) fn waits(
        around: &'a Around,
        resources: &'a [Resource],
        owner: &'a Owner,
    ) -> Shown<'a> {
        let waited: Vec<Resource> = {
            let wants = around.places.values().flat_map(|place| &place.waiter.wants);
            wants.map(|want| &want.resource).chain(resources).cloned().collect()
        };
        let named: HashSet<Resource> =
            waited.iter().filter(|one| one.kind() != Kind::Path).cloned().collect();
        let paths: Vec<Resource> =
            waited.into_iter().filter(|one| one.kind() == Kind::Path).collect();
        let holds = move |stored: &StoredHold| {
            let held = &stored.hold.want.resource;
            owner.owns(&stored.hold)
                || named.contains(held)
                || paths.iter().any(|path| path.overlaps(held))
        };
        Shown { holds: Box::new(holds), ..Shown::all(around) }
    }

    pub(super) fn snapshot(&self, now: WallTime) -> Snapshot {
        let holds = self.around.holds.values().filter(|stored| (self.holds)(stored));
        let holds = holds.map(|stored| stored.show(now)).collect();
        let places = self.places.iter().filter_map(|key| self.around.places.get(key));
        let waiters = places.map(|place| place.show(now)).collect();
        let mut seen = Snapshot { holds, waiters, shown_until: self.until, ..Snapshot::default() };
        seen.sort_holds();
        seen
    }
}
