//! What a rule answers: what to write, which events to record, whom to wake.

use crate::task::{Section, Task, TaskId};
use crate::{GrantId, Hold, NewEvent, Resource, Scope, Waiter};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What a store is to do with what it showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Nothing,
    /// Show [`Scope::Everything`] and ask again: the part that was shown does not settle it.
    NeedAll,
    /// Show this scope and ask again.
    Need(Scope),
    /// Write all of this in one step.
    Write(Change),
}

impl Decision {
    /// What is to be written; empty for the other decisions.
    pub fn writes(&self) -> &[Write] {
        match self {
            Decision::Write(change) => &change.writes,
            Decision::Nothing | Decision::NeedAll | Decision::Need(_) => &[],
        }
    }
}

/// A change that a store makes whole or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The records.
    pub writes: Vec<Write>,
    /// What to record about it. The store gives each event its revision. A change that takes
    /// numbers records at least one event.
    pub events: Vec<NewEvent>,
    /// Requests that could be granted now and sleep: their turn has come.
    pub wake: Vec<GrantId>,
    /// Whether this must be on disk before it is reported.
    pub durable: bool,
}

impl Change {
    /// The highest token, ticket or age in what is written. Afterwards a store shows a higher
    /// [`Snapshot::next`](crate::Snapshot) for every scope that overlaps this change.
    pub fn last_number(&self) -> u64 {
        let numbers = self.writes.iter().map(|write| match write {
            Write::Hold(hold) => hold.token.0,
            Write::Wait(waiter) => waiter.ticket,
            Write::Task(task) => task.age,
            _ => 0,
        });
        numbers.max().unwrap_or(0)
    }

    /// The revision of the first event, in a store that takes revisions and numbers from one
    /// counter, of which `free` is the first that was not taken: the last event then has a revision
    /// that is not below any number that the change takes.
    pub fn first_revision(&self, free: u64) -> u64 {
        free.max((self.last_number() + 1).saturating_sub(self.events.len() as u64))
    }

    /// This change as a decision.
    pub fn decide(self) -> Decision {
        if self.writes.is_empty() && self.events.is_empty() {
            Decision::Nothing
        } else {
            Decision::Write(self)
        }
    }
}

/// One record to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A new hold.
    Hold(Hold),
    /// A hold whose lease starts anew with this length.
    Extend {
        /// Which resource.
        resource: Resource,
        /// Under which grant.
        grant: GrantId,
        /// How long from now.
        ttl: Duration,
        /// What for from now on; as before, if it is not said.
        operation: Option<String>,
    },
    /// A hold that ended.
    DropHold {
        /// Which resource.
        resource: Resource,
        /// Under which grant.
        grant: GrantId,
    },
    /// A new place in the queue.
    Wait(Waiter),
    /// A place in the queue whose waiter gave a sign of life.
    KeepPlace(Waiter),
    /// A place in the queue whose waiter is woken with this change.
    Woken(Waiter),
    /// A place in the queue that ended.
    DropWait(Waiter),
    /// A task, new or changed.
    Task(Box<Task>),
    /// A task that is no more.
    DropTask(TaskId),
    /// A section, new or changed.
    Section(Section),
    /// A section record is removed.
    DropSection(String),
    /// What is answered to a request that may be repeated, in the place of what its slot had.
    Answer(StoredReply),
}

/// The reply to a request, kept with the change that it made: a caller that did not get it asks
/// again and gets the same reply, instead of making the change twice.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReply {
    /// Whose requests these are; each of them comes after the one before was answered.
    pub slot: String,
    /// Which of them: each has a higher number than the one before.
    pub number: u64,
    /// The reply, as text.
    pub text: String,
}

impl fmt::Debug for StoredReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text has the grants that were answered.
        f.debug_struct("Answered")
            .field("slot", &self.slot)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
