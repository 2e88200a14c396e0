//! Small records: read page by page, and the oldest removed where there are too many.

use super::base::decode;
use super::connection::{Ask, Write};
use super::error::Failure;
use super::handle::Handle;
use crate::store::RecordSearch;
use crate::store::format::etcd::TextRecord;
use etcd_client::TxnOp;
use tenure_core::record::RECORDS_MAX;
use tenure_core::{RecordKind, RecordRange, RecordSnapshot};

/// How many records are read at once: the longest of so many fit into one answer of a server.
const PAGE: usize = 16;

/// How many of those that are too many are removed at once.
const REMOVED_AT_ONCE: usize = 64;

impl Handle {
    /// The records that are asked for, by their keys.
    pub(super) async fn search_records(
        &self,
        search: &RecordSearch,
    ) -> Result<Vec<RecordSnapshot>, Failure> {
        self.open().await?;
        let (kind, limit) = (search.range.kind, search.limit as usize);
        let prefix = self.keys.record(kind, "");
        let mut search = search.clone();
        let mut records: Vec<RecordSnapshot> = Vec::new();
        loop {
            let (first, last) = search.bounds();
            let page = PAGE.min(limit.saturating_sub(records.len()));
            if page == 0 || first > last {
                return Ok(records);
            }
            let asks = [Ask::all(self.keys.records(kind, &first, &last)).first(page)];
            let found = self.connection.read(&asks, None).await?.next();
            for entry in &found.entries {
                let key = String::from_utf8_lossy(entry.key());
                let TextRecord { written_at, text } = decode(entry, self.url())?;
                let key = key.strip_prefix(&prefix).unwrap_or_default().to_owned();
                records.push(RecordSnapshot { key, text, written_at });
            }
            match records.last().filter(|_| found.entries.len() == page) {
                Some(record) => search.after = record.key.clone(),
                None => return Ok(records),
            }
        }
    }

    /// Removes the oldest records of each kind beyond the number that is kept.
    pub(super) async fn remove_surplus_records(&self) -> Result<usize, Failure> {
        let mut removed = 0;
        for kind in RecordKind::ALL {
            let (first, last) = RecordSearch::all(RecordRange::all(kind)).bounds();
            let asks = [Ask::all(self.keys.records(kind, &first, &last)).keys_only()];
            let mut entries = self.connection.read(&asks, None).await?.next().entries;
            entries.sort_by_key(|entry| entry.create_revision());
            let surplus = entries.len().saturating_sub(RECORDS_MAX);
            for oldest in entries[..surplus].chunks(REMOVED_AT_ONCE) {
                let deletes = oldest.iter().map(|entry| TxnOp::delete(entry.key(), None));
                let write = Write { operations: deletes.collect(), ..Write::default() };
                self.connection.write(write).await?;
                removed += oldest.len();
            }
        }
        Ok(removed)
    }
}
