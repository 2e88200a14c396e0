//! What must never happen, asserted at every step.

use super::{StoredHold, StoredWaiter, World};
use tenure_core::{
    Change, EventKind, GrantId, Holder, Kind, Liveness, Mode, NewEvent, Resource, Snapshot, Token,
    WhyLeft, Write,
};

impl World {
    pub fn is_dead(&self, holder: &Holder) -> bool {
        holder.liveness(&self.dead) == Liveness::Dead
    }

    pub fn hold_counts(&self, stored: &StoredHold) -> bool {
        stored.deadline_ms > self.now_ms && !self.is_dead(&stored.hold.holder)
    }

    pub fn waiter_counts(&self, stored: &StoredWaiter) -> bool {
        stored.deadline_ms > self.now_ms && !self.is_dead(&stored.waiter.holder)
    }

    /// Each write is allowed by itself, and the events tell exactly what is written.
    pub(super) fn check_change(&self, seen: &Snapshot, change: &Change) {
        let mut told: Vec<&NewEvent> = change.events.iter().collect();
        for write in &change.writes {
            match write {
                Write::Hold(hold) => {
                    assert!(hold.token >= Token(seen.next), "a token is a new number");
                    let event = take(&mut told, &hold.want.resource, Some(hold.token));
                    assert!(matches!(event.kind, EventKind::Acquired { .. }), "{event:?}");
                }
                Write::Extend { resource, grant, .. } => {
                    let stored = &self.holds[self.hold_index(resource, *grant)];
                    assert!(stored.deadline_ms > self.now_ms, "what lapsed is never extended");
                }
                Write::DropHold { resource, grant } => {
                    let stored = &self.holds[self.hold_index(resource, *grant)];
                    let event = take(&mut told, resource, Some(stored.hold.token));
                    self.check_end(stored, &event.kind);
                }
                Write::Wait(waiter) => {
                    let already = self.waiters.iter().any(|s| s.waiter.grant == waiter.grant);
                    assert!(!already, "a request has one place");
                    assert_eq!(waiter.ticket, seen.next, "a ticket takes the next number");
                    for want in &waiter.wants {
                        let event = take(&mut told, &want.resource, None);
                        assert_eq!(event.kind, EventKind::Waiting);
                    }
                }
                Write::KeepPlace(waiter) => {
                    let stored = &self.waiters[self.waiter_index(waiter.ticket)];
                    assert_eq!(stored.waiter.grant, waiter.grant);
                }
                Write::Woken(waiter) => {
                    assert!(
                        change.wake.contains(&waiter.grant),
                        "only those are marked who are woken"
                    );
                }
                Write::DropWait(waiter) if became_a_grant(change, waiter.grant) => {}
                Write::DropWait(waiter) => {
                    let stored = &self.waiters[self.waiter_index(waiter.ticket)];
                    for want in &waiter.wants {
                        let event = take(&mut told, &want.resource, None);
                        self.check_left(stored, &event.kind);
                    }
                }
                Write::Task(task) => self.check_task(task, change, &mut told),
                Write::DropTask(id) => {
                    assert_eq!(take(&mut told, &id.resource(), None).kind, EventKind::Deleted);
                }
                Write::Section(section) => {
                    take(&mut told, &section.resource().unwrap(), None);
                }
                // Nothing is told of what only tells of work.
                Write::PutRecord(_) | Write::DropRecords(_) => {}
                other => unreachable!("no rule of these tests writes {other:?}"),
            }
        }
        told.retain(|event| event.kind != EventKind::Deadlock);
        assert!(told.is_empty(), "events without a change: {told:?}");
        self.check_tokens(change);
        self.check_wakes(change);
    }

    fn check_end(&self, stored: &StoredHold, kind: &EventKind) {
        match kind {
            EventKind::Died { .. } => {
                assert!(self.is_dead(&stored.hold.holder), "only the dead died")
            }
            EventKind::Lapsed { .. } => {
                assert!(stored.deadline_ms <= self.now_ms, "only time lapses")
            }
            EventKind::Released | EventKind::Broken { .. } => {}
            EventKind::Completed
            | EventKind::Failed { .. }
            | EventKind::SentToReview
            | EventKind::Snoozed
            | EventKind::HandedBack
            | EventKind::Cancelled => {
                assert_eq!(stored.hold.want.resource.kind(), Kind::Task, "this ends a task");
            }
            other => panic!("{other:?} does not end a hold"),
        }
    }

