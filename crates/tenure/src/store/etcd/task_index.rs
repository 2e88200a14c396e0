//! The keys by which tasks are found without reading all of them.

use super::base::encode;
use super::keys::Keys;
use crate::store::format::Form;
use crate::store::format::etcd::{ReadyRecord, WorkingRecord};
use crate::store::format::parts::TaskRecord;
use std::collections::BTreeMap;
use tenure_core::{Status, Task};

/// The task itself and all keys that lead to it.
pub(super) fn entries(keys: &Keys, task: &Task) -> BTreeMap<String, Vec<u8>> {
    let mut entries = BTreeMap::new();
    entries.insert(keys.task(&task.id), encode(&TaskRecord::of(task)));
    entries.insert(keys.counted_task(task), vec![]);
    if let Some(key) = &task.key {
        entries.insert(keys.key(key), task.id.as_str().as_bytes().to_vec());
    }
    for before in &task.depends_on {
        entries.insert(keys.dependent(before, &task.id), vec![]);
    }
    if let Some(ended) = task.ended() {
        entries.insert(keys.ended(task.status, &ended), vec![]);
    }
    match task.status {
        Status::InProgress => {
            let grant = task.claim.as_ref().map(|claim| claim.grant);
            entries.insert(keys.working_task(task), encode(&WorkingRecord { grant }));
        }
        Status::Pending if task.unmet == 0 => match task.not_before {
            Some(time) => drop(entries.insert(keys.due(time, &task.id), vec![])),
            None => {
                let ready = ReadyRecord { labels: task.labels.clone() };
                entries.insert(keys.ready(task), encode(&ready));
            }
        },
        _ => {}
    }
    entries
}
