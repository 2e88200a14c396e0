//! A tiny store for the tests of the rules: time and death come by hand, every change is checked.
//!
//! [`World`] does what a store owes the rules and nothing more. It holds the records, shows them in
//! one of several [`View`]s, numbers the events, and applies what a rule decided. Each step asserts
//! what must never happen, so that a test need only say what should.

mod asks;
mod checks;
mod dead;
mod show;
mod show_tasks;
mod task_checks;
pub mod tasks;
mod verbs;

pub use asks::{AskExt, PLACE_MS, TTL_MS, ask, exclusive, grant_id, number_of, shared, slot};
pub use dead::{Dead, evidence_of};
pub use show::View;

use std::collections::BTreeSet;
use std::fmt::Debug;
use tenure_core::act::Act;
use tenure_core::{
    Change, Decision, GrantId, Hold, NewEvent, Resource, Scope, Section, SmallRecord, Snapshot,
    Task, Token, Waiter, Witness, Write,
};

/// All records, the time, who is dead, and what was recorded.
#[derive(Clone)]
pub struct World {
    pub view: View,
    pub now_ms: u64,
    pub dead: Dead,
    pub holds: Vec<StoredHold>,
    pub waiters: Vec<StoredWaiter>,
    /// In the order of their ages.
    pub tasks: Vec<Task>,
    /// Those that were described.
    pub sections: Vec<Section>,
    /// In the order in which they were written.
    pub records: Vec<SmallRecord>,
    /// How often a task may be taken back before it is set aside.
    pub recoveries_max: u32,
    /// The n-th event has the revision n + 1.
    pub events: Vec<NewEvent>,
    /// Who was woken and has not asked since.
    pub pending: BTreeSet<GrantId>,
    /// Who the last change woke, in the order given.
    pub last_woken: Vec<GrantId>,
    pub last_was_durable: bool,
    /// How often a rule asked to look wider.
    pub wider_looks: usize,
    /// Grants of one owner, which may hold beside each other.
    pub of_one_owner: BTreeSet<GrantId>,
    /// Who holds according to the events alone.
    replayed: Vec<(Resource, Token, String)>,
    events_read: usize,
}

#[derive(Clone)]
pub struct StoredHold {
    pub hold: Hold,
    pub since_ms: u64,
    pub deadline_ms: u64,
}

#[derive(Clone)]
pub struct StoredWaiter {
    pub waiter: Waiter,
    pub since_ms: u64,
    pub deadline_ms: u64,
    pub woken_ms: Option<u64>,
}

impl World {
    pub fn new(view: View) -> World {
        World {
            view,
            now_ms: 1_000,
            dead: Dead::default(),
            holds: vec![],
            waiters: vec![],
            tasks: vec![],
            sections: vec![],
            records: vec![],
            recoveries_max: 3,
            events: vec![],
            pending: BTreeSet::new(),
            last_woken: vec![],
            last_was_durable: false,
            wider_looks: 0,
            of_one_owner: BTreeSet::new(),
            replayed: vec![],
            events_read: 0,
        }
    }

