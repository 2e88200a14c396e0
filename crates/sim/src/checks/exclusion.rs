//! Holders that trust their lease never overlap, and their tokens rise.

use super::names::{CONFIRM, EXCLUSION, FENCE, LOOK, TOKENS, VERIFY};
use super::observer::Observer;
use crate::machines::Run;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{GrantId, VerifyAnswer};
use tenure::world::Clock;
use tenure::{Guard, Lease, Work};

/// How something is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// By one alone.
    Alone,
    /// By any number of readers.
    Shared,
    /// By at most so many.
    OneOf(usize),
}

/// What a program holds: a resource as it was written, and how it is used.
pub type Held = (String, Use);

/// Something whose holder can say at any moment whether it trusts it.
#[derive(Clone)]
pub enum Trusted {
    /// A guard.
    Guard(Arc<Guard>),
    /// A claimed task.
    Work(Arc<Work>),
    /// A lease that is renewed by hand.
    Lease(Arc<HandHeld>),
}

/// A lease without a guard: its holder looks at its clock before it acts.
pub struct HandHeld {
    /// What was obtained.
    pub lease: Lease,
    /// Until when it may be trusted; zero once it is given up.
    pub trusted_until: Mutex<Duration>,
    /// The clock by which that is counted.
    pub clock: Arc<dyn Clock>,
}

impl Trusted {
    fn is_held(&self) -> bool {
        match self {
            Trusted::Guard(guard) => guard.is_held(),
            Trusted::Work(work) => work.is_held(),
            Trusted::Lease(held) => *held.trusted_until.lock() > held.clock.now_with_suspend(),
        }
    }

    fn lease(&self) -> Duration {
        match self {
            Trusted::Guard(guard) => guard.lease().ttl,
            Trusted::Work(work) => work.lease().ttl,
            Trusted::Lease(held) => held.lease.ttl,
        }
    }

    fn grant(&self) -> GrantId {
        match self {
            Trusted::Guard(guard) => guard.grant(),
            Trusted::Work(work) => work.lease().grant,
            Trusted::Lease(held) => held.lease.grant,
        }
    }

    fn token(&self) -> u64 {
        match self {
            Trusted::Guard(guard) => guard.token().0,
            Trusted::Work(work) => work.lease().token.0,
            Trusted::Lease(held) => held.lease.token.0,
        }
    }
}

struct Entry {
    pid: u32,
    who: String,
    held: Vec<Held>,
    trusted: Trusted,
}

/// A hold that an operator broke.
struct Break {
    resource: String,
    /// When the store said that it broke it, if it did.
    at: Option<Duration>,
}

/// All that is held now, as its holders see it.
#[derive(Default)]
pub struct Holders {
    entries: BTreeMap<u64, Entry>,
    count: u64,
    /// Holds that an operator broke, by token: their holders learn of it a little later.
    broken: BTreeMap<u64, Vec<Break>>,
    /// Parts of claims that an operator broke, each with the process whose claims it went with.
    broken_parts: BTreeSet<(String, u32)>,
    /// Pairs that were reported already.
    reported: BTreeSet<(u64, u64)>,
    /// Which holder got each token of a resource.
    given: BTreeMap<(String, u64), GrantId>,
    /// The highest token of those that used a resource alone, and of all.
    highest: BTreeMap<String, (u64, u64)>,
    /// The highest token with which each guarded thing was written.
    written: BTreeMap<String, u64>,
}

impl Holders {
    /// Every resource and token that a program was told it holds.
    pub(super) fn observed(&self) -> impl Iterator<Item = &(String, u64)> {
        self.given.keys()
    }

    fn has_broken_part(&self, pid: u32, held: &[Held]) -> bool {
        let mut broken = self.broken_parts.iter().filter(|(_, of)| *of == pid);
        broken.any(|(part, _)| held.iter().any(|(name, _)| name == part))
    }

