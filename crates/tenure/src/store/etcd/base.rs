//! What concerns the whole store and is read with every look: what it is, where its numbers and its
//! history stand.

use super::connection::Page;
use super::error::Failure;
use super::keys::Keys;
use crate::store::StoreError;
use crate::store::format::etcd::{FORMAT, LogRecord, StoreRecord};
use etcd_client::{Compare, CompareOp, KeyValue};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use tenure_core::Revision;

/// How many events one change can have: their revisions lie between that of the change and the next.
pub(super) const EVENTS_MAX: u64 = 1 << 14;

/// How many numbers an epoch has: 2^13 epochs of a million million numbers each are below 2^53.
const NUMBERS_PER_EPOCH: u64 = 1 << 40;

/// The highest epoch whose numbers are below 2^53.
const EPOCH_MAX: u64 = (1 << 13) - 1;

/// The revision of an event: rises with the revision of its change, and within the change.
pub(super) fn event_revision(etcd_revision: i64, index: u64) -> Revision {
    Revision(etcd_revision.unsigned_abs() * EVENTS_MAX + index)
}

/// The etcd revision of the change that recorded the event with this revision.
pub(super) fn etcd_revision(revision: Revision) -> i64 {
    i64::try_from(revision.0 / EVENTS_MAX).unwrap_or(i64::MAX)
}

/// The revision that a value of the key `store/head` stands for.
pub(super) fn head_revision(head: &KeyValue) -> Revision {
    let events: u64 = text(head).and_then(|text| text.parse().ok()).unwrap_or(1);
    event_revision(head.mod_revision(), events.saturating_sub(1))
}

/// The keys that concern the whole store, as they were at one revision.
#[derive(Debug)]
pub(super) struct Base {
    /// Tells this store from others at the same place.
    pub(super) id: String,
    /// Raised by an operator after a restore.
    pub(super) epoch: u64,
    /// All numbers that are given out are higher.
    pub(super) numbers_floor: u64,
    /// The highest age that was given out.
    pub(super) age: u64,
    pub(super) log: LogRecord,
    /// The newest event.
    pub(super) head: Revision,
    /// How many changes recorded events so far.
    pub(super) changes: i64,
    /// The revisions of the keys; an absent one is not in it.
    revisions: HashMap<String, i64>,
    created: i64,
}

/// What was found where a store should be.
pub(super) enum Found {
    Store(Box<Base>),
    /// There is none.
    Nothing,
}

impl Base {
    /// Understands what was read of [`Keys::stores`].
    pub(super) fn of(page: &Page, keys: &Keys, store: &str) -> Result<Found, Failure> {
        let found: HashMap<&str, &KeyValue> = page
            .entries
            .iter()
            .filter_map(|entry| Some((keys.rest("store", entry.key())?, entry)))
            .collect();
        let Some(meta) = found.get("meta") else { return Ok(Found::Nothing) };
        let record: StoreRecord = decode(meta, store)?;
        if record.format > FORMAT {
            return Err(Failure::Refused(StoreError::Unsupported {
                what: format!(
                    "the store at {store} was made by a newer version of tenure (format {}, and this \
                     version reads up to {FORMAT})",
                    record.format
                ),
                instead: "Use a newer version of tenure.".to_owned(),
            }));
        }
        let number = |name: &str| -> Result<u64, Failure> {
            let Some(entry) = found.get(name) else { return Ok(0) };
            let number = text(entry).and_then(|text| text.trim().parse().ok());
            number.ok_or_else(|| corrupt(entry, store, "it is not a number"))
        };
        let epoch = number("epoch")?;
        if epoch > EPOCH_MAX {
            return Err(Failure::Refused(StoreError::Corrupt {
                store: store.to_owned(),
                reason: format!("the epoch {epoch} is higher than {EPOCH_MAX}"),
                hint: Some("Set the epoch to the one before, plus one.".to_owned()),
            }));
        }
        let missing = |name: &str| {
            Failure::Refused(StoreError::Corrupt {
                store: store.to_owned(),
                reason: format!("its key store/{name} is missing"),
                hint: Some("Restore a backup of etcd, or delete all keys of the store.".to_owned()),
            })
        };
        let log = found.get("log").ok_or_else(|| missing("log"))?;
        let head = found.get("head").ok_or_else(|| missing("head"))?;
        let revisions =
            found.iter().map(|(name, entry)| ((*name).to_owned(), entry.mod_revision()));
        Ok(Found::Store(Box::new(Base {
            id: record.id,
            epoch,
            numbers_floor: number("floor")?.max(epoch * NUMBERS_PER_EPOCH),
            age: number("adds")?,
            log: decode(log, store)?,
            head: head_revision(head),
            changes: head.version(),
            revisions: revisions.collect(),
            created: meta.create_revision(),
        })))
    }

    /// The revision of one of the keys; 0 if it is absent.
    pub(super) fn revision(&self, name: &str) -> i64 {
        self.revisions.get(name).copied().unwrap_or(0)
    }

    /// That one of the keys is as it was.
    pub(super) fn unchanged(&self, keys: &Keys, name: &str) -> Compare {
        Compare::mod_revision(keys.store(name), CompareOp::Equal, self.revision(name))
    }

    /// That the store is still the same one.
    pub(super) fn same_store(&self, keys: &Keys) -> Compare {
        Compare::create_revision(keys.store("meta"), CompareOp::Equal, self.created)
    }
}

/// The value as text.
pub(super) fn text(entry: &KeyValue) -> Option<&str> {
    std::str::from_utf8(entry.value()).ok()
}

/// The value as a record.
pub(super) fn decode<T: DeserializeOwned>(entry: &KeyValue, store: &str) -> Result<T, Failure> {
    serde_json::from_slice(entry.value()).map_err(|error| corrupt(entry, store, &error.to_string()))
}

/// A value that cannot be understood. Keys may have grants in them, which are secret: only the beginning
/// of the key is named.
pub(super) fn corrupt(entry: &KeyValue, store: &str, why: &str) -> Failure {
    let key = String::from_utf8_lossy(entry.key()).replace('\0', " ");
    let end = key.len().saturating_sub(36);
    let shown = key.get(..end).filter(|shown| !shown.is_empty()).unwrap_or(&key);
    Failure::Refused(StoreError::Corrupt {
        store: store.to_owned(),
        reason: format!("the value of the key {shown:?} cannot be read: {why}"),
        hint: Some("Look at the key with etcdctl, and restore it from a backup.".to_owned()),
    })
}

/// A record as a value.
pub(super) fn encode(record: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("records have string keys and no failing parts")
}
