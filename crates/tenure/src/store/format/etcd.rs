//! The values of the etcd store: JSON, each under a key of its own. The keys are in
//! [`etcd::keys`](crate::store::etcd).

use super::parts::{EventRecord, HoldRecord, ReplyRecord, WaiterRecord};
use serde::{Deserialize, Serialize};
use tenure_core::{GrantId, WallTime};

/// The newest format that this version reads and writes.
pub(crate) const FORMAT: u32 = 1;

/// What the store is. It is written once, when the store is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoreRecord {
    pub(crate) format: u32,
    /// Tells this store from one that is made in its place later.
    pub(crate) id: String,
}

/// A hold. Whether its lease lives is said by another key, which is attached to an etcd lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HeldRecord {
    #[serde(flatten)]
    pub(crate) hold: HoldRecord,
    pub(crate) acquired_at: WallTime,
    pub(crate) renewed_at: WallTime,
}

/// A place in a queue. Each queue of a waiter has a copy of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PlaceRecord {
    #[serde(flatten)]
    pub(crate) waiter: WaiterRecord,
    /// The handle that is told when the waiter is woken.
    pub(crate) mailbox: String,
    pub(crate) waiting_since: WallTime,
    /// The newest sign of life.
    pub(crate) kept_at: WallTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) woken_at: Option<WallTime>,
}

/// The events of one change. Their revisions follow from the revision of the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChangeRecord {
    pub(crate) at: WallTime,
    pub(crate) events: Vec<EventRecord>,
}

/// Which part of the history is written now, and where the earlier parts began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogRecord {
    /// The number of the segment that is written now.
    pub(crate) segment: u64,
    /// How many changes there were before this segment.
    pub(crate) changes_before: i64,
    /// Earlier segments that are still kept, oldest first: their numbers and the etcd revisions at
    /// which they began.
    pub(crate) earlier: Vec<(u64, i64)>,
}

/// A task that can be claimed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReadyRecord {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
}

/// A task in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkingRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<GrantId>,
}

/// A small record. One that is kept for a time is attached to an etcd lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TextRecord {
    pub(crate) written_at: WallTime,
    pub(crate) text: String,
}

/// The stored reply of a slot.
pub(crate) type SlotRecord = ReplyRecord;
