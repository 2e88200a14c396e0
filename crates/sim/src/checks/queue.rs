//! Requests that stay are served in order, and what is given back is handed on at once.
//!
//! Only requests for one resource, used alone, are judged, and only while nothing went wrong for them:
//! a process that is stopped, cut off or answered late may lose its place or its turn.

use super::names::{HAND_OFF, ORDER};
use super::observer::Observer;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a hand-off may take in calm times. A wake that is lost is made up for after two seconds.
const HAND_OFF_MAX: Duration = Duration::from_millis(1000);

/// How long it must be calm before hand-offs are judged: what faults left behind has lapsed by then.
const SETTLED: Duration = Duration::from_secs(20);

struct Request {
    pid: u32,
    who: String,
    resource: String,
    sent: Duration,
    queued: Option<Duration>,
}

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
    /// A process asks for a resource.
    pub fn asks(&self, pid: u32, who: &str, resource: &str) -> Waiter {
        let sent = self.now();
        let mut state = self.state();
        let queues = &mut state.queues;
        queues.count += 1;
        let request =
            Request { pid, who: who.to_owned(), resource: resource.to_owned(), sent, queued: None };
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

    /// It was served.
    pub fn served(&self, waiter: Waiter) {
        let now = self.now();
        let (request, released) = {
            let mut state = self.state();
            let Some(request) = state.queues.requests.remove(&waiter.0) else { return };
            let released = state.queues.released.remove(&request.resource);
            (request, released)
        };
        let overtaken = {
            let state = self.state();
            let earlier = state.queues.requests.values().filter(|other| {
                other.resource == request.resource
                    && other.queued.is_some_and(|queued| queued < request.sent)
            });
            earlier.map(|other| (other.pid, other.who.clone(), other.sent)).collect::<Vec<_>>()
        };
        for (pid, who, sent) in overtaken {
            if self.undisturbed_since(pid, sent) {
                let resource = &request.resource;
                self.violation(
                    ORDER,
                    format!(
                        "{} gets {resource} before {who}, which waited when it came",
                        request.who
                    ),
                );
            }
        }
        let waited_before = |released: &Duration| request.queued.is_some_and(|at| at < *released);
        if let Some(released) = released.filter(waited_before)
            // Calm already when it was given back.
            && self.calm_for() > SETTLED + (now - released)
            && now - released > HAND_OFF_MAX
            && self.undisturbed_since(request.pid, request.sent)
        {
            let late = (now - released).as_millis();
            let text = format!(
                "{} gets {} {late} ms after it was given back",
                request.who, request.resource
            );
            self.violation(HAND_OFF, text);
        }
    }

    /// A request that may give up by itself was served: what was given back is held again.
    pub fn taken(&self, resource: &str) {
        self.state().queues.released.remove(resource);
    }

    /// A holder was told that it gave this back. The next one may have been told earlier.
    pub fn released(&self, resource: &str) {
        if !self.users_alone(resource).is_empty() {
            return;
        }
        let now = self.now();
        self.state().queues.released.insert(resource.to_owned(), now);
    }
}
