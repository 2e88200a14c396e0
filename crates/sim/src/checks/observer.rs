//! Where programs say what they observe.

use super::events::EventChecks;
use super::exclusion::Holders;
use super::notes::Notes;
use super::queue::Queues;
use super::tasks::TaskChecks;
use crate::history::{History, Violation};
use crate::machines::Machines;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// Takes note of all that is observed, and judges it.
pub struct Observer {
    /// Whose time it is.
    pub machines: Arc<Machines>,
    state: Mutex<State>,
}

/// What was observed so far.
#[derive(Default)]
pub struct State {
    pub(super) history: History,
    pub(super) violations: Vec<Violation>,
    pub(super) holders: Holders,
    pub(super) queues: Queues,
    pub(super) tasks: TaskChecks,
    pub(super) notes: Notes,
    pub(super) events: EventChecks,
    pub(super) acquisitions: u64,
    faults: u64,
    /// When something last went wrong for a process that may cost it its place in a queue.
    disturbed: BTreeMap<u32, Duration>,
    /// From when on nothing goes wrong any more, once that is so.
    calm_since: Option<Duration>,
}

impl Observer {
    /// Observes processes of these machines.
    pub fn new(machines: Arc<Machines>, history: History) -> Arc<Observer> {
        let state = State { history, ..State::default() };
        Arc::new(Observer { machines, state: Mutex::new(state) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The time that only the simulation knows.
    pub fn now(&self) -> Duration {
        self.machines.true_time()
    }

    /// Adds a line to the history.
    pub fn say(&self, who: &str, text: impl Display) {
        let now = self.now();
        self.state().history.add(now, who, text);
    }

    /// Takes note of a broken promise.
    pub fn violation(&self, checker: &'static str, text: String) {
        self.say("VIOLATION", format_args!("{checker}: {text}"));
        let at = self.now();
        self.state().violations.push(Violation { checker, at, text });
    }

    /// Counts a fault and adds it to the history.
    pub fn fault(&self, who: &str, text: impl Display) {
        self.state().faults += 1;
        self.say(who, text);
    }

    /// Something went wrong for this process: it may have lost its place in a queue.
    pub fn disturb(&self, pid: u32) {
        let now = self.now();
        self.state().disturbed.insert(pid, now);
    }

    /// Whether nothing went wrong for this process since then.
    pub(super) fn undisturbed_since(&self, pid: u32, since: Duration) -> bool {
        self.state().disturbed.get(&pid).is_none_or(|at| *at < since)
    }

    /// From now on nothing goes wrong.
    pub fn calm(&self) {
        let now = self.now();
        self.state().calm_since = Some(now);
    }

    /// Since how long nothing has gone wrong.
    pub fn calm_for(&self) -> Duration {
        let now = self.now();
        self.state().calm_since.map_or(Duration::ZERO, |since| now - since)
    }

    /// Whether a promise was broken so far.
    pub fn has_violation(&self) -> bool {
        !self.state().violations.is_empty()
    }

    /// What was observed: the history, the broken promises, and the counts of acquisitions and faults.
    pub fn finish(&self) -> (History, Vec<Violation>, u64, u64) {
        for text in self.machines.take_panics() {
            self.violation(super::names::PANIC, text);
        }
        let mut state = self.state();
        let history = std::mem::take(&mut state.history);
        let violations = std::mem::take(&mut state.violations);
        (history, violations, state.acquisitions, state.faults)
    }
}
