//! What a store shows to a rule.

use crate::decision::StoredReply;
use crate::millis;
use crate::task::{Section, Task, TaskId};
use crate::{
    Evidence, GrantId, Hold, Liveness, Resource, Revision, Token, Waiter, WallTime, Witness,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::time::Duration;

/// Which part of the store a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What is held and waited for on these resources and on those that overlap them. Of each
    /// queue a store may show only the front, and says so by [`Snapshot::shown_until`].
    At {
        /// Which resources.
        resources: Vec<Resource>,
        /// A place that must be shown even if it is far back, as must the one before it. Without
        /// a ticket that is the last of the queue.
        ticket: Option<u64>,
    },
    /// The same, with all of each queue.
    Queues(Vec<Resource>),
    /// All of it, but no tasks.
    Everything,
    /// Tasks, all sections, and what is held and waited for on the tasks shown, on sections and on
    /// paths that overlap the files of the tasks shown; of other paths a store may show any.
    Tasks(TaskScope),
}

/// Which tasks a rule looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskScope {
    /// Those with these ids.
    pub ids: Vec<TaskId>,
    /// Those with these keys.
    pub keys: Vec<String>,
    /// Those that wait for the ones with these ids.
    pub dependents: bool,
    /// Those that the ones with these ids wait for.
    #[serde(default)]
    pub dependencies: bool,
    /// All that somebody has.
    pub in_progress: bool,
    /// Those that could be taken next.
    pub pick: Option<Pick>,
}

/// Which of the tasks that could be taken are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// Only of this section.
    pub section: Option<String>,
    /// Only with all of these labels.
    pub labels: Vec<String>,
    /// At least so many of each section are shown, in the order of claims, if there are.
    pub depth: usize,
}

/// What a store saw, at one moment, judged by the store's own clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Who holds, in the order of their tokens.
    pub holds: Vec<HoldSnapshot>,
    /// Who waits, in the order of their tickets.
    pub waiters: Vec<WaiterSnapshot>,
    /// Whether this is all that the store has.
    pub whole: bool,
    /// Where only the fronts of queues are shown: every place up to this ticket is visible.
    pub shown_until: Option<u64>,
    /// The number that the next token and the next ticket take: higher than any before.
    pub next: u64,
    /// The newest change that this shows.
    pub revision: Revision,
    /// The store's time of day.
    pub wall: WallTime,
    /// The tasks that were looked for.
    pub tasks: Vec<Task>,
    /// All sections that somebody described or that have tasks, where tasks were looked for.
    pub sections: Vec<SectionSnapshot>,
    /// Whether some section has more tasks to pick from than are shown.
    pub more_to_pick: bool,
    /// What was answered under the slot that was looked at, if anything ever was.
    pub answered: Option<StoredReply>,
    /// Evidence of shown holders and waiters that were proved dead where this was read. A store
    /// leaves this empty; a server fills it in for its clients, which cannot see its processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<Evidence>,
}

impl Snapshot {
    /// A store in which nothing was ever held.
    pub fn empty() -> Snapshot {
        Snapshot { next: 1, whole: true, ..Snapshot::default() }
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

    /// The same for those who only look: no grant of it proves anything, and there are no answers
    /// to requests.
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
    /// How many of its tasks have not come to their end.
    pub open: u64,
}

/// A hold, with what the store's clock says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldSnapshot {
    /// The record.
    pub hold: Hold,
    /// Time left; zero means that the lease lapsed.
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
    /// How long ago it was woken, if it gave no sign of life since.
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
