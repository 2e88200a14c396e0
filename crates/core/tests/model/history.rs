//! Takes each step in the world and in the model, and compares them.

use super::line::{Line, Plea, RESOURCES, State, Verdict, exclude};
use super::steps::{ACTORS, Step};
use crate::support::{AskExt, View, World, ask, grant_id, number_of};
use proptest::sample::Index;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tenure_core::{Ask, Mode, Outcome, Proof, Reason, Released, Resource, Want};

/// How long a place lasts without a sign of life.
const PLACE_MS: u64 = 50;

pub struct History {
    pub world: World,
    pub line: Line,
    /// The process that now plays each part.
    processes: [u32; ACTORS],
    next_number: u32,
    /// Every request that was ever made.
    pub pleas: BTreeMap<u32, Plea>,
    /// Who could go before, and who can go because of a death or a lapse that nobody looked at.
    ready: BTreeSet<u32>,
    pub excused: BTreeSet<u32>,
    outcomes: Vec<(Option<Verdict>, BTreeSet<u32>)>,
    /// Whether a place that had already been given up came back to life. Whether it is still there
    /// depends on who happened to look.
    was_revived: bool,
}

impl History {
    pub fn new(view: View) -> History {
        let world = World::new(view);
        let line = Line { now_ms: world.now_ms, ..Line::default() };
        History {
            world,
            line,
            processes: std::array::from_fn(|actor| actor as u32 + 1_000),
            next_number: 1,
            pleas: BTreeMap::new(),
            ready: BTreeSet::new(),
            excused: BTreeSet::new(),
            outcomes: vec![],
            was_revived: false,
        }
    }

    /// What came of each step, and who could go after it.
    pub fn outcomes_unless_revived(self) -> Option<Vec<(Option<Verdict>, BTreeSet<u32>)>> {
        (!self.was_revived).then_some(self.outcomes)
    }

    pub fn take(&mut self, step: &Step) {
        self.world.last_woken.clear();
        let verdict = match step {
            Step::Ask { .. } => self.ask_anew(step),
            Step::AskAgain(pick) => self.pick_plea(pick).and_then(|plea| self.ask_again(&plea)),
            Step::Retry(pick) => pick_one(pick, self.ready.iter().copied())
                .map(|number| self.pleas[&number].clone())
                .filter(|plea| self.processes.contains(&plea.process))
                .map(|plea| self.ask(&plea)),
            Step::Release(pick) => self.pick_plea(pick).and_then(|plea| self.release(&plea)),
            Step::Break(pick) => self.break_one(pick),
            Step::Leave(pick) => self.leave_one(pick),
            Step::Kill { actor } => self.kill(*actor),
            Step::Pass { ms } => self.pass(*ms),
            Step::Reap => self.reap(),
        };
        self.check(matches!(step, Step::Kill { .. } | Step::Pass { .. }));
        self.outcomes.push((verdict, self.ready.clone()));
    }

