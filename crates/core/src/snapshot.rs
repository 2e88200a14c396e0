//! What a store shows to a rule.

use crate::decision::StoredReply;
use crate::millis;
use crate::task::{Section, Task, TaskId};
use crate::{
    Evidence, GrantId, Hold, Kind, Liveness, Owner, RegisteredWorker, Resource, Revision, Token,
    Waiter, WallTime, Witness,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::time::Duration;

/// The part of a store that a rule must see. A store may show more than a scope names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What is held and waited for on these resources and on those that overlap them. Of each
    /// queue a store may show only the front, and says so by [`Snapshot::shown_until`].
    At {
        /// The resources.
        resources: Vec<Resource>,
        /// A place that must be shown even if it is far back, as must the one before it. Without
        /// a ticket that is the last of the queue.
        ticket: Option<u64>,
    },
    /// The same as [`Scope::At`], with all of each queue.
    Queues(Vec<Resource>),
    /// What shows whether a wait would close a cycle: the same as [`Scope::Queues`], and every place
    /// in every queue, what is held on all that is waited for, and what the owner holds. Two
    /// transactions over this scope must exclude each other; a store need not keep unrelated
    /// acquires and releases away meanwhile, because only a request that keeps grants while it
    /// waits can close a cycle.
    Waits {
        /// The resources that the request wants.
        resources: Vec<Resource>,
        /// Whose holds are shown wherever they are.
        owner: Owner,
    },
    /// All holds and all places in queues, but no tasks.
    Everything,
    /// Tasks, their sections, and what is held and waited for on both and on paths that overlap the
    /// files of the tasks.
    Tasks(TaskScope),
}

/// The tasks that a rule must see.
///
/// With the tasks a store shows the sections that they are in, the sections that those depend on,
/// and the section that stands for all of them ([`crate::rules::tasks::EVERYTHING`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskScope {
    /// The tasks with these ids.
    pub ids: Vec<TaskId>,
    /// The tasks with these keys.
    pub keys: Vec<String>,
    /// Also the tasks that wait for those with these ids.
    pub dependents: bool,
    /// Also the tasks that those with these ids wait for.
    pub dependencies: bool,
    /// Also what else the sections of the tasks with these ids have: one task that is ready, and all
    /// that are in progress.
    pub beside: bool,
    /// The tasks that are claimed under these grants, all that is held under them, and all that is
    /// held and waited for on the same resources.
    pub grants: Vec<GrantId>,
    /// All tasks in progress.
    pub in_progress: bool,
    /// Tasks that could be taken next.
    pub pick: Option<Pick>,
    /// All sections, with how much is open in each.
    pub all_sections: bool,
    /// Whether the rule may add tasks. All scopes that say so overlap, so that ages are unique and
    /// rise in the order in which tasks are added.
    pub adds: bool,
}

/// Which of the tasks that could be taken are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pick {
    /// Only of this section.
    pub section: Option<String>,
    /// Only with all of these labels.
    pub labels: Vec<String>,
    /// At least so many of each section are shown, in the order of claims, if there are.
    pub depth: usize,
    /// Whether a store may leave out tasks that another transaction is taking at this moment. It
    /// then says so by [`Snapshot::skipped`]. Otherwise it waits for the other transaction.
    pub may_skip: bool,
    /// The grant under which the worker keeps a section: tasks of that section are taken first. A
    /// store may use it to prepare for what is likely to be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<GrantId>,
}