    /// The breaks of any of this with this token.
    fn breaks_of<'a>(
        &'a self,
        held: &'a [Held],
        token: u64,
    ) -> impl Iterator<Item = &'a Break> + 'a {
        let broken = self.broken.get(&token).into_iter().flatten();
        broken.filter(|broken| held.iter().any(|(name, _)| *name == broken.resource))
    }
}

/// The files that a path covers, of those that there are: written down here so that the check does not
/// depend on how the code compares globs.
fn files(path: &str) -> &'static [&'static str] {
    match path {
        "path:src/**" => &["src/a.rs", "src/b.rs", "src/deep/c.rs"],
        "path:src/*.rs" => &["src/a.rs", "src/b.rs"],
        "path:src/a.rs" => &["src/a.rs"],
        "path:src/deep/**" => &["src/deep/c.rs"],
        "path:docs/**" => &["docs/x.md", "docs/y.md"],
        "path:docs/x.md" => &["docs/x.md"],
        _ => panic!("the checker does not know what {path} covers"),
    }
}

/// Whether what uses one of these is in the way of what uses the other.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    match one.starts_with("path:") && other.starts_with("path:") {
        true => files(one).iter().any(|file| files(other).contains(file)),
        false => one == other,
    }
}

impl Entry {
    /// Whether its holder would act on it now, if its process ran.
    fn is_trusted(&self, observer: &Observer, holders: &Holders) -> bool {
        observer.machines.run_of(self.pid) != Run::Ended
            && holders.breaks_of(&self.held, self.trusted.token()).next().is_none()
            && !holders.has_broken_part(self.pid, &self.held)
            && self.trusted.is_held()
    }

    fn uses_alone(&self, resource: &str) -> bool {
        self.held.iter().any(|(name, usage)| name == resource && *usage == Use::Alone)
    }

    /// Whether its holder trusts it a whole lease after it was broken: a renewal was accepted since.
    fn outlives_break(&self, observer: &Observer, holders: &Holders) -> Option<String> {
        let token = self.trusted.token();
        let at = holders.breaks_of(&self.held, token).find_map(|broken| broken.at)?;
        let lasted = observer.now() - at;
        let is_late = lasted > self.trusted.lease() + self.trusted.lease() / 10;
        let lives = observer.machines.run_of(self.pid) != Run::Ended;
        (is_late && lives && self.trusted.is_held())
            .then(|| format!("{} trusts token {token} {lasted:?} after it was broken", self.who))
    }
}

/// Says that a program holds something, for as long as this lives.
pub struct Registered {
    observer: Arc<Observer>,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let entry = self.observer.state().holders.entries.remove(&self.number);
        // What it held may be dropped with it, which must not happen under the lock.
        drop(entry);
    }
}

impl Observer {
    /// A program of this process was told that it holds this.
    pub fn holds(
        self: &Arc<Self>,
        pid: u32,
        who: &str,
        held: Vec<Held>,
        trusted: Trusted,
    ) -> Registered {
        let (grant, token) = (trusted.grant(), trusted.token());
        let is_broken = {
            let state = self.state();
            let holders = &state.holders;
            holders.breaks_of(&held, token).next().is_some() || holders.has_broken_part(pid, &held)
        };
        let is_trusted = trusted.is_held() && !is_broken;
        let names: Vec<&str> = held.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(" ");
        self.say(who, format_args!("holds {names} token={token} trusted={is_trusted}"));
        for (name, usage) in held.iter().filter(|(name, _)| !name.starts_with("section:")) {
            self.note_token(name, *usage, grant, token, is_trusted, who);
        }
        let held_now = trusted.clone();
        let number = {
            let mut state = self.state();
            state.acquisitions += 1;
            let holders = &mut state.holders;
            holders.count += 1;
            let entry = Entry { pid, who: who.to_owned(), held, trusted };
            holders.entries.insert(holders.count, entry);
            holders.count
        };
        self.starts(who, &names, &held_now);
        self.audit_pairs(Some(number));
        Registered { observer: self.clone(), number }
    }

