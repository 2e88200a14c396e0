//! What a rule answers: what to write, which events to record, which waiters to wake.

use crate::record::{RecordRange, SmallRecord};
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
    /// [`Snapshot::next`](crate::Snapshot) for every scope that overlaps this change. A change over
    /// [`Scope::Everything`] overlaps all scopes, also those of tasks: by one that takes a high number,
    /// all numbers of a store are raised.
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
    /// A small record, in the place of what its key had.
    PutRecord(SmallRecord),
    /// Small records that are no more.
    DropRecords(RecordRange),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventKind, Holder, Token, WallTime, Want};

    fn hold(token: u64) -> Write {
        Write::Hold(Hold {
            want: Want::exclusive("a".parse().unwrap()),
            grant: GrantId::from_bits(1),
            token: Token(token),
            holder: Holder::chosen("alice").unwrap(),
            operation: None,
            ttl: Duration::from_secs(1),
            slot: None,
        })
    }

    fn waiter(ticket: u64) -> Waiter {
        Waiter {
            grant: GrantId::from_bits(2),
            ticket,
            wants: vec![],
            holder: Holder::chosen("bob").unwrap(),
            operation: None,
            keeps: vec![],
            ttl: Duration::from_secs(1),
        }
    }

    fn task(age: u64) -> Write {
        let task = Task::new("t".parse().unwrap(), "t", WallTime(0));
        Write::Task(Box::new(Task { age, ..task }))
    }

    fn change(writes: Vec<Write>, events: usize) -> Change {
        let event = NewEvent::new(None, "alice", None, EventKind::Released);
        Change { writes, events: vec![event; events], ..Change::default() }
    }

    #[test]
    fn tokens_tickets_and_ages_are_the_numbers_of_a_change() {
        for (writes, last) in [
            (vec![], 0),
            (vec![hold(7)], 7),
            (vec![Write::Wait(waiter(8))], 8),
            (vec![task(9)], 9),
            (vec![hold(5), task(6), hold(4)], 6),
            (vec![Write::KeepPlace(waiter(8)), Write::DropWait(waiter(9))], 0),
        ] {
            assert_eq!(change(writes.clone(), 1).last_number(), last, "{writes:?}");
        }
    }

    #[test]
    fn the_last_event_comes_no_earlier_than_a_number_that_was_taken() {
        // The first free number, the highest that is taken, how many events, the first revision.
        for (free, taken, events, first) in
            [(10, 0, 1, 10), (10, 9, 1, 10), (10, 10, 1, 10), (10, 12, 1, 12), (10, 12, 2, 11)]
        {
            let found = change(vec![hold(taken)], events).first_revision(free);
            assert_eq!(found, first, "{free} {taken} {events}");
            assert!(found + events as u64 > taken, "{free} {taken} {events}");
        }
    }

    #[test]
    fn debug_output_of_a_stored_reply_has_no_grant_in_it() {
        let text = "the secret".to_owned();
        let shown = format!("{:?}", StoredReply { slot: "s".to_owned(), number: 3, text });
        assert!(shown.contains("slot: \"s\", number: 3"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