    fn check_left(&self, stored: &StoredWaiter, kind: &EventKind) {
        match kind {
            EventKind::Left { why: WhyLeft::Died } => assert!(self.is_dead(&stored.waiter.holder)),
            EventKind::Left { why: WhyLeft::Silent } => assert!(stored.deadline_ms <= self.now_ms),
            EventKind::Left { why: WhyLeft::GaveUp } => {}
            other => panic!("{other:?} does not end a place"),
        }
    }

    /// A new token is above every token that was ever given out.
    fn check_tokens(&self, change: &Change) {
        let highest = self.events.iter().filter_map(|past| past.token).max();
        for event in &change.events {
            let is_new = matches!(event.kind, EventKind::Acquired { .. });
            assert!(!is_new || event.token > highest, "{:?} is not new", event.token);
        }
    }

    /// Only those are woken who still wait and live, and each once.
    fn check_wakes(&self, change: &Change) {
        for (index, grant) in change.wake.iter().enumerate() {
            assert!(!change.wake[..index].contains(grant), "woken twice: {grant:?}");
            let stored = self.waiters.iter().find(|stored| stored.waiter.grant == *grant);
            let stored = stored.expect("only those are woken who wait");
            assert!(self.waiter_counts(stored), "a waiter that is gone was woken");
            let dropped = change
                .writes
                .iter()
                .any(|write| matches!(write, Write::DropWait(waiter) if waiter.grant == *grant));
            assert!(!dropped, "one whose place ended was woken");
        }
    }

    /// Follows who holds by the events alone.
    pub(super) fn replay(&mut self, event: &NewEvent) {
        let (Some(resource), Some(token)) = (&event.resource, event.token) else { return };
        let entry = (resource.clone(), token, event.label.clone());
        if matches!(event.kind, EventKind::Acquired { .. }) {
            self.replayed.push(entry);
        } else {
            let index = self.replayed.iter().position(|held| *held == entry);
            self.replayed.remove(index.expect("only what was acquired ends"));
        }
    }

    /// What is there now is possible.
    pub(super) fn check_state(&self) {
        let mut held: Vec<_> = self.holds.iter().map(|s| s.hold.clone()).collect();
        let mut told = self.replayed.clone();
        held.sort_by_key(|hold| (hold.token, hold.want.resource.key()));
        told.sort_by_key(|(resource, token, _)| (*token, resource.key()));
        let held = held.into_iter().map(|hold| (hold.want.resource, hold.token, hold.holder.label));
        assert_eq!(held.collect::<Vec<_>>(), told, "the events do not tell who holds");

        let live: Vec<&StoredHold> = self.holds.iter().filter(|s| self.hold_counts(s)).collect();
        for (index, one) in live.iter().enumerate() {
            for other in &live[index + 1..] {
                let own = |stored: &&StoredHold| self.of_one_owner.contains(&stored.hold.grant);
                let is_owner = [one, other].into_iter().all(own);
                assert!(is_owner || beside(one, other), "{:?} beside {:?}", one.hold, other.hold);
            }
            let Mode::Slot { of } = one.hold.want.mode else { continue };
            let same = live.iter().filter(|s| s.hold.want.resource == one.hold.want.resource);
            assert!(same.count() <= of as usize, "more than {of} hold {:?}", one.hold.want);
        }
    }
}

fn became_a_grant(change: &Change, grant: GrantId) -> bool {
    change.writes.iter().any(|write| matches!(write, Write::Hold(hold) if hold.grant == grant))
}

pub(super) fn take<'a>(
    told: &mut Vec<&'a NewEvent>,
    resource: &Resource,
    token: Option<Token>,
) -> &'a NewEvent {
    let about = |event: &&NewEvent| {
        event.resource.as_ref() == Some(resource)
            && event.token == token
            && event.kind != EventKind::Deadlock
    };
    let index = told.iter().position(about);
    told.remove(index.unwrap_or_else(|| panic!("no event tells about {resource} under {token:?}")))
}

/// Whether two live holds may stand beside each other.
fn beside(one: &StoredHold, other: &StoredHold) -> bool {
    let (one, other) = (&one.hold, &other.hold);
    one.grant == other.grant
        || !one.want.resource.overlaps(&other.want.resource)
        || matches!(
            (one.want.mode, other.want.mode),
            (Mode::Shared, Mode::Shared) | (Mode::Slot { .. }, Mode::Slot { .. })
        )
}