    /// A program is handed this as held, or starts something under it.
    pub fn starts(&self, who: &str, names: &str, trusted: &Trusted) {
        if !trusted.is_held() {
            let token = trusted.token();
            self.violation(LOOK, format!("{who} has {names} token={token}, whose lease is over"));
        }
    }

    fn note_token(
        &self,
        name: &str,
        usage: Use,
        grant: GrantId,
        token: u64,
        is_trusted: bool,
        who: &str,
    ) {
        let (before, highest) = {
            let mut state = self.state();
            let before = *state.holders.given.entry((name.to_owned(), token)).or_insert(grant);
            (before, state.holders.highest.get(name).copied().unwrap_or_default())
        };
        if before != grant {
            self.violation(TOKENS, format!("{name} token={token} was given twice, now to {who}"));
        }
        // An answer that came too late to be trusted may be overtaken by later ones.
        if !is_trusted {
            return;
        }
        let (alone, all) = highest;
        let last = if usage == Use::Alone { all } else { alone };
        if token < last {
            let text = format!("{who} has {name} with token {token} after token {last}");
            self.violation(TOKENS, text);
        }
        let alone = if usage == Use::Alone { alone.max(token) } else { alone };
        self.state().holders.highest.insert(name.to_owned(), (alone, all.max(token)));
    }

    /// Looks whether holders that trust their lease exclude each other now.
    pub fn audit(&self) {
        self.audit_pairs(None);
    }

    /// The same for all pairs, or for those with this entry: the others were looked at before.
    fn audit_pairs(&self, only: Option<u64>) {
        let mut found = Vec::new();
        {
            let mut state = self.state();
            let holders = &state.holders;
            // Their locks are their own: whether they trust is asked without the observer's.
            let now: Vec<(u64, &Entry)> = holders
                .entries
                .iter()
                .filter(|(_, entry)| entry.is_trusted(self, holders))
                .map(|(number, entry)| (*number, entry))
                .collect();
            for (index, (number, entry)) in now.iter().enumerate() {
                for (other_number, other) in &now[index + 1..] {
                    if only.is_some_and(|only| only != *number && only != *other_number) {
                        continue;
                    }
                    if let Some(what) = conflict(entry, other, &now) {
                        found.push((*number, *other_number, what));
                    }
                }
            }
            for (number, entry) in &holders.entries {
                if let Some(what) = entry.outlives_break(self, holders) {
                    found.push((*number, *number, what));
                }
            }
            let reported = &mut state.holders.reported;
            found.retain(|(one, other, _)| reported.insert((*one, *other)));
        }
        for (_, _, what) in found {
            self.violation(EXCLUSION, what);
        }
    }

    fn is_broken(&self, resource: &str, token: u64) -> bool {
        let state = self.state();
        let mut broken = state.holders.broken.get(&token).into_iter().flatten();
        broken.any(|broken| broken.resource == resource)
    }

    /// An operator is about to break this hold: its holder learns of it later.
    pub fn breaks(&self, resource: &str, token: u64) {
        let broken = Break { resource: resource.to_owned(), at: None };
        self.state().holders.broken.entry(token).or_default().push(broken);
    }

    /// An operator is about to break a part of the claims of this process.
    pub fn breaks_part(&self, resource: &str, pid: u32) {
        self.state().holders.broken_parts.insert((resource.to_owned(), pid));
    }

    /// The store said that this hold is broken.
    pub fn broke(&self, resource: &str, token: u64) {
        let now = self.now();
        let mut state = self.state();
        let broken = state.holders.broken.get_mut(&token).into_iter().flatten();
        broken
            .filter(|broken| broken.resource == resource)
            .for_each(|broken| broken.at = Some(now));
    }

