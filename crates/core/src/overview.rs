//! What counts at one moment: which holds, which places in queues, and how many of each.
//!
//! Command line, HTTP API, page, metrics and agents' tools all show this judgement, so that their
//! numbers agree. It is the judgement of the rules: what [`acquire`](crate::rules::acquire) would
//! take over or pass by does not count here either.

use crate::hold::compatible;
use crate::rules::{SteadyWitness, TakeoverReason, gone_reason};
use crate::{HoldSnapshot, Liveness, Resource, Snapshot, WaiterSnapshot, Want, Witness};
use std::collections::HashMap;

/// Whether a hold counts, and if not, why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// It excludes others.
    Held,
    /// Its time ran out: the next request takes it over.
    Lapsed,
    /// Its holder was proved dead: the next request takes it over.
    Dead,
}

impl HoldState {
    /// Judges one hold.
    pub fn of(seen: &HoldSnapshot, witness: &dyn Witness) -> HoldState {
        match gone_reason(seen, witness) {
            None => HoldState::Held,
            Some(TakeoverReason::Lapsed) => HoldState::Lapsed,
            Some(TakeoverReason::Died) => HoldState::Dead,
        }
    }

    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            HoldState::Held => "held",
            HoldState::Lapsed => "lapsed",
            HoldState::Dead => "dead",
        }
    }

    /// Whether the hold still excludes others.
    pub fn counts(self) -> bool {
        self == HoldState::Held
    }
}

/// How many there are of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Holds that count.
    pub held: usize,
    /// Holds whose time ran out.
    pub lapsed: usize,
    /// Holds whose holder was proved dead.
    pub dead: usize,
    /// Requests that wait, however many resources each wants. Waiters that died, or gave no sign
    /// of life in time, are not counted.
    pub waiting: usize,
    /// Workers that have a hold that counts.
    pub workers: usize,
}

/// A hold and whether it counts.
#[derive(Clone, Copy, Debug)]
pub struct JudgedHold<'a> {
    /// The hold.
    pub seen: &'a HoldSnapshot,
    /// Whether it counts.
    pub state: HoldState,
}

/// All holds under one label.
#[derive(Clone, Debug)]
pub struct Worker<'a> {
    /// The label.
    pub label: &'a str,
    /// Its holds, oldest first; those that no longer count are among them.
    pub holds: Vec<JudgedHold<'a>>,
    /// What is known about its life. One sign of life is enough; death needs proof.
    pub liveness: Liveness,
}

impl<'a> Worker<'a> {
    /// Whether any of its holds counts.
    pub fn counts(&self) -> bool {
        self.holds.iter().any(|hold| hold.state.counts())
    }

    /// The hold that lapses first, of those that count if there are any.
    pub fn next_to_lapse(&self) -> Option<&'a HoldSnapshot> {
        let counting = self.holds.iter().filter(|hold| hold.state.counts());
        let first = counting.min_by_key(|hold| hold.seen.left);
        first.or(self.holds.first()).map(|hold| hold.seen)
    }
}

/// What a store has [`Snapshot`], judged once.
#[derive(Clone, Debug)]
pub struct Overview<'a> {
    /// All holds that the store has, in the order of their tokens.
    pub holds: Vec<JudgedHold<'a>>,
    /// The waiters in the order of their tickets, without dead and silent ones.
    pub waiters: Vec<&'a WaiterSnapshot>,
    liveness: Vec<Liveness>,
}

impl<'a> Overview<'a> {
    /// Judges each hold and each waiter.
    pub fn of(seen: &'a Snapshot, witness: &dyn Witness) -> Overview<'a> {
        let witness = SteadyWitness::new(witness);
        let judged = |seen| JudgedHold { seen, state: HoldState::of(seen, &witness) };
        Overview {
            holds: seen.holds.iter().map(judged).collect(),
            waiters: seen.waiters.iter().filter(|seen| !seen.gone(&witness)).collect(),
            liveness: seen.holds.iter().map(|seen| seen.hold.holder.liveness(&witness)).collect(),
        }
    }

    /// How many there are of each.
    pub fn counts(&self) -> Counts {
        let number = |state| self.holds.iter().filter(|hold| hold.state == state).count();
        Counts {
            held: number(HoldState::Held),
            lapsed: number(HoldState::Lapsed),
            dead: number(HoldState::Dead),
            waiting: self.waiters.len(),
            workers: self.workers().iter().filter(|worker| worker.counts()).count(),
        }
    }

    /// The holds that count.
    pub fn held(&self) -> impl Iterator<Item = &'a HoldSnapshot> + Clone {
        self.holds.iter().filter(|hold| hold.state.counts()).map(|hold| hold.seen)
    }

    /// Whether nothing that counts overlaps this resource.
    pub fn is_free(&self, resource: &Resource) -> bool {
        !self.held().any(|seen| seen.hold.want.resource.overlaps(resource))
    }

    /// The waiters for this resource or for one that overlaps it, in order.
    pub fn waiting_for(&self, resource: &Resource) -> Vec<&'a WaiterSnapshot> {
        let waits = |want: &Want| want.resource.overlaps(resource);
        self.waiters.iter().copied().filter(|seen| seen.waiter.wants.iter().any(waits)).collect()
    }

    /// The waiters without a blocker: each was woken and takes what it wants as soon as it asks
    /// again.
    pub fn next_in_line(&self) -> Vec<&'a WaiterSnapshot> {
        let mut taken: Vec<&Want> = self.held().map(|seen| &seen.hold.want).collect();
        let mut next = Vec::new();
        for seen in &self.waiters {
            if compatible(&seen.waiter.wants, taken.iter().copied()) {
                next.push(*seen);
            }
            taken.extend(&seen.waiter.wants);
        }
        next
    }

    /// The holders by label, in the order of their first hold.
    pub fn workers(&self) -> Vec<Worker<'a>> {
        let mut workers: Vec<Worker<'a>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (hold, liveness) in self.holds.iter().zip(&self.liveness) {
            let label = hold.seen.hold.holder.label.as_str();
            let place = *places.entry(label).or_insert_with(|| {
                workers.push(Worker { label, holds: vec![], liveness: Liveness::Unknown });
                workers.len() - 1
            });
            let worker = &mut workers[place];
            worker.holds.push(*hold);
            worker.liveness = match (worker.liveness, liveness) {
                (Liveness::Alive, _) | (_, Liveness::Alive) => Liveness::Alive,
                (Liveness::Dead, _) | (_, Liveness::Dead) => Liveness::Dead,
                _ => Liveness::Unknown,
            };
        }
        workers
    }
}