    fn ask_anew(&mut self, step: &Step) -> Option<Verdict> {
        let Step::Ask { actor, claims, queues, is_tied, keeps, ttl_ms } = step.clone() else {
            return None;
        };
        let says_what_it_keeps = keeps;
        let process = self.processes[actor];
        if self.waits(process) {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        let place_ms = queues.then_some(PLACE_MS);
        let keeps = vec![];
        let plea =
            Plea { number, process, is_tied, claims, says_what_it_keeps, keeps, ttl_ms, place_ms };
        Some(self.ask_from_awake(plea))
    }

    /// Asks as a process that does not sleep in a queue, and so knows what it holds.
    fn ask_from_awake(&mut self, mut plea: Plea) -> Verdict {
        let own = self.line.living(State::Holding).filter(|one| {
            plea.says_what_it_keeps && one.process == plea.process && one.number != plea.number
        });
        plea.keeps = own.map(|one| one.number).collect();
        self.pleas.insert(plea.number, plea.clone());
        self.ask(&plea)
    }

    /// Whether this process sleeps in a queue.
    pub fn waits(&self, process: u32) -> bool {
        let mut waiting = self.line.requests.iter().filter(|one| one.state == State::Waiting);
        waiting.any(|one| one.process == process)
    }

    /// One of the requests whose process lives.
    fn pick_plea(&self, pick: &Index) -> Option<Plea> {
        let living = self.pleas.values().filter(|plea| self.processes.contains(&plea.process));
        pick_one(pick, living.cloned())
    }

    fn ask_again(&mut self, plea: &Plea) -> Option<Verdict> {
        let request = self.line.find(plea.number);
        let is_held = request.is_some_and(|one| {
            one.state == State::Holding
                && self.line.now_ms < one.until_ms
                && one.claims.len() == plea.claims.len()
        });
        let is_asleep = request.is_some_and(|one| one.state == State::Waiting);
        // A process that sleeps in a queue renews what it holds, and does nothing else.
        match self.waits(plea.process) {
            true if !is_held && !is_asleep => None,
            true => Some(self.ask(plea)),
            false => Some(self.ask_from_awake(plea.clone())),
        }
    }

    pub fn ask(&mut self, plea: &Plea) -> Verdict {
        self.forget_place_that_was_dropped(plea.number);
        let expected = self.line.ask(plea);
        self.excused.remove(&plea.number);
        let outcome = self.world.acquire(&to_ask(plea));
        let verdict = match &outcome {
            Outcome::Granted(grant) if grant.reason == Reason::AlreadyOwned => Verdict::Renewed,
            Outcome::Granted(_) => Verdict::Granted,
            Outcome::Busy { .. } => Verdict::Busy,
            Outcome::Waiting { .. } => Verdict::Waiting,
            Outcome::Deadlock(_) => Verdict::Deadlock,
        };
        assert_eq!(verdict, expected, "{plea:?} came to {outcome:?}");
        match &outcome {
            Outcome::Busy { blockers } | Outcome::Waiting { blockers, .. } => {
                assert!(!blockers.is_empty(), "nobody is in the way of {plea:?}");
            }
            Outcome::Granted(_) if verdict == Verdict::Granted => self.check_order(plea.number),
            Outcome::Granted(_) | Outcome::Deadlock(_) => {}
        }
        verdict
    }

    /// A place without a sign of life may be dropped by whoever looks, or may not.
    fn forget_place_that_was_dropped(&mut self, number: u32) {
        let Some(request) = self.line.find(number) else { return };
        if request.state == State::Waiting && !self.line.counts(request) {
            self.was_revived = true;
            if !self.world.queue().contains(&number) {
                self.line.remove(number);
            }
        }
    }

    /// Nobody who lives and came earlier is shut out by this grant.
    fn check_order(&self, number: u32) {
        let position = self.line.requests.iter().position(|one| one.number == number).unwrap();
        let granted = &self.line.requests[position];
        for earlier in &self.line.requests[..position] {
            let waits = earlier.state == State::Waiting && self.line.counts(earlier);
            assert!(!waits || !exclude(granted, earlier), "{granted:?} overtook {earlier:?}");
        }
    }

    pub fn release(&mut self, plea: &Plea) -> Option<Verdict> {
        let held = self.line.find(plea.number).filter(|one| one.state == State::Holding).cloned();
        let names: Vec<&str> = plea.claims.iter().map(|c| RESOURCES[c.resource].0).collect();
        let proof = Proof::Grant(grant_id(plea.number));
        let ended = match self.world.release_by(proof, Some(&names)) {
            Released::Ended(holds) => holds.len(),
            Released::NotHeld(_) => 0,
        };
        match held {
            Some(held) if self.line.counts(&held) => assert_eq!(ended, held.claims.len()),
            Some(held) => assert!(ended <= held.claims.len()),
            None => assert_eq!(ended, 0, "a late release changes nothing"),
        }
        if self.line.find(plea.number).is_some_and(|one| one.state == State::Holding) {
            self.line.remove(plea.number);
        }
        None
    }

    fn break_one(&mut self, pick: &Index) -> Option<Verdict> {
        let holds = self
            .line
            .living(State::Holding)
            .flat_map(|one| one.claims.iter().map(|claim| (one.number, *claim)));
        let (number, claim) = pick_one(pick, holds.collect::<Vec<_>>())?;
        let resource = RESOURCES[claim.resource].0;
        let key: Resource = resource.parse().unwrap();
        let stored = self.world.holds.iter().find(|stored| {
            stored.hold.grant == grant_id(number) && stored.hold.want.resource == key
        });
        let token = stored.unwrap().hold.token;
        assert!(self.world.break_hold(resource, token).is_some());
        assert!(self.world.last_was_durable);
        let request = self.line.requests.iter_mut().find(|one| one.number == number).unwrap();
        request.claims.retain(|other| *other != claim);
        if request.claims.is_empty() {
            self.line.remove(number);
        }
        None
    }

    fn leave_one(&mut self, pick: &Index) -> Option<Verdict> {
        let waiting: Vec<u32> = self.line.living(State::Waiting).map(|one| one.number).collect();
        let number = pick_one(pick, waiting)?;
        assert!(self.world.leave(number));
        self.line.remove(number);
        None
    }

    fn kill(&mut self, actor: usize) -> Option<Verdict> {
        let process = self.processes[actor];
        self.world.kill(process);
        self.line.dead.insert(process);
        self.processes[actor] += ACTORS as u32;
        None
    }

    pub fn pass(&mut self, ms: u64) -> Option<Verdict> {
        self.world.pass_ms(ms);
        self.line.now_ms = self.world.now_ms;
        None
    }

    fn reap(&mut self) -> Option<Verdict> {
        self.world.reap(None);
        let world = &self.world;
        assert!(world.holds.iter().all(|stored| world.hold_counts(stored)));
        assert!(world.waiters.iter().all(|stored| world.waiter_counts(stored)));
        None
    }

    /// Those who play a part now.
    pub fn lives(&self, process: u32) -> bool {
        self.processes.contains(&process)
    }

    pub fn check(&mut self, nobody_looked: bool) {
        self.check_records();
        self.check_places();
        let ready = self.line.ready();
        if nobody_looked {
            self.excused.extend(ready.difference(&self.ready));
        }
        self.excused.retain(|number| ready.contains(number));
        for number in &ready {
            let is_woken = self.world.pending.contains(&grant_id(*number));
            assert!(is_woken || self.excused.contains(number), "{number} sleeps on");
        }
        if self.world.view == View::Whole && !nobody_looked {
            for grant in &self.world.last_woken {
                assert!(ready.contains(&number_of(*grant)), "{grant:?} was woken for nothing");
            }
        }
        self.ready = ready;
    }

    /// Who holds what, and who waits in which order, as far as it counts.
    fn check_records(&self) {
        let world = &self.world;
        let holds = world.holds.iter().filter(|stored| world.hold_counts(stored));
        let mut held: Vec<(u32, String)> = holds
            .map(|stored| (number_of(stored.hold.grant), stored.hold.want.resource.to_string()))
            .collect();
        let mut expected: Vec<(u32, String)> = self
            .line
            .living(State::Holding)
            .flat_map(|one| one.claims.iter().map(|claim| (one.number, claim.resource)))
            .map(|(number, resource)| (number, RESOURCES[resource].0.to_owned()))
            .collect();
        held.sort();
        expected.sort();
        assert_eq!(held, expected, "who holds");

        let mut queue: Vec<_> =
            world.waiters.iter().filter(|stored| world.waiter_counts(stored)).collect();
        queue.sort_by_key(|stored| stored.waiter.ticket);
        let queue: Vec<u32> = queue.iter().map(|stored| number_of(stored.waiter.grant)).collect();
        let expected: Vec<u32> = self.line.living(State::Waiting).map(|one| one.number).collect();
        assert_eq!(queue, expected, "who waits, in order");
    }

    /// At no place there are more than the modes allow.
    fn check_places(&self) {
        for place in (0..8).map(|bit| 1 << bit) {
            let there: Vec<(u32, Mode)> = self
                .line
                .living(State::Holding)
                .flat_map(|one| one.claims.iter().map(|claim| (one.number, *claim)))
                .filter(|(_, claim)| claim.places() & place != 0)
                .map(|(number, claim)| (number, claim.mode))
                .collect();
            let crowd = there.iter().map(|(number, _)| number).collect::<BTreeSet<_>>().len();
            let fits = |(_, mode): &(u32, Mode)| match mode {
                Mode::Exclusive => crowd == 1,
                Mode::Shared => crowd == 1 || there.iter().all(|(_, other)| *other == Mode::Shared),
                Mode::Slot { of } => crowd == 1 || crowd <= *of as usize,
            };
            assert!(there.iter().all(fits), "at one place there are {there:?}");
        }
    }
}

fn pick_one<T: Clone>(pick: &Index, from: impl IntoIterator<Item = T>) -> Option<T> {
    let from: Vec<T> = from.into_iter().collect();
    (!from.is_empty()).then(|| pick.get(&from).clone())
}

fn to_ask(plea: &Plea) -> Ask {
    let wants: Vec<Want> = plea
        .claims
        .iter()
        .map(|claim| Want {
            resource: RESOURCES[claim.resource].0.parse().unwrap(),
            mode: claim.mode,
        })
        .collect();
    let ask = ask(plea.number, &wants).lasting_ms(plea.ttl_ms).keeping(&plea.keeps);
    let ask = if plea.is_tied { ask.by_process(plea.process) } else { ask.untied() };
    Ask { queue: plea.place_ms.map(Duration::from_millis), ..ask }
}