    /// A program writes to what a resource guards; what is guarded refuses a token lower than the
    /// highest that it has seen. Says whether the write was accepted.
    pub fn write(&self, who: &str, resource: &str, token: u64, trusted: &Trusted) -> bool {
        let is_trusted = trusted.is_held();
        let broken = self.is_broken(resource, token);
        let accepted = {
            let mut state = self.state();
            let written = state.holders.written.entry(resource.to_owned()).or_default();
            let accepted = token >= *written;
            *written = (*written).max(token);
            accepted
        };
        self.say(who, format_args!("writes {resource} token={token} accepted={accepted}"));
        if is_trusted && !accepted && !broken {
            let text =
                format!("{who} trusts its lease of {resource}, and token {token} is refused");
            self.violation(FENCE, text);
        }
        accepted
    }

    /// Those that trust that they use this alone now, with their tokens.
    pub fn users_alone(&self, resource: &str) -> BTreeSet<u64> {
        let state = self.state();
        let holders = &state.holders;
        let entries = holders.entries.values().filter(|entry| entry.uses_alone(resource));
        let trusted = entries.filter(|entry| entry.is_trusted(self, holders));
        trusted.map(|entry| entry.trusted.token()).collect()
    }

    /// How many trust that they use this now, in whatever way.
    pub(super) fn users(&self, resource: &str) -> usize {
        let state = self.state();
        let holders = &state.holders;
        let uses = |entry: &&Entry| entry.held.iter().any(|(name, _)| name == resource);
        let entries = holders.entries.values().filter(uses);
        entries.filter(|entry| entry.is_trusted(self, holders)).count()
    }

    /// Those that trust that they use something of this alone now.
    pub fn rivals(&self, held: &[Held]) -> BTreeMap<u64, String> {
        let state = self.state();
        let holders = &state.holders;
        let alone = |held: &Held| held.1 == Use::Alone;
        let uses = |entry: &Entry| {
            let mut own = held.iter().filter(|held| alone(held));
            own.any(|own| entry.held.iter().any(|one| alone(one) && overlap(&own.0, &one.0)))
        };
        let entries = holders.entries.iter().filter(|(_, entry)| uses(entry));
        let trusted = entries.filter(|(_, entry)| entry.is_trusted(self, holders));
        trusted.map(|(number, entry)| (*number, entry.who.clone())).collect()
    }

    /// The store said that this is still held. `before` are those that used the resource alone when it
    /// was asked.
    pub fn confirmed(&self, who: &str, resource: &str, token: u64, before: &BTreeSet<u64>) {
        let after = self.users_alone(resource);
        if let Some(other) = before.intersection(&after).find(|other| **other != token) {
            let text = format!(
                "{who} is told that it still has {resource} token={token} while {other} is held"
            );
            self.violation(CONFIRM, text);
        }
    }

    /// A token was verified. `before` are those that used the resource alone when it was asked.
    pub fn verified(
        &self,
        resource: &str,
        token: u64,
        before: &BTreeSet<u64>,
        answer: &VerifyAnswer,
    ) {
        let after = self.users_alone(resource);
        let others = before.intersection(&after).filter(|other| **other != token);
        if let (Some(other), VerifyAnswer::Valid) = (others.into_iter().next(), answer) {
            let text = format!("token {token} of {resource} is called valid while {other} is held");
            self.violation(VERIFY, text);
        }
    }
}

fn conflict(one: &Entry, other: &Entry, all: &[(u64, &Entry)]) -> Option<String> {
    for (name, usage) in &one.held {
        for (other_name, other_usage) in other.held.iter().filter(|(held, _)| overlap(name, held)) {
            let excludes = match (usage, other_usage) {
                (Use::Shared, Use::Shared) => false,
                (Use::OneOf(most), Use::OneOf(_)) => {
                    let uses = |(_, entry): &&(u64, &Entry)| {
                        entry.held.iter().any(|(held, _)| held == name)
                    };
                    all.iter().filter(uses).count() > *most
                }
                _ => true,
            };
            if excludes {
                let who = format!("{} (token {})", one.who, one.trusted.token());
                let other_who = format!("{} (token {})", other.who, other.trusted.token());
                return Some(format!(
                    "{who} has {name} {usage:?} while {other_who} has {other_name} {other_usage:?}"
                ));
            }
        }
    }
    None
}
