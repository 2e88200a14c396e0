//! A change in the making, and the state of the store as it would be afterwards.

use crate::decision::{Change, Decision, Write};
use crate::event::{EventKind, NewEvent, WhyLeft};
use crate::hold::{Hold, Mode, Waiter, Want, compatible, may_exclude};
use crate::rules::SteadyWitness;
use crate::rules::acquire::Ask;
use crate::rules::reap::{TakeoverReason, death_words, gone_reason};
use crate::{
    GrantId, HoldSnapshot, Liveness, Resource, Snapshot, WaiterSnapshot, WallTime, Witness,
};
use std::collections::HashSet;

/// Collects writes and events, and knows which records would be left.
pub(super) struct Draft<'a> {
    seen: &'a Snapshot,
    witness: SteadyWitness<'a>,
    change: Change,
    dropped_holds: HashSet<usize>,
    dropped_waiters: HashSet<GrantId>,
    added: Vec<Want>,
    /// Resources on which room was made for waiters.
    freed: Vec<Resource>,
    /// Who asks now, and so gives a sign of life, whatever the record of its place says.
    asker: Option<GrantId>,
    /// The resources whose queues are shown, where a rule says so; those that overlap them are too.
    shown: Option<Vec<Resource>>,
    /// Holds that the asker goes under: not in its way, and in that of others as before.
    covering: HashSet<usize>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(seen: &'a Snapshot, witness: &'a dyn Witness) -> Draft<'a> {
        Draft {
            seen,
            witness: SteadyWitness::new(witness),
            change: Change::default(),
            dropped_holds: HashSet::new(),
            dropped_waiters: HashSet::new(),
            added: Vec::new(),
            freed: Vec::new(),
            asker: None,
            shown: None,
            covering: HashSet::new(),
        }
    }

    /// Says what was looked at, so that room made elsewhere is not overlooked.
    pub(super) fn looking_at(mut self, wants: &[Want]) -> Draft<'a> {
        self.shown = Some(wants.iter().map(|want| want.resource.clone()).collect());
        self
    }

    /// Leaves aside, in what is in the asker's way, the holds of its owner that cover all that they
    /// touch of the request.
    pub(super) fn set_aside_covering(&mut self, ask: &Ask) {
        if ask.owner.is_nobody() {
            return;
        }
        for (index, seen) in self.seen.holds.iter().enumerate() {
            let mut touched =
                ask.wants.iter().filter(|want| want.resource.overlaps(&seen.hold.want.resource));
            let covers = |want: &Want| ask.is_covered_by(&seen.hold, want);
            // To look at a process is dear: only that of a hold that would cover is looked at.
            let is_covering = touched.clone().next().is_some()
                && (ask.is_same_agents(&seen.hold) || touched.all(covers));
            if is_covering && !seen.gone(&self.witness) {
                self.covering.insert(index);
            }
        }
    }

    /// The holds that the asker goes under.
    pub(super) fn covering(&self) -> impl Iterator<Item = &Hold> {
        self.covering.iter().map(|index| &self.seen.holds[*index].hold)
    }

    /// The witness to judge by while this draft is made.
    pub(super) fn witness(&self) -> &dyn Witness {
        &self.witness
    }

    /// The holds that would be left, without those that the draft adds and those that the asker goes
    /// under.
    pub(super) fn holds(&self) -> impl Iterator<Item = &'a HoldSnapshot> + Clone + use<'a, '_> {
        let seen: &'a Snapshot = self.seen;
        seen.holds
            .iter()
            .enumerate()
            .filter(|(index, _)| {
                !self.dropped_holds.contains(index) && !self.covering.contains(index)
            })
            .map(|(_, seen)| seen)
    }

    /// The places that would be left, in order.
    pub(super) fn waiters(&self) -> impl Iterator<Item = &'a WaiterSnapshot> + Clone + use<'a, '_> {
        let seen: &'a Snapshot = self.seen;
        seen.waiters.iter().filter(|seen| !self.dropped_waiters.contains(&seen.waiter.grant))
    }

    pub(super) fn event(&mut self, want: &Want, label: &str, hold: Option<&Hold>, kind: EventKind) {
        self.change.events.push(NewEvent {
            resource: Some(want.resource.clone()),
            label: label.to_owned(),
            token: hold.map(|hold| hold.token),
            kind,
            actor: None,
            at: None,
        });
    }

    /// Records something about a resource as a whole.
    pub(super) fn note(&mut self, resource: &Resource, label: &str, kind: EventKind) {
        let resource = Some(resource.clone());
        self.change.events.push(NewEvent::new(resource, label, None, kind));
    }

    /// The store's time of day.
    pub(super) fn wall(&self) -> WallTime {
        self.seen.wall
    }

    /// What the draft adds.
    pub(super) fn added(&self) -> impl Iterator<Item = &Want> + Clone {
        self.added.iter()
    }

    pub(super) fn write(&mut self, write: Write) {
        self.change.writes.push(write);
    }

    pub(super) fn require_durable(&mut self) {
        self.change.durable = true;
    }

    /// Adds a hold; says which slot it has, if the resource is held by slots.
    pub(super) fn add_hold(&mut self, hold: Hold) -> Option<u32> {
        let slot = self.free_slot(&hold.want);
        let hold = Hold { slot, ..hold };
        let kind = EventKind::Acquired { operation: hold.operation.clone() };
        self.event(&hold.want, &hold.holder.label, Some(&hold), kind);
        self.added.push(hold.want.clone());
        self.write(Write::Hold(hold));
        slot
    }

    /// The lowest slot that no other holder has. It is below the number of slots: as many are taken
    /// at most as there are other holders.
    fn free_slot(&self, want: &Want) -> Option<u32> {
        let Mode::Slot { .. } = want.mode else { return None };
        let added = self.change.writes.iter().filter_map(|write| match write {
            Write::Hold(hold) => Some(hold),
            _ => None,
        });
        let holds = self.holds().map(|seen| &seen.hold).chain(added);
        let beside = holds.filter(|hold| hold.want.resource.overlaps(&want.resource));
        let taken: HashSet<u32> = beside.filter_map(|hold| hold.slot).collect();
        (0..=u32::MAX).find(|slot| !taken.contains(slot))
    }

    pub(super) fn drop_hold(&mut self, hold: &HoldSnapshot, kind: EventKind) {
        let index = self.seen.holds.iter().position(|seen| std::ptr::eq(seen, hold));
        let Some(index) = index else { return };
        if !self.dropped_holds.insert(index) {
            return;
        }
        let kind = match kind {
            EventKind::Lapsed { .. } => {
                EventKind::Lapsed { ended_at: Some(hold.expires_at), reason: hold.stale.clone() }
            }
            EventKind::Died { .. } => {
                EventKind::Died { reason: Some(death_words(&hold.hold.holder)) }
            }
            kind => kind,
        };
        let hold = &hold.hold;
        self.event(&hold.want, &hold.holder.label, Some(hold), kind);
        self.write(Write::DropHold { resource: hold.want.resource.clone(), grant: hold.grant });
        self.freed.push(hold.want.resource.clone());
    }

    /// Removes a hold that no longer counts; says why, or nothing if it does count.
    pub(super) fn drop_if_gone(&mut self, hold: &HoldSnapshot) -> Option<TakeoverReason> {
        let reason = gone_reason(hold, &self.witness)?;
        self.drop_hold(hold, reason.event());
        Some(reason)
    }

    /// Ends a place silently: it became a grant.
    pub(super) fn end_wait(&mut self, waiter: &Waiter) {
        if self.dropped_waiters.insert(waiter.grant) {
            self.write(Write::DropWait(waiter.clone()));
        }
    }

    /// Ends a place without a grant.
    pub(super) fn drop_wait(&mut self, waiter: &Waiter, why: WhyLeft) {
        if self.dropped_waiters.contains(&waiter.grant) {
            return;
        }
        for want in &waiter.wants {
            self.event(want, &waiter.holder.label, None, EventKind::Left { why });
        }
        self.end_wait(waiter);
        self.freed.extend(waiter.wants.iter().map(|want| want.resource.clone()));
    }

    /// Removes a place that no longer counts; says whether it did.
    pub(super) fn drop_wait_if_gone(&mut self, seen: &WaiterSnapshot) -> bool {
        let why = self.why_gone(seen);
        if let Some(why) = why {
            self.drop_wait(&seen.waiter, why);
        }
        why.is_some()
    }

    /// Removes the place of one that is dead, not that of one that was merely silent; says whether
    /// it did.
    pub(super) fn drop_wait_if_dead(&mut self, seen: &WaiterSnapshot) -> bool {
        self.why_gone(seen) == Some(WhyLeft::Died) && self.drop_wait_if_gone(seen)
    }

    fn why_gone(&self, seen: &WaiterSnapshot) -> Option<WhyLeft> {
        if Some(seen.waiter.grant) == self.asker {
            return None;
        }
        match seen.waiter.holder.liveness(&self.witness) {
            Liveness::Dead => Some(WhyLeft::Died),
            _ if seen.left.is_zero() => Some(WhyLeft::Silent),
            _ => None,
        }
    }

    /// Whether these wants fit beside all holds and the waiters `before`. Removes waiters in the way
    /// that are gone; holds that are gone do not count, and stay until they are taken over.
    pub(super) fn fits(&mut self, wants: &[Want], before: &[&'a WaiterSnapshot]) -> bool {
        let everybody = self.taken().chain(before.iter().flat_map(|seen| &seen.waiter.wants));
        if compatible(wants, everybody) {
            return true;
        }
        let mut gone = Vec::new();
        let fits = self.fits_beside_the_living(wants, before, &|_| true, &mut gone);
        for waiter in gone {
            self.drop_wait_if_gone(waiter);
        }
        fits
    }

    fn taken(&self) -> impl Iterator<Item = &Want> + Clone {
        self.holds().map(|seen| &seen.hold.want).chain(&self.added)
    }

    /// Judges those in the way one after the other, until it is settled. Of what they have, only
    /// that counts which is `relevant`.
    fn fits_beside_the_living(
        &self,
        wants: &[Want],
        before: &[&'a WaiterSnapshot],
        relevant: &dyn Fn(&Want) -> bool,
        gone: &mut Vec<&'a WaiterSnapshot>,
    ) -> bool {
        let in_the_way =
            |want: &&Want| relevant(want) && may_exclude(wants, std::slice::from_ref(want));
        let mut taken: Vec<&Want> = self.added.iter().filter(in_the_way).collect();
        for seen in self.holds().filter(|seen| in_the_way(&&seen.hold.want)) {
            if seen.gone(&self.witness) {
                continue;
            }
            taken.push(&seen.hold.want);
            if !compatible(wants, taken.iter().copied()) {
                return false;
            }
        }
        for seen in before {
            let theirs: Vec<&Want> = seen.waiter.wants.iter().filter(in_the_way).collect();
            if theirs.is_empty() || self.dropped_waiters.contains(&seen.waiter.grant) {
                continue;
            }
            if self.why_gone(seen).is_some() {
                gone.push(seen);
                continue;
            }
            taken.extend(theirs);
            if !compatible(wants, taken.iter().copied()) {
                return false;
            }
        }
        compatible(wants, taken.into_iter())
    }

    /// The decision, with those woken whose turn has come because of it. `asker` is awake, and
    /// stays in the queue or holds now.
    pub(super) fn decide(mut self, asker: Option<GrantId>) -> Decision {
        self.asker = asker;
        self.covering.clear();
        if !self.freed.is_empty() && !self.wake_ready() {
            return Decision::NeedAll;
        }
        self.change.decide()
    }

    /// Plays the queue forward in order: a waiter that fits beside the holds and all waiters before
    /// it is woken. Returns false where the visible part of the queue does not decide it.
    fn wake_ready(&mut self) -> bool {
        let shown_until = self.seen.shown_until.unwrap_or(u64::MAX);
        let waiting: Vec<&WaiterSnapshot> =
            self.waiters().filter(|seen| seen.waiter.ticket <= shown_until).collect();
        // Those that were woken before and did not come are passed, and keep their place.
        let mut before: Vec<&WaiterSnapshot> = Vec::with_capacity(waiting.len());
        for seen in &waiting {
            if self.fits(&seen.waiter.wants, &before) && !self.drop_wait_if_gone(seen) {
                self.change.wake.push(seen.waiter.grant);
                if seen.woken_for.is_none() {
                    self.change.writes.push(Write::Woken(seen.waiter.clone()));
                }
            }
            if !seen.missed_its_turn() {
                before.push(seen);
            }
        }
        if !self.seen.whole && self.freed.iter().any(|resource| !self.is_shown(resource)) {
            return false;
        }
        self.seen.shown_until.is_none()
            || self.freed.iter().all(|resource| self.is_full(resource, &before))
    }

    /// Whether all that wait for any of this are shown, up to the end of what is shown of each queue.
    fn is_shown(&self, resource: &Resource) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.iter().any(|one| one.includes(resource)))
    }

    /// Whether no waiter behind these could hold any of this resource, in any mode. Only wants of
    /// the very same resource decide: one that overlaps a glob may leave a part of it free.
    fn is_full(&self, resource: &Resource, waiting: &[&'a WaiterSnapshot]) -> bool {
        [Mode::Shared, Mode::Slot { of: u32::MAX }].into_iter().all(|mode| {
            let want = Want { resource: resource.clone(), mode };
            let same = |other: &Want| other.resource == want.resource;
            let wants = std::slice::from_ref(&want);
            !self.fits_beside_the_living(wants, waiting, &same, &mut Vec::new())
        })
    }
}