/// What a store saw, at one moment, judged by the store's own clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Who holds, in the order of [`Snapshot::sort_holds`].
    pub holds: Vec<HoldSnapshot>,
    /// Who waits, in the order of their tickets.
    pub waiters: Vec<WaiterSnapshot>,
    /// Whether all holds and all places in queues are shown.
    pub whole: bool,
    /// Whether all is shown that [`Scope::Waits`] names.
    #[serde(default)]
    pub shows_waits: bool,
    /// Where only the fronts of queues are shown: every place up to this ticket is visible.
    pub shown_until: Option<u64>,
    /// A number above 0 and below 2^53 that is higher than every token, ticket and age that was
    /// ever given out in this scope. A rule takes numbers from here on; every later transaction over
    /// an overlapping scope sees a number higher than those that were taken. Numbers may have gaps,
    /// and unrelated scopes may see the same ones: only a resource and a token together name a hold,
    /// and a waiter is known by its grant.
    pub next: u64,
    /// Up to here a reader of events misses none: every event with this revision or a lower one is
    /// visible, and none will be added. Inside a transaction it is only a lower bound.
    pub revision: Revision,
    /// The store's time of day.
    pub wall: WallTime,
    /// The tasks that were looked for.
    pub tasks: Vec<Task>,
    /// The sections that the scope names, as far as they were described or have tasks.
    pub sections: Vec<SectionSnapshot>,
    /// Whether some section has more tasks to pick from than are shown.
    pub more_to_pick: bool,
    /// Whether tasks were left out that another transaction is taking at this moment.
    #[serde(default)]
    pub skipped: bool,
    /// What was answered under the slot that was looked at, if anything ever was.
    pub answered: Option<StoredReply>,
    /// Evidence of shown holders and waiters that were proved dead where this was read. A store
    /// leaves this empty; a server fills it in for its clients, which cannot see its processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<Evidence>,
    /// The workers that are registered. A store leaves this empty; a client fills it in for those that
    /// show workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<RegisteredWorker>,
}

impl Snapshot {
    /// A store in which nothing was ever held.
    pub fn empty() -> Snapshot {
        Snapshot { next: 1, whole: true, ..Snapshot::default() }
    }

    /// Brings the holds into the order of their tokens, and those of one token into that of their
    /// resources. Holds of one request end in the order in which they are shown, and events tell of
    /// it: in the same order in every store.
    pub fn sort_holds(&mut self) {
        let rank = |resource: &Resource| match resource.kind() {
            Kind::Section => 0,
            Kind::Lock => 1,
            Kind::Path => 2,
            Kind::Task => 3,
        };
        self.holds.sort_by(|one, other| {
            let (these, those) = (&one.hold.want.resource, &other.hold.want.resource);
            let key = |seen: &HoldSnapshot| (seen.hold.token, rank(&seen.hold.want.resource));
            key(one).cmp(&key(other)).then_with(|| these.name().cmp(those.name()))
        });
    }

    /// The token of a grant made now.
    pub fn next_token(&self) -> Token {
        Token(self.next)
    }

    /// The task with this id, if it is shown.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    /// The section with this name, as described or as usual.
    pub fn section(&self, name: &str) -> Section {
        let described = self.sections.iter().find(|seen| seen.section.name == name);
        described.map_or_else(|| Section::named(name), |seen| seen.section.clone())
    }

    /// This snapshot for readers: without grants that prove ownership and without stored replies.
    pub fn redacted(mut self) -> Snapshot {
        self.holds = self.holds.iter().map(HoldSnapshot::redacted).collect();
        self.waiters = self.waiters.iter().map(WaiterSnapshot::redacted).collect();
        self.tasks = self.tasks.into_iter().map(Task::redacted).collect();
        self.answered = None;
        self
    }

    /// Names the shown holders and waiters that this witness proves dead.
    pub fn mark_dead(&mut self, witness: &dyn Witness) {
        let holders = self.holds.iter().map(|seen| &seen.hold.holder);
        let waiters = self.waiters.iter().map(|seen| &seen.waiter.holder);
        let mut dead = Vec::new();
        let mut judged = HashSet::new();
        for evidence in holders.chain(waiters).filter_map(|holder| holder.evidence.as_ref()) {
            if judged.insert(evidence) && witness.liveness(evidence) == Liveness::Dead {
                dead.push(evidence.clone());
            }
        }
        self.dead = dead;
    }

    /// The holds of one grant.
    pub fn holds_of(&self, grant: GrantId) -> impl Iterator<Item = &HoldSnapshot> {
        self.holds.iter().filter(move |seen| seen.hold.grant == grant)
    }
}

/// A section, with how much of it is left to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionSnapshot {
    /// The record.
    pub section: Section,
    /// How many of its tasks have not come to their end. Unless all sections were asked for, a store
    /// may show 1 for any higher number: rules only ask whether there are any.
    pub open: u64,
}

