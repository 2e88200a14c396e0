//! Holds, places and tasks as they are stored, and how they are shown.

use super::base::{decode, encode};
use super::error::Failure;
use crate::store::format::Form;
use crate::store::format::etcd::{HeldRecord, PlaceRecord};
use crate::store::format::parts::{HoldRecord, TaskRecord, WaiterRecord};
use etcd_client::KeyValue;
use std::time::Duration;
use tenure_core::{Hold, HoldSnapshot, Task, Waiter, WaiterSnapshot, WallTime};

/// The least that is shown to be left of a lease that lives. How much it really is, only the server
/// knows; a waiter looks again after this time at the earliest.
const LEFT_MIN: Duration = Duration::from_millis(300);

/// A hold.
#[derive(Clone, Debug)]
pub(super) struct StoredHold {
    pub(super) hold: Hold,
    pub(super) acquired_at: WallTime,
    pub(super) renewed_at: WallTime,
    /// The revision of its key; 0 if it was made by the change that is being prepared.
    pub(super) revision: i64,
    /// The key that is attached to its lease, if the lease lives.
    pub(super) life: Option<Life>,
}

/// A key that is attached to a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) lease: i64,
    pub(super) revision: i64,
}

impl Life {
    pub(super) fn of(entry: &KeyValue) -> Life {
        Life { lease: entry.lease(), revision: entry.mod_revision() }
    }
}

impl StoredHold {
    pub(super) fn of(entry: &KeyValue, store: &str) -> Result<StoredHold, Failure> {
        let HeldRecord { hold, acquired_at, renewed_at } = decode(entry, store)?;
        let (hold, revision) = (hold.into_core(), entry.mod_revision());
        Ok(StoredHold { hold, acquired_at, renewed_at, revision, life: None })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        let hold = HoldRecord::of(&self.hold);
        let (acquired_at, renewed_at) = (self.acquired_at, self.renewed_at);
        encode(&HeldRecord { hold, acquired_at, renewed_at })
    }

    pub(super) fn show(&self, now: WallTime) -> HoldSnapshot {
        let left = left(self.life.is_some(), self.hold.ttl, self.renewed_at, now);
        let end = if left.is_zero() { self.renewed_at } else { now };
        let until = if left.is_zero() { self.hold.ttl } else { left };
        let until_ms = i64::try_from(until.as_millis()).unwrap_or(i64::MAX);
        HoldSnapshot {
            hold: self.hold.clone(),
            left,
            held_for: since(self.acquired_at, now),
            acquired_at: self.acquired_at,
            renewed_at: self.renewed_at,
            expires_at: WallTime(end.0.saturating_add(until_ms)),
            stale: None,
        }
    }
}

/// A place in the queues of a waiter.
#[derive(Clone, Debug)]
pub(super) struct StoredPlace {
    pub(super) waiter: Waiter,
    pub(super) mailbox: String,
    pub(super) waiting_since: WallTime,
    pub(super) kept_at: WallTime,
    pub(super) woken_at: Option<WallTime>,
    /// The lease of the place, if it lives.
    pub(super) life: Option<Life>,
}

impl StoredPlace {
    pub(super) fn of(entry: &KeyValue, store: &str) -> Result<StoredPlace, Failure> {
        let record: PlaceRecord = decode(entry, store)?;
        Ok(StoredPlace {
            waiter: record.waiter.into_core(),
            mailbox: record.mailbox,
            waiting_since: record.waiting_since,
            kept_at: record.kept_at,
            woken_at: record.woken_at,
            life: None,
        })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        encode(&PlaceRecord {
            waiter: WaiterRecord::of(&self.waiter),
            mailbox: self.mailbox.clone(),
            waiting_since: self.waiting_since,
            kept_at: self.kept_at,
            woken_at: self.woken_at,
        })
    }

    pub(super) fn show(&self, now: WallTime) -> WaiterSnapshot {
        WaiterSnapshot {
            waiter: self.waiter.clone(),
            left: left(self.life.is_some(), self.waiter.ttl, self.kept_at, now),
            waited_for: since(self.waiting_since, now),
            waiting_since: self.waiting_since,
            woken_for: self.woken_at.map(|woken_at| since(woken_at, now)),
        }
    }
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct StoredTask {
    pub(super) task: Task,
    pub(super) revision: i64,
}

impl StoredTask {
    pub(super) fn of(entry: &KeyValue, store: &str) -> Result<StoredTask, Failure> {
        let record: TaskRecord = decode(entry, store)?;
        Ok(StoredTask { task: record.into_core(), revision: entry.mod_revision() })
    }
}

/// How much is left of a lease. Whether it lives is known from the server; how long it will is estimated
/// by the time of day, because etcd tells only whole seconds, and only lease by lease.
fn left(lives: bool, ttl: Duration, begun: WallTime, now: WallTime) -> Duration {
    match lives {
        true => ttl.saturating_sub(since(begun, now)).max(LEFT_MIN.min(ttl)),
        false => Duration::ZERO,
    }
}

fn since(then: WallTime, now: WallTime) -> Duration {
    Duration::from_millis(u64::try_from(now.0.saturating_sub(then.0)).unwrap_or(0))
}
