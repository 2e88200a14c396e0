//! What counts at one moment: which holds, which places in queues, and how many of each.
//!
//! Command line, HTTP API, page, metrics and agents' tools all show this judgement, so that their
//! numbers agree. It is the judgement of the rules: what [`acquire`](crate::rules::acquire) would
//! take over or pass by does not count here either.

use crate::hold::compatible;
use crate::rules::{SteadyWitness, TakeoverReason, gone_reason};
use crate::{
    Evidence, HoldSnapshot, Holder, Kind, Liveness, RegisteredWorker, Resource, Snapshot,
    WaiterSnapshot, Want, Witness,
};
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
    /// Workers that run, idle ones too, and other labels that have a hold that counts.
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

/// A registered worker with what it holds, or all other holds under one label.
#[derive(Clone, Debug)]
pub struct Worker<'a> {
    /// The label.
    pub label: &'a str,
    /// What the worker said about itself, where it is registered.
    pub registered: Option<&'a RegisteredWorker>,
    /// Its holds, oldest first; those that no longer count are among them.
    pub holds: Vec<JudgedHold<'a>>,
    /// What is known about its life. One sign of life is enough; death needs proof. A registered worker is
    /// dead with its own process, whatever that left running.
    pub liveness: Liveness,
}

impl<'a> Worker<'a> {
    /// Whether it counts as a worker: it is registered and not proved dead, or any of its holds counts.
    pub fn counts(&self) -> bool {
        self.holds.iter().any(|hold| hold.state.counts())
            || (self.registered.is_some() && self.liveness != Liveness::Dead)
    }

    /// What it does: `working` on a task, `idle`, `holding` something without being a worker that lives,
    /// or `gone`.
    pub fn state(&self) -> &'static str {
        let counting = || self.holds.iter().filter(|hold| hold.state.counts());
        let is_task = |hold: &&JudgedHold<'_>| hold.seen.hold.want.resource.kind() == Kind::Task;
        match self.registered {
            _ if !self.counts() => "gone",
            // What its command started still runs, and nobody leads it.
            Some(_) if self.liveness == Liveness::Dead => "holding",
            _ if counting().any(|hold| is_task(&hold)) => "working",
            Some(_) => "idle",
            None => "holding",
        }
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
    /// The registered workers, and what is known about their lives.
    registered: Vec<(&'a RegisteredWorker, Liveness)>,
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
            registered: seen.workers.iter().map(|one| (one, one.liveness(&witness))).collect(),
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

    /// The registered workers in the order in which they began, then all other holders by label, in the
    /// order of their first hold.
    pub fn workers(&self) -> Vec<Worker<'a>> {
        let one = |(worker, liveness): &(&'a RegisteredWorker, Liveness)| Worker {
            label: &worker.said.label,
            registered: Some(*worker),
            holds: vec![],
            liveness: *liveness,
        };
        let mut workers: Vec<Worker<'a>> = self.registered.iter().map(one).collect();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (hold, liveness) in self.holds.iter().zip(&self.liveness) {
            let holder = &hold.seen.hold.holder;
            let label = holder.label.as_str();
            let own = self.registered.iter().position(|(worker, _)| is_of(holder, worker));
            let place = own.unwrap_or_else(|| {
                *places.entry(label).or_insert_with(|| {
                    let (holds, liveness) = (vec![], Liveness::Unknown);
                    workers.push(Worker { label, registered: None, holds, liveness });
                    workers.len() - 1
                })
            });
            let worker = &mut workers[place];
            worker.holds.push(*hold);
            let has_died = own.is_some_and(|own| self.registered[own].1 == Liveness::Dead);
            worker.liveness = match (worker.liveness, liveness) {
                _ if has_died => Liveness::Dead,
                (Liveness::Alive, _) | (_, Liveness::Alive) => Liveness::Alive,
                (Liveness::Dead, _) | (_, Liveness::Dead) => Liveness::Dead,
                _ => Liveness::Unknown,
            };
        }
        workers
    }
}

/// Whether this holder is the registered worker: the same label, and the same process where both are known.
fn is_of(holder: &Holder, worker: &RegisteredWorker) -> bool {
    let process = |evidence: &Option<Evidence>| {
        let evidence = evidence.as_ref()?;
        Some((evidence.boot.clone(), evidence.pid_namespace, evidence.process?))
    };
    let (held, registered) = (process(&holder.evidence), process(&worker.said.evidence));
    holder.label == worker.said.label
        && held.zip(registered).is_none_or(|(held, registered)| held == registered)
}