/// The length of a hold that time never ends: another program's claim whose protocol has no limit. It
/// is longer than any lease that can be asked for.
pub const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A hold, with what the store's clock says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldSnapshot {
    /// The record.
    pub hold: Hold,
    /// An upper bound of the time left; zero means that the lease lapsed.
    #[serde(rename = "left_ms", with = "millis")]
    pub left: Duration,
    /// How long it has been held.
    #[serde(rename = "held_for_ms", with = "millis")]
    pub held_for: Duration,
    /// When it was acquired, for showing.
    pub acquired_at: WallTime,
    /// When it was last renewed, for showing.
    pub renewed_at: WallTime,
    /// When it lapses unless renewed, for showing.
    pub expires_at: WallTime,
    /// Of another program's lock file that no longer counts: why, in that program's words.
    pub stale: Option<String>,
}

impl HoldSnapshot {
    /// This hold as others than its owner may see it: with the public form of its grant.
    pub fn redacted(&self) -> HoldSnapshot {
        let mut redacted = self.clone();
        redacted.hold.grant = self.hold.grant.redacted();
        redacted
    }

    /// Whether time never ends the hold: only its holder or an operator does.
    pub fn has_no_limit(&self) -> bool {
        self.hold.ttl >= NO_LIMIT
    }

    /// When it lapses unless renewed, for showing; none if it has no limit.
    pub fn limit(&self) -> Option<WallTime> {
        (!self.has_no_limit()).then_some(self.expires_at)
    }

    /// Whether the lease's time ran out.
    pub fn lapsed(&self) -> bool {
        self.left.is_zero()
    }

    /// Whether this hold no longer counts: its time ran out, or its holder is dead by proof.
    pub fn gone(&self, witness: &dyn Witness) -> bool {
        self.lapsed() || self.hold.holder.liveness(witness) == Liveness::Dead
    }
}

/// A place in the queue, with what the store's clock says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaiterSnapshot {
    /// The record.
    pub waiter: Waiter,
    /// Time left before the place is given up for want of a sign of life.
    #[serde(rename = "left_ms", with = "millis")]
    pub left: Duration,
    /// How long it has waited.
    #[serde(rename = "waited_for_ms", with = "millis")]
    pub waited_for: Duration,
    /// Since when, for showing.
    pub waiting_since: WallTime,
    /// How long ago it was woken, if it has not responded since.
    #[serde(rename = "woken_for_ms", with = "millis::optional", default)]
    pub woken_for: Option<Duration>,
}

/// How long a waiter that was woken may take to ask again: then those behind it pass, and it keeps
/// its place. A living process takes milliseconds; one on a machine out of breath, less than this.
pub const TURN_TIMEOUT: Duration = Duration::from_secs(1);

impl WaiterSnapshot {
    /// Whether it was woken and did not come: its process is stopped, or out of reach.
    pub fn missed_its_turn(&self) -> bool {
        self.woken_for.is_some_and(|woken_for| woken_for >= TURN_TIMEOUT)
    }

    /// This place as others than its owner may see it: with the public form of its grants.
    pub fn redacted(&self) -> WaiterSnapshot {
        let mut redacted = self.clone();
        redacted.waiter.grant = self.waiter.grant.redacted();
        redacted.waiter.keeps.iter_mut().for_each(|grant| *grant = grant.redacted());
        redacted
    }

    /// Whether this place no longer counts.
    pub fn gone(&self, witness: &dyn Witness) -> bool {
        self.left.is_zero() || self.waiter.holder.liveness(witness) == Liveness::Dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Holder, Process, Want};

    fn grant(number: u128) -> GrantId {
        GrantId::from_bits(number)
    }

    fn evidence(pid: u32) -> Evidence {
        Evidence {
            host: "host".to_owned(),
            machine: "machine".to_owned(),
            boot: "boot".to_owned(),
            pid_namespace: 1,
            process: Some(Process { pid, start: 1 }),
            group: None,
        }
    }

    fn holder(pid: Option<u32>) -> Holder {
        Holder { evidence: pid.map(evidence), ..Holder::chosen("alice").unwrap() }
    }

