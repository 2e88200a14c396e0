//! One thing to remember, as it is kept in memory. [`format`](crate::store::format) says how it is
//! written to a journal.
//!
//! A rule says "from now on, so long"; a record says when that is. So a journal can be read again
//! at any time and gives the same.

use crate::store::Renewal;
use crate::store::store_time::{StoreTime, from_ms, milliseconds_up};
use tenure_core::{
    Evidence, GrantId, Hold, Resource, Section, StoredReply, Task, TaskId, Waiter, WallTime, Write,
};

/// One change to one record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// A new hold.
    Hold(StoredHold),
    /// A lease that started anew.
    Renew(Renewed),
    /// A hold that ended.
    DropHold { resource: Resource, grant: GrantId },
    /// A new place in the queue.
    Wait(StoredWaiter),
    /// A sign of life of one who waits.
    KeepPlace { ticket: u64, ttl_ms: i64, deadline_ms: i64, mailbox: String },
    /// One who waits was woken.
    Woken { ticket: u64, at_ms: i64 },
    /// A place in the queue that ended.
    DropWait { ticket: u64 },
    /// A task, new or changed.
    Task(Box<Task>),
    /// A task that is no more.
    DropTask(TaskId),
    /// A section, new or changed.
    Section(Section),
    /// A section record was removed.
    DropSection(String),
    /// The machine was rebooted: leases begin anew too, by a clock that did. Where only the id of
    /// the boot became known, `same` is set, and they go on.
    Boot { id: String, begin_ms: i64, same: bool },
    /// So many more completed tasks of a section are kept elsewhere; or fewer.
    Archived { section: Option<String>, count: i64 },
    /// What was answered to a request that may be repeated.
    Answer {
        answered: StoredReply,
        at: WallTime,
        /// By the machine's monotonic clock; older records do not have it.
        at_ms: i64,
    },
}

/// A hold with its times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredHold {
    pub(crate) hold: Hold,
    pub(crate) since_ms: i64,
    pub(crate) deadline_ms: i64,
    pub(crate) acquired_at: WallTime,
    pub(crate) renewed_at: WallTime,
}

/// A place in the queue with its times, and where its waiter is to be woken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredWaiter {
    pub(crate) waiter: Waiter,
    pub(crate) mailbox: String,
    pub(crate) since_ms: i64,
    pub(crate) deadline_ms: i64,
    pub(crate) waiting_since: WallTime,
    /// When it was woken, if it gave no sign of life since.
    pub(crate) woken_ms: Option<i64>,
}

/// What a renewal changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Renewed {
    pub(crate) grant: GrantId,
    pub(crate) resources: Vec<Resource>,
    pub(crate) ttl_ms: i64,
    pub(crate) deadline_ms: i64,
    pub(crate) renewed_at: WallTime,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) operation: Option<String>,
}

impl Renewed {
    /// The hold as it is after the renewal.
    pub(crate) fn apply_to(&self, stored: &StoredHold) -> StoredHold {
        let mut stored = stored.clone();
        stored.hold.ttl = from_ms(self.ttl_ms);
        stored.deadline_ms = self.deadline_ms;
        stored.renewed_at = self.renewed_at;
        if let Some(evidence) = &self.evidence {
            stored.hold.holder.evidence = Some(evidence.clone());
        }
        if let Some(operation) = &self.operation {
            stored.hold.operation = Some(operation.clone());
        }
        stored
    }
}

impl Record {
    /// What a rule chose to write, at this moment; none for a small record, which is kept elsewhere.
    pub(crate) fn of(write: Write, at: StoreTime, mailbox: &str) -> Option<Record> {
        let wall = WallTime(at.wall_ms);
        Some(match write {
            Write::Hold(hold) => Record::Hold(StoredHold {
                since_ms: at.now_ms,
                deadline_ms: at.deadline_ms(hold.ttl),
                acquired_at: wall,
                renewed_at: wall,
                hold,
            }),
            Write::Extend { resource, grant, ttl, operation } => Record::Renew(Renewed {
                grant,
                resources: vec![resource],
                ttl_ms: milliseconds_up(ttl),
                deadline_ms: at.deadline_ms(ttl),
                renewed_at: wall,
                evidence: None,
                operation,
            }),
            Write::DropHold { resource, grant } => Record::DropHold { resource, grant },
            Write::Wait(waiter) => Record::Wait(StoredWaiter {
                mailbox: mailbox.to_owned(),
                since_ms: at.now_ms,
                deadline_ms: at.deadline_ms(waiter.ttl),
                waiting_since: wall,
                woken_ms: None,
                waiter,
            }),
            Write::KeepPlace(waiter) => Record::KeepPlace {
                ticket: waiter.ticket,
                ttl_ms: milliseconds_up(waiter.ttl),
                deadline_ms: at.deadline_ms(waiter.ttl),
                mailbox: mailbox.to_owned(),
            },
            Write::Woken(waiter) => Record::Woken { ticket: waiter.ticket, at_ms: at.now_ms },
            Write::DropWait(waiter) => Record::DropWait { ticket: waiter.ticket },
            Write::Task(task) => Record::Task(task),
            Write::DropTask(id) => Record::DropTask(id),
            Write::Section(section) => Record::Section(section),
            Write::DropSection(name) => Record::DropSection(name),
            Write::Answer(answered) => Record::Answer { answered, at: wall, at_ms: at.now_ms },
            Write::PutRecord(_) | Write::DropRecords(_) => return None,
        })
    }

    /// A renewal that was found to be due, at this moment.
    pub(crate) fn of_renewal(renewal: &Renewal, at: StoreTime) -> Record {
        Record::Renew(Renewed {
            grant: renewal.grant,
            resources: renewal.resources.clone(),
            ttl_ms: milliseconds_up(renewal.ttl),
            deadline_ms: at.deadline_ms(renewal.ttl),
            renewed_at: WallTime(at.wall_ms),
            evidence: renewal.bind.clone(),
            operation: None,
        })
    }

    /// The resources whose holders this changes.
    pub(crate) fn held(&self) -> &[Resource] {
        match self {
            Record::Hold(stored) => std::slice::from_ref(&stored.hold.want.resource),
            Record::Renew(renewed) => &renewed.resources,
            Record::DropHold { resource, .. } => std::slice::from_ref(resource),
            _ => &[],
        }
    }

    /// Whether it is about tasks.
    pub(crate) fn is_task(&self) -> bool {
        matches!(self, Record::Task(_) | Record::DropTask(_) | Record::Archived { .. })
    }
}
