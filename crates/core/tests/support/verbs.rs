//! The rules as verbs of the world, and what tests read back.

use super::{World, grant_id, number_of};
use tenure_core::{
    Ask, Blocker, BreakAsk, Cycle, Grant, HoldSnapshot, Kind, Outcome, Proof, ReleaseAsk, Released,
    Resource, Scope, Token, VerifyAnswer, rules,
};

impl World {
    pub fn acquire(&mut self, ask: &Ask) -> Outcome {
        self.pending.remove(&ask.grant);
        let resources = ask.wants.iter().map(|want| want.resource.clone()).collect();
        let scope = Scope::At { resources, ticket: self.ticket_of(ask) };
        self.transact(&scope, |seen, witness| rules::acquire(seen, ask, witness))
    }

    fn ticket_of(&self, ask: &Ask) -> Option<u64> {
        let place = self.waiters.iter().find(|stored| stored.waiter.grant == ask.grant);
        place.map(|stored| stored.waiter.ticket)
    }

    pub fn must_grant(&mut self, ask: &Ask) -> Grant {
        match self.acquire(ask) {
            Outcome::Granted(grant) => grant,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Says how many wait before, where that is known.
    pub fn must_wait(&mut self, ask: &Ask) -> Option<usize> {
        match self.acquire(ask) {
            Outcome::Waiting { ahead, .. } => ahead,
            other => panic!("does not wait: {other:?}"),
        }
    }

    /// Says who is in the way.
    pub fn must_be_busy(&mut self, ask: &Ask) -> Vec<u32> {
        match self.acquire(ask) {
            Outcome::Busy { blockers } => blockers.iter().map(blocker_number).collect(),
            other => panic!("not busy: {other:?}"),
        }
    }

    pub fn must_deadlock(&mut self, ask: &Ask) -> Cycle {
        match self.acquire(ask) {
            Outcome::Deadlock(cycle) => cycle,
            other => panic!("no deadlock: {other:?}"),
        }
    }

    /// Gives back all of a grant, looking where it was granted, as a guard does.
    pub fn release(&mut self, number: u32, resources: &[&str]) -> Released {
        self.release_by(Proof::Grant(grant_id(number)), Some(resources))
    }

    pub fn release_by(&mut self, proof: Proof, resources: Option<&[&str]>) -> Released {
        let resources = resources.map(parse_all);
        let scope = match &resources {
            Some(resources) => Scope::At { resources: resources.clone(), ticket: None },
            None => Scope::Everything,
        };
        let ask = ReleaseAsk { proof, resources, lost: false };
        self.transact(&scope, |seen, witness| rules::release(seen, &ask, witness))
    }

    pub fn break_hold(&mut self, resource: &str, token: Token) -> Option<HoldSnapshot> {
        let resource: Resource = resource.parse().unwrap();
        let scope = Scope::At { resources: vec![resource.clone()], ticket: None };
        let (by, reason) = ("operator".to_owned(), "stuck".to_owned());
        let ask = BreakAsk { resource, token, by, reason };
        self.transact(&scope, |seen, witness| rules::break_hold(seen, &ask, witness))
    }

    /// Gives up a place; says whether there was one.
    pub fn leave(&mut self, number: u32) -> bool {
        let grant = grant_id(number);
        let Some(place) = self.waiters.iter().find(|stored| stored.waiter.grant == grant) else {
            return false;
        };
        let resources = place.waiter.wants.iter().map(|want| want.resource.clone()).collect();
        let scope = Scope::At { resources, ticket: Some(place.waiter.ticket) };
        self.transact(&scope, |seen, witness| rules::leave(seen, grant, witness))
    }

    pub fn reap(&mut self, kind: Option<Kind>) -> Vec<HoldSnapshot> {
        self.transact(&Scope::Everything, |seen, witness| rules::reap(seen, kind, witness))
    }

    pub fn verify(&self, resource: &str, token: Token) -> VerifyAnswer {
        let resource: Resource = resource.parse().unwrap();
        let seen = self.show(&Scope::At { resources: vec![resource.clone()], ticket: None });
        rules::verify(&seen, &resource, token, &self.dead)
    }

    /// Who was woken since this was last called, by number.
    pub fn woken(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.pending).into_iter().map(number_of).collect()
    }

    /// The events since this was last called, as `word resource label`.
    pub fn news(&mut self) -> Vec<String> {
        let new = self.events[self.events_read..].iter().map(|event| {
            let resource = event.resource.as_ref().expect("these rules concern resources");
            format!("{} {resource} {}", event.kind.word(), event.label)
        });
        let new = new.collect();
        self.events_read = self.events.len();
        new
    }

    /// Who holds, by number and in the order of their tokens, each resource of a grant counting.
    pub fn holders(&self) -> Vec<u32> {
        self.show(&Scope::Everything).holds.iter().map(|s| number_of(s.hold.grant)).collect()
    }

    /// Who waits, by number and in order.
    pub fn queue(&self) -> Vec<u32> {
        self.show(&Scope::Everything).waiters.iter().map(|s| number_of(s.waiter.grant)).collect()
    }
}

fn parse_all(resources: &[&str]) -> Vec<Resource> {
    resources.iter().map(|resource| resource.parse().unwrap()).collect()
}

pub fn blocker_number(blocker: &Blocker) -> u32 {
    match blocker {
        Blocker::Hold(seen) => number_of(seen.hold.grant),
        Blocker::Waiter(seen) => number_of(seen.waiter.grant),
    }
}
