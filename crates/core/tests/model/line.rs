//! What should come of each step: one ordered list of requests, judged by brute force.

use std::collections::BTreeSet;
use std::fmt;
use tenure_core::Mode;

/// The resources of these tests, each with the places that it covers, one bit per place.
pub const RESOURCES: [(&str, u8); 7] = [
    ("a", 0b00001),
    ("b", 0b00010),
    ("path:src/**", 0b01100),
    ("path:src/x", 0b00100),
    ("path:src/y", 0b01000),
    ("path:*/x", 0b10100),
    ("path:docs/x", 0b10000),
];

/// One resource of a request: which of [`RESOURCES`], and how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub resource: usize,
    pub mode: Mode,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", RESOURCES[self.resource].0, self.mode)
    }
}

impl Claim {
    pub fn places(self) -> u8 {
        RESOURCES[self.resource].1
    }

    fn meets(self, other: Claim) -> bool {
        self.places() & other.places() != 0
    }

    /// Whether the two can never hold at the same time.
    pub fn excludes(self, other: Claim) -> bool {
        let never = match (self.mode, other.mode) {
            (Mode::Shared, Mode::Shared) => false,
            (Mode::Slot { of: one }, Mode::Slot { of: two }) => one == 1 || two == 1,
            _ => true,
        };
        never && self.meets(other)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Holding,
    Waiting,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub number: u32,
    /// The process that asks; it may be unknown to witnesses.
    pub process: u32,
    pub is_tied: bool,
    /// What it waits for, or what it still holds.
    pub claims: Vec<Claim>,
    pub keeps: Vec<u32>,
    pub state: State,
    pub until_ms: u64,
}

/// A request as it is made.
#[derive(Clone, Debug)]
pub struct Plea {
    pub number: u32,
    pub process: u32,
    pub is_tied: bool,
    pub claims: Vec<Claim>,
    /// Whether it says what it keeps while it waits.
    pub says_what_it_keeps: bool,
    pub keeps: Vec<u32>,
    pub ttl_ms: u64,
    pub place_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Granted,
    Renewed,
    Busy,
    Waiting,
    Deadlock,
}

/// All requests in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub now_ms: u64,
    pub dead: BTreeSet<u32>,
    pub requests: Vec<Request>,
}

impl Line {
    pub fn counts(&self, request: &Request) -> bool {
        let is_dead = request.is_tied && self.dead.contains(&request.process);
        self.now_ms < request.until_ms && !is_dead
    }

    pub fn find(&self, number: u32) -> Option<&Request> {
        self.requests.iter().find(|request| request.number == number)
    }

    fn position(&self, number: u32) -> Option<usize> {
        self.requests.iter().position(|request| request.number == number)
    }

    pub fn remove(&mut self, number: u32) {
        self.requests.retain(|request| request.number != number);
    }

    pub fn living(&self, state: State) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |one| one.state == state && self.counts(one))
    }

    /// All that stands before whoever came at this position: holders, and those who came earlier.
    fn before(&self, position: usize, number: u32) -> impl Iterator<Item = &Request> {
        self.requests.iter().enumerate().filter_map(move |(index, one)| {
            let stands_before = one.state == State::Holding || index < position;
            (one.number != number && stands_before && self.counts(one)).then_some(one)
        })
    }

    fn can_go_from(&self, position: usize, number: u32, claims: &[Claim]) -> bool {
        claims.iter().all(|claim| {
            let met: Vec<Mode> = self
                .before(position, number)
                .flat_map(|one| &one.claims)
                .filter(|other| claim.meets(**other))
                .map(|other| other.mode)
                .collect();
            has_room(claim.mode, met)
        })
    }

    pub fn can_go(&self, number: u32) -> bool {
        self.position(number).is_some_and(|position| {
            self.can_go_from(position, number, &self.requests[position].claims)
        })
    }

    /// The living waiters who would be granted if they asked now.
    pub fn ready(&self) -> BTreeSet<u32> {
        let numbers = self.living(State::Waiting).map(|one| one.number);
        numbers.filter(|number| self.can_go(*number)).collect()
    }

    pub fn ask(&mut self, plea: &Plea) -> Verdict {
        if let Some(held) = self.find(plea.number).filter(|one| one.state == State::Holding) {
            if self.now_ms < held.until_ms && held.claims.len() == plea.claims.len() {
                self.enter(plea, State::Holding, plea.ttl_ms);
                return Verdict::Renewed;
            }
            self.remove(plea.number);
        }
        let position = self.position(plea.number);
        if self.can_go_from(position.unwrap_or(usize::MAX), plea.number, &plea.claims) {
            self.enter(plea, State::Holding, plea.ttl_ms);
            return Verdict::Granted;
        }
        let Some(place_ms) = plea.place_ms else { return Verdict::Busy };
        if position.is_none() && self.would_never_end(plea) {
            return Verdict::Deadlock;
        }
        self.enter(plea, State::Waiting, place_ms);
        Verdict::Waiting
    }

    /// Takes the place that the request has, or the last one.
    fn enter(&mut self, plea: &Plea, state: State, ms: u64) {
        let request = Request {
            number: plea.number,
            process: plea.process,
            is_tied: plea.is_tied,
            claims: plea.claims.clone(),
            keeps: plea.keeps.clone(),
            state,
            until_ms: self.now_ms + ms,
        };
        match self.position(plea.number) {
            Some(position) => self.requests[position] = request,
            None => self.requests.push(request),
        }
    }

    fn would_never_end(&self, plea: &Plea) -> bool {
        let gives_up_all = Plea { keeps: vec![], ..plea.clone() };
        self.is_stuck_with(plea) && !self.is_stuck_with(&gives_up_all)
    }

    /// Lets everybody finish who can, again and again, until nothing moves: holders whom nobody
    /// keeps, and waiters before whom nobody stands in the way.
    fn is_stuck_with(&self, plea: &Plea) -> bool {
        let mut line = self.clone();
        line.enter(plea, State::Waiting, 1);
        line.requests = line.requests.iter().filter(|one| line.counts(one)).cloned().collect();
        while let Some(number) =
            line.requests.iter().find(|one| line.can_end(one)).map(|o| o.number)
        {
            line.remove(number);
        }
        line.find(plea.number).is_some()
    }

    fn can_end(&self, request: &Request) -> bool {
        match request.state {
            State::Holding => !self
                .requests
                .iter()
                .any(|one| one.state == State::Waiting && one.keeps.contains(&request.number)),
            State::Waiting => {
                let position = self.position(request.number).unwrap();
                !self.before(position, request.number).any(|one| exclude(request, one))
            }
        }
    }
}

pub fn exclude(one: &Request, other: &Request) -> bool {
    one.claims.iter().any(|mine| other.claims.iter().any(|theirs| mine.excludes(*theirs)))
}

/// Whether one more of this mode may join these.
fn has_room(mode: Mode, others: Vec<Mode>) -> bool {
    let slots: Vec<usize> = others
        .iter()
        .chain([&mode])
        .filter_map(|mode| match mode {
            Mode::Slot { of } => Some(*of as usize),
            _ => None,
        })
        .collect();
    let crowd = others.len() + 1;
    let all_read = mode == Mode::Shared && others.iter().all(|other| *other == Mode::Shared);
    let all_have_slots = slots.len() == crowd && slots.iter().all(|of| crowd <= *of);
    others.is_empty() || all_read || all_have_slots
}