    fn hold(text: &str, token: u64, pid: Option<u32>) -> HoldSnapshot {
        HoldSnapshot {
            hold: Hold {
                want: Want::exclusive(text.parse().unwrap()),
                grant: grant(u128::from(token)),
                token: Token(token),
                holder: holder(pid),
                operation: None,
                ttl: Duration::from_secs(1),
                slot: None,
            },
            left: Duration::from_secs(1),
            held_for: Duration::ZERO,
            acquired_at: WallTime(0),
            renewed_at: WallTime(0),
            expires_at: WallTime(0),
            stale: None,
        }
    }

    fn waiter(ticket: u64, pid: Option<u32>) -> WaiterSnapshot {
        WaiterSnapshot {
            waiter: Waiter {
                grant: grant(u128::from(ticket)),
                ticket,
                wants: vec![],
                holder: holder(pid),
                operation: None,
                keeps: vec![grant(77)],
                ttl: Duration::from_secs(1),
            },
            left: Duration::from_secs(1),
            waited_for: Duration::ZERO,
            waiting_since: WallTime(0),
            woken_for: None,
        }
    }

    #[test]
    fn an_empty_store_is_shown_whole_and_its_first_number_is_one() {
        let empty = Snapshot::empty();
        assert!(empty.whole && empty.holds.is_empty() && empty.waiters.is_empty());
        assert_eq!(empty.next_token(), Token(1), "no token is zero");
    }

    #[test]
    fn holds_are_ordered_by_token_then_kind_then_name() {
        let sorted =
            ["task:z", "section:b", "b", "path:a", "path:b", "task:a", "task:b"].map(|name| {
                let token = if name == "task:z" { 1 } else { 2 };
                hold(name, token, None)
            });
        for turn in 0..sorted.len() {
            let mut holds = sorted.to_vec();
            holds.rotate_left(turn);
            holds.reverse();
            let mut seen = Snapshot { holds, ..Snapshot::empty() };
            seen.sort_holds();
            assert_eq!(seen.holds, sorted, "{turn}");
        }
    }

    #[test]
    fn readers_see_all_records_and_no_secret() {
        let task = crate::sample::full_task();
        let reply = StoredReply { slot: "s".into(), number: 1, text: "secret".into() };
        let seen = Snapshot {
            holds: vec![hold("a", 11, None)],
            waiters: vec![waiter(12, None)],
            tasks: vec![task.clone()],
            answered: Some(reply),
            ..Snapshot::empty()
        };
        let redacted = seen.redacted();
        assert_eq!(redacted.holds[0].hold.grant, grant(11).redacted());
        let place = &redacted.waiters[0].waiter;
        assert_eq!((place.grant, place.ticket), (grant(12).redacted(), 12));
        assert_eq!(place.keeps, [grant(77).redacted()]);
        assert_eq!(redacted.tasks, [task.redacted()]);
        assert_eq!((redacted.answered, redacted.next), (None, 1));
    }

    /// The process with the number 7 is dead, 8 lives, and nothing is known of others.
    struct Knows;

    impl Witness for Knows {
        fn liveness(&self, evidence: &Evidence) -> Liveness {
            match evidence.process.map(|process| process.pid) {
                Some(7) => Liveness::Dead,
                Some(8) => Liveness::Alive,
                _ => Liveness::Unknown,
            }
        }
    }

    #[test]
    fn each_dead_process_is_named_once() {
        for (holders, waiters, dead) in [
            (vec![Some(7), Some(8), Some(9), None], vec![], vec![7]),
            (vec![Some(7), Some(7)], vec![Some(7)], vec![7]),
            (vec![Some(8)], vec![Some(9), Some(7)], vec![7]),
            (vec![Some(8)], vec![None], vec![]),
        ] {
            let mut seen = Snapshot {
                holds: holders.iter().map(|pid| hold("a", 1, *pid)).collect(),
                waiters: waiters.iter().map(|pid| waiter(2, *pid)).collect(),
                dead: vec![evidence(5)],
                ..Snapshot::empty()
            };
            seen.mark_dead(&Knows);
            let expected: Vec<Evidence> = dead.into_iter().map(evidence).collect();
            assert_eq!(seen.dead, expected, "{holders:?} {waiters:?}");
        }
    }
}