    pub fn pass_ms(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    pub fn kill(&mut self, process: u32) {
        self.dead.0.insert(process);
    }

    /// Decides an act as a store does.
    pub fn act<A: Act>(&mut self, act: &A) -> A::Answer
    where
        A::Answer: Debug + PartialEq,
    {
        let mut scope = act.scope();
        if A::LOOKS_FIRST {
            let (decision, answer) = act.decide(&self.show(&scope), &self.dead);
            if decision == Decision::Nothing {
                return answer;
            }
            scope = act.scope_after_look(&answer);
        }
        self.transact(&scope, |seen, witness| act.decide(seen, witness))
    }

    /// Shows, lets the rule choose, applies.
    pub fn transact<T: Debug + PartialEq>(
        &mut self,
        scope: &Scope,
        rule: impl Fn(&Snapshot, &dyn Witness) -> (Decision, T),
    ) -> T {
        let mut seen = self.show(scope);
        let decided = rule(&seen, &self.dead);
        assert_eq!(decided, rule(&seen, &self.dead), "a rule is a pure function");
        let (mut decision, mut answer) = decided;
        let mut scope = scope.clone();
        while let Some(wider) = wider(&decision) {
            assert!(!seen.whole, "there is nothing wider than everything");
            assert_ne!(wider, scope, "this was shown");
            assert!(!matches!(scope, Scope::Tasks(_)), "what is shown of tasks settles it");
            self.wider_looks += 1;
            seen = self.show(&wider);
            (decision, answer) = rule(&seen, &self.dead);
            scope = wider;
        }
        self.last_woken.clear();
        self.last_was_durable = false;
        if let Decision::Write(change) = decision {
            let outside = change.writes.iter().find(|write| !scope.admits(write, &seen));
            assert_eq!(outside, None, "a write outside {scope:?}");
            self.check_change(&seen, &change);
            self.apply(change);
        }
        self.check_state();
        self.check_tasks();
        answer
    }

    fn apply(&mut self, change: Change) {
        for write in change.writes {
            self.write(write);
        }
        for event in change.events {
            self.replay(&event);
            self.events.push(event);
        }
        let waiting: BTreeSet<GrantId> = self.waiters.iter().map(|s| s.waiter.grant).collect();
        self.pending.retain(|grant| waiting.contains(grant));
        self.pending.extend(&change.wake);
        self.last_woken = change.wake;
        self.last_was_durable = change.durable;
    }

    fn write(&mut self, write: Write) {
        let since_ms = self.now_ms;
        match write {
            Write::Hold(hold) => {
                let deadline_ms = since_ms + hold.ttl.as_millis() as u64;
                self.holds.push(StoredHold { hold, since_ms, deadline_ms });
            }
            Write::Extend { resource, grant, ttl, operation } => {
                let index = self.hold_index(&resource, grant);
                self.holds[index].hold.ttl = ttl;
                if operation.is_some() {
                    self.holds[index].hold.operation = operation;
                }
                self.holds[index].deadline_ms = since_ms + ttl.as_millis() as u64;
            }
            Write::DropHold { resource, grant } => {
                let index = self.hold_index(&resource, grant);
                self.holds.remove(index);
            }
            Write::Wait(waiter) => {
                let deadline_ms = since_ms + waiter.ttl.as_millis() as u64;
                self.waiters.push(StoredWaiter { waiter, since_ms, deadline_ms, woken_ms: None });
            }
            Write::KeepPlace(waiter) => {
                let index = self.waiter_index(waiter.ticket);
                self.waiters[index].deadline_ms = since_ms + waiter.ttl.as_millis() as u64;
                self.waiters[index].woken_ms = None;
            }
            Write::Woken(waiter) => {
                let index = self.waiter_index(waiter.ticket);
                self.waiters[index].woken_ms = Some(since_ms);
            }
            Write::DropWait(waiter) => {
                let index = self.waiter_index(waiter.ticket);
                self.waiters.remove(index);
            }
            Write::Task(task) => {
                self.tasks.retain(|other| other.id != task.id);
                self.tasks.push(*task);
                self.tasks.sort_by_key(|task| task.age);
            }
            Write::DropTask(id) => self.tasks.retain(|task| task.id != id),
            Write::Section(section) => {
                self.sections.retain(|other| other.name != section.name);
                self.sections.push(section);
            }
            Write::PutRecord(record) => {
                self.records.retain(|old| (old.kind, &old.key) != (record.kind, &record.key));
                self.records.push(record);
            }
            Write::DropRecords(range) => {
                self.records.retain(|record| !range.has(record.kind, &record.key));
            }
            other => unreachable!("no rule of these tests writes {other:?}"),
        }
    }

    fn hold_index(&self, resource: &Resource, grant: GrantId) -> usize {
        let is_it = |stored: &StoredHold| {
            (&stored.hold.want.resource, stored.hold.grant) == (resource, grant)
        };
        self.holds.iter().position(is_it).expect("a rule writes only to holds that are there")
    }

    fn waiter_index(&self, ticket: u64) -> usize {
        let place = self.waiters.iter().position(|stored| stored.waiter.ticket == ticket);
        place.expect("a rule writes only to places that are there")
    }
}

/// Runs a test in each way of showing: what comes of a request must not depend on it.
pub fn in_every_view(test: impl Fn(&mut World)) {
    for view in View::ALL {
        let _says_which = SaysWhich(view);
        test(&mut World::new(view));
    }
}

struct SaysWhich(View);

impl Drop for SaysWhich {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "part of a test's failure")]
            {
                eprintln!("the view was {:?}", self.0);
            }
        }
    }
}

/// The scope that a rule asks for instead of deciding.
fn wider(decision: &Decision) -> Option<Scope> {
    match decision {
        Decision::NeedAll => Some(Scope::Everything),
        Decision::Need(scope) => Some(scope.clone()),
        Decision::Nothing | Decision::Write(_) => None,
    }
}
