//! A change in the making, and the state of the store as it would be afterwards.

use crate::decision::{Change, Decision, Write};
use crate::event::{EventKind, NewEvent, WhyLeft};
use crate::hold::{Hold, Waiter, Want, compatible};
use crate::rules::reap::{TakeoverReason, gone_reason};
use crate::{GrantId, Liveness, Resource, Seen, SeenHold, SeenWaiter, Witness};
use std::collections::HashSet;

/// Collects writes and events, and knows which records would be left.
pub(super) struct Draft<'a> {
    seen: &'a Seen,
    witness: &'a dyn Witness,
    change: Change,
    dropped_holds: HashSet<usize>,
    dropped_waiters: HashSet<GrantId>,
    added: Vec<Want>,
    /// Whether room was made for somebody who waits.
    made_room: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(seen: &'a Seen, witness: &'a dyn Witness) -> Draft<'a> {
        Draft {
            seen,
            witness,
            change: Change::default(),
            dropped_holds: HashSet::new(),
            dropped_waiters: HashSet::new(),
            added: Vec::new(),
            made_room: false,
        }
    }

    /// The holds that would be left, without those that the draft adds.
    pub(super) fn holds(&self) -> impl Iterator<Item = &'a SeenHold> + Clone + use<'a, '_> {
        let seen: &'a Seen = self.seen;
        seen.holds
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.dropped_holds.contains(index))
            .map(|(_, seen)| seen)
    }

    /// The places that would be left, in order.
    pub(super) fn waiters(&self) -> impl Iterator<Item = &'a SeenWaiter> + Clone + use<'a, '_> {
        let seen: &'a Seen = self.seen;
        seen.waiters.iter().filter(|seen| !self.dropped_waiters.contains(&seen.waiter.grant))
    }

    pub(super) fn event(&mut self, want: &Want, label: &str, hold: Option<&Hold>, kind: EventKind) {
        self.change.events.push(NewEvent {
            resource: Some(want.resource.clone()),
            label: label.to_owned(),
            token: hold.map(|hold| hold.token),
            kind,
        });
    }

    /// Records something about a resource as a whole.
    pub(super) fn note(&mut self, resource: &Resource, label: &str, kind: EventKind) {
        let resource = Some(resource.clone());
        self.change.events.push(NewEvent { resource, label: label.to_owned(), token: None, kind });
    }

    /// How many events there are so far.
    pub(super) fn events(&self) -> u64 {
        self.change.events.len() as u64
    }

    /// What the draft adds.
    pub(super) fn added(&self) -> impl Iterator<Item = &Want> + Clone {
        self.added.iter()
    }

    /// What the draft adds under this grant.
    pub(super) fn added_under(&self, grant: GrantId) -> impl Iterator<Item = &Want> {
        self.change.writes.iter().filter_map(move |write| match write {
            Write::Hold(hold) if hold.grant == grant => Some(&hold.want),
            _ => None,
        })
    }

    pub(super) fn write(&mut self, write: Write) {
        self.change.writes.push(write);
    }

    pub(super) fn require_durable(&mut self) {
        self.change.durable = true;
    }

    pub(super) fn add_hold(&mut self, hold: Hold) {
        let kind = EventKind::Acquired { operation: hold.operation.clone() };
        self.event(&hold.want, &hold.holder.label, Some(&hold), kind);
        self.added.push(hold.want.clone());
        self.write(Write::Hold(hold));
    }

    pub(super) fn drop_hold(&mut self, hold: &SeenHold, kind: EventKind) {
        let index = self.seen.holds.iter().position(|seen| std::ptr::eq(seen, hold));
        let Some(index) = index else { return };
        if !self.dropped_holds.insert(index) {
            return;
        }
        let hold = &hold.hold;
        self.event(&hold.want, &hold.holder.label, Some(hold), kind);
        self.write(Write::DropHold { resource: hold.want.resource.clone(), grant: hold.grant });
        self.made_room = true;
    }

    /// Removes a hold that no longer counts; says why, or nothing if it does count.
    pub(super) fn drop_if_gone(&mut self, hold: &SeenHold) -> Option<TakeoverReason> {
        let reason = gone_reason(hold, self.witness)?;
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
        self.made_room = true;
    }

    /// Removes a place that no longer counts; says whether it did.
    pub(super) fn drop_wait_if_gone(&mut self, waiter: &SeenWaiter) -> bool {
        let dead = waiter.waiter.holder.liveness(self.witness) == Liveness::Dead;
        if !dead && !waiter.left.is_zero() {
            return false;
        }
        let why = if dead { WhyLeft::Died } else { WhyLeft::Silent };
        self.drop_wait(&waiter.waiter, why);
        true
    }

    /// The decision, with those woken whose turn has come because of it.
    pub(super) fn decide(mut self, except: Option<GrantId>) -> Decision {
        if self.made_room && !self.wake_ready(except) {
            return Decision::LookWider;
        }
        self.change.decide()
    }

    /// Plays the queue forward in order: whoever fits beside the holders and all who wait before
    /// them is ready. Says no where the visible part of the queue does not tell.
    fn wake_ready(&mut self, except: Option<GrantId>) -> bool {
        let added = std::mem::take(&mut self.added);
        let mut taken: Vec<&Want> =
            self.holds().map(|seen| &seen.hold.want).chain(added.iter()).collect();
        let shown_until = self.seen.shown_until.unwrap_or(u64::MAX);
        let waiting: Vec<&SeenWaiter> =
            self.waiters().filter(|seen| seen.waiter.ticket <= shown_until).collect();
        let mut somebody_stays = false;
        for seen in waiting {
            let fits = compatible(&seen.waiter.wants, taken.iter().copied());
            if fits && Some(seen.waiter.grant) != except {
                if self.drop_wait_if_gone(seen) {
                    continue;
                }
                self.change.wake.push(seen.waiter.grant);
            }
            somebody_stays |= !fits;
            taken.extend(&seen.waiter.wants);
        }
        somebody_stays || self.seen.shown_until.is_none()
    }
}
