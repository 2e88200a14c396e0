//! Small records in memory.

use super::RecordSearch;
use super::store_time::StoreTime;
use std::collections::BTreeMap;
use tenure_core::record::RECORDS_MAX;
use tenure_core::{RecordKind, RecordRange, RecordSnapshot, SmallRecord, WallTime};

/// The records by kind and key.
#[derive(Debug, Default)]
pub(super) struct MemoryRecords {
    kinds: BTreeMap<RecordKind, BTreeMap<String, Kept>>,
    /// How many were added so far.
    added: u64,
}

#[derive(Debug)]
struct Kept {
    text: String,
    written_at: WallTime,
    deadline_ms: Option<i64>,
    /// Which one this is, in the order in which keys were first written.
    number: u64,
}

impl MemoryRecords {
    pub(super) fn put(&mut self, record: SmallRecord, at: StoreTime) {
        let kind = self.kinds.entry(record.kind).or_default();
        kind.retain(|_, kept| kept.deadline_ms.is_none_or(|deadline_ms| deadline_ms > at.now_ms));
        self.added += 1;
        let number = kind.get(&record.key).map_or(self.added, |before| before.number);
        let kept = Kept {
            text: record.text,
            written_at: WallTime(at.wall_ms),
            deadline_ms: record.ttl.map(|ttl| at.deadline_ms(ttl)),
            number,
        };
        kind.insert(record.key, kept);
        if kind.len() > RECORDS_MAX {
            let oldest = kind.iter().min_by_key(|(_, kept)| kept.number);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                kind.remove(&key);
            }
        }
    }

    pub(super) fn drop_all(&mut self, range: &RecordRange) {
        if let Some(kind) = self.kinds.get_mut(&range.kind) {
            kind.retain(|key, _| !key.starts_with(&range.prefix));
        }
    }

    pub(super) fn search(&self, search: &RecordSearch, at: StoreTime) -> Vec<RecordSnapshot> {
        let (first, last) = search.bounds();
        let records = self.kinds.get(&search.range.kind).into_iter();
        let found = records.flat_map(|kind| kind.range(first.clone()..=last.clone()));
        let alive = found
            .filter(|(_, kept)| kept.deadline_ms.is_none_or(|deadline_ms| deadline_ms > at.now_ms));
        let shown = alive.map(|(key, kept)| RecordSnapshot {
            key: key.clone(),
            text: kept.text.clone(),
            written_at: kept.written_at,
        });
        shown.take(search.limit as usize).collect()
    }
}
