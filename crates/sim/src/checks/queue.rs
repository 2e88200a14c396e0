//! Requests that stay are served in order, and what is given back is handed on at once.
//!
//! A request may go first only if those that waited when it came could be served beside it. Only requests
//! for which nothing went wrong are judged: a process that is stopped, cut off or answered late may lose
//! its place or its turn. Hand-offs are judged for the lock `q`, which is always asked for alone.

use super::exclusion::{Held, Use, overlap};
use super::names::{HAND_OFF, ORDER};
use super::observer::Observer;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a hand-off may take in calm times. A wake that is lost is made up for after two seconds.
const HAND_OFF_MAX: Duration = Duration::from_millis(1000);

/// How long it must be calm before hand-offs are judged: what faults left behind has lapsed by then.
const SETTLED: Duration = Duration::from_secs(20);

#[derive(Clone)]
struct Request {
    pid: u32,
    who: String,
    wanted: Vec<Held>,
    sent: Duration,
    /// When it gives up by itself.
    until: Option<Duration>,
    queued: Option<Duration>,
}

impl Request {
    /// Whether it has had a place since before another was sent, and surely has it still.
    fn waited_at(&self, sent: Duration, now: Duration) -> bool {
        self.queued.is_some_and(|queued| queued < sent)
            && self.until.is_none_or(|until| now < until)
    }

    fn names(&self) -> String {
        self.wanted.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
    }
}

/// How much earlier than it says a request may give up, as a divisor of its wait: its clock drifts by up
/// to a fiftieth, and it stops waiting before it says so.
const EARLY: u32 = 10;

/// The lock whose hand-offs are judged.
const HANDED_ON: &str = "q";

/// All requests that have not been served yet.
#[derive(Default)]
pub struct Queues {
    requests: BTreeMap<u64, Request>,
    count: u64,
    /// When each resource was last given back, as far as its holder was told so.
    released: BTreeMap<String, Duration>,
}

/// The number of a request.
#[derive(Clone, Copy)]
pub struct Waiter(u64);

impl Observer {
    /// A process asks for something, and gives up by itself after `patience`, if that is given.
    pub fn asks(&self, pid: u32, who: &str, wanted: &[Held], patience: Option<Duration>) -> Waiter {
        let sent = self.now();
        let until = patience.map(|patience| sent + patience - patience / EARLY);
        let (who, wanted) = (who.to_owned(), wanted.to_vec());
        let mut state = self.state();
        let queues = &mut state.queues;
        queues.count += 1;
        let request = Request { pid, who, wanted, sent, until, queued: None };
        queues.requests.insert(queues.count, request);
        Waiter(queues.count)
    }

    /// It was told that it waits.
    pub fn waits(&self, waiter: Waiter) {
        let now = self.now();
        let mut state = self.state();
        if let Some(request) = state.queues.requests.get_mut(&waiter.0) {
            request.queued.get_or_insert(now);
        }
    }

    /// It does not want it any more.
    pub fn gives_up(&self, waiter: Waiter) {
        self.state().queues.requests.remove(&waiter.0);
    }

    /// All requests of a process that ended are gone.
    pub fn gives_up_all(&self, pid: u32) {
        self.state().queues.requests.retain(|_, request| request.pid != pid);
    }

    /// It was served. It may be among the holders already.
    pub fn served(&self, waiter: Waiter) {
        let now = self.now();
        let (request, earlier) = {
            let mut state = self.state();
            let Some(request) = state.queues.requests.remove(&waiter.0) else { return };
            let others = state.queues.requests.values();
            let earlier = others.filter(|other| other.waited_at(request.sent, now));
            (request.clone(), earlier.cloned().collect::<Vec<_>>())
        };
        let earlier = earlier.into_iter().filter(|one| self.undisturbed_since(one.pid, one.sent));
        self.judge_order(&request, &earlier.collect::<Vec<_>>());
        self.judge_hand_off(&request, now);
    }

    /// Those that waited when this request came must have room beside it.
    fn judge_order(&self, request: &Request, earlier: &[Request]) {
        for (name, usage) in &request.wanted {
            let waiting: Vec<(&str, Use)> = earlier
                .iter()
                .flat_map(|one| one.wanted.iter().map(move |(name, usage)| (one, name, *usage)))
                .filter(|(_, other, _)| overlap(name, other))
                .map(|(one, _, usage)| (one.who.as_str(), usage))
                .collect();
            let overtaken = match usage {
                Use::Alone => waiting.first(),
                Use::Shared => waiting.iter().find(|(_, usage)| *usage != Use::Shared),
                Use::OneOf(most) => {
                    let used = self.users(name).max(1);
                    waiting.first().filter(|_| used + waiting.len() > *most)
                }
            };
            if let Some((who, _)) = overtaken {
                let text =
                    format!("{} gets {name} before {who}, which waited when it came", request.who);
                self.violation(ORDER, text);
                return;
            }
        }
    }

    fn judge_hand_off(&self, request: &Request, now: Duration) {
        let Some(released) = self.state().queues.released.remove(&request.names()) else { return };
        let waited_before = request.queued.is_some_and(|at| at < released);
        if waited_before
            // Calm already when it was given back.
            && self.calm_for() > SETTLED + (now - released)
            && now - released > HAND_OFF_MAX
            && self.undisturbed_since(request.pid, request.sent)
        {
            let late = (now - released).as_millis();
            let names = request.names();
            let text = format!("{} gets {names} {late} ms after it was given back", request.who);
            self.violation(HAND_OFF, text);
        }
    }

    /// A holder was told that it gave this back. The next one may have been told earlier.
    pub fn released(&self, resource: &str) {
        if resource != HANDED_ON || !self.users_alone(resource).is_empty() {
            return;
        }
        let now = self.now();
        self.state().queues.released.insert(resource.to_owned(), now);
    }
}
