//! Events: segments of the history, each of which ends before the next one begins.
//!
//! The keys of changes cannot be in the order of their revisions, because a revision is known only when a
//! change is made. So all changes compare which segment is written now, and the change that begins the
//! next one puts that key. A reader sorts the changes of a segment by their revisions.

use super::base::{Base, decode, etcd_revision, event_revision};
use super::connection::{Ask, Page, Write};
use super::error::Failure;
use super::handle::Handle;
use super::look::Start;
use crate::store::Trim;
use crate::store::format::Form;
use crate::store::format::etcd::ChangeRecord;
use crate::store::{EventSearch, Prefer};
use etcd_client::{DeleteOptions, TxnOp};
use tenure_core::{Event, Revision};

impl Handle {
    /// Events after a revision, oldest first.
    pub(super) async fn events_after(
        &self,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<Event>, Failure> {
        let (base, revision) = self.history().await?;
        let mut events = Vec::new();
        let segments = segments(&base);
        let known = etcd_revision(after);
        let first = segments.iter().rposition(|(_, began)| *began <= known).unwrap_or(0);
        for (segment, _) in &segments[first..] {
            if events.len() >= limit as usize || after >= base.head {
                break;
            }
            let found = self.segment(*segment, revision).await?;
            events.extend(found.into_iter().filter(|event| event.revision > after));
        }
        events.truncate(limit as usize);
        Ok(events)
    }

    /// The newest events, oldest first.
    pub(super) async fn newest_events(&self, limit: u32) -> Result<Vec<Event>, Failure> {
        let (base, revision) = self.history().await?;
        let mut events: Vec<Event> = Vec::new();
        for (segment, _) in segments(&base).iter().rev() {
            if events.len() >= limit as usize {
                break;
            }
            let mut found = self.segment(*segment, revision).await?;
            found.append(&mut events);
            events = found;
        }
        let surplus = events.len().saturating_sub(limit as usize);
        events.drain(..surplus);
        Ok(events)
    }

    /// The events that are asked for, oldest first: segments are read from the end that counts until
    /// enough is found.
    pub(super) async fn search_events(&self, search: &EventSearch) -> Result<Vec<Event>, Failure> {
        let (base, revision) = self.history().await?;
        let limit = search.limit as usize;
        let mut segments = segments(&base);
        let known = etcd_revision(search.after);
        let first = segments.iter().rposition(|(_, began)| *began <= known).unwrap_or(0);
        segments.drain(..first);
        let mut events: Vec<Event> = Vec::new();
        match search.prefer {
            Prefer::Oldest => {
                for (segment, _) in &segments {
                    let found = self.segment(*segment, revision).await?;
                    events.extend(found.into_iter().filter(|event| search.admits(event)));
                    if events.len() >= limit {
                        break;
                    }
                }
                events.truncate(limit);
            }
            Prefer::Newest => {
                for (segment, _) in segments.iter().rev() {
                    let mut found = self.segment(*segment, revision).await?;
                    found.retain(|event| search.admits(event));
                    found.append(&mut events);
                    events = found;
                    if events.len() >= limit {
                        break;
                    }
                }
                let surplus = events.len().saturating_sub(limit);
                events.drain(..surplus);
            }
        }
        Ok(events)
    }

    /// Removes whole segments that are beyond what is kept; returns how many events they had. Changes
    /// stand for events here when the rest is counted, so that rather too much is kept. The segment that
    /// is written now stays, and with it the newest event.
    pub(super) async fn trim_events(&self, trim: Trim) -> Result<u64, Failure> {
        let (base, revision) = self.history().await?;
        let mut segments = segments(&base);
        segments.pop();
        let counts = segments.iter().map(|(segment, _)| *segment).chain([base.log.segment]);
        let asks = counts.map(|segment| Ask::all(self.keys.segment(segment)).count());
        let mut pages = self.connection.read(&asks.collect::<Vec<_>>(), Some(revision)).await?;
        let counts: Vec<u64> =
            (0..=segments.len()).map(|_| pages.next().count.unsigned_abs()).collect();
        let mut total: u64 = counts.iter().sum();
        if trim.keep.candidates(0, total, trim.limit) == 0 {
            return Ok(0);
        }
        let mut trimmed = 0;
        for ((segment, _), count) in
            segments.into_iter().zip(counts).filter(|(_, count)| *count > 0)
        {
            let events = self.segment(segment, revision).await?;
            let newest = events.last().map_or(self.now(), |event| event.at);
            let times = vec![newest; count as usize];
            let surplus = trim.keep.surplus_events(&times, total, self.now());
            if surplus < times.len() || trimmed >= u64::from(trim.limit) {
                break;
            }
            if !trim.dry_run {
                let range = self.keys.segment(segment);
                let options = DeleteOptions::new().with_range(range.end);
                let write = Write {
                    compares: vec![base.same_store(&self.keys)],
                    operations: vec![TxnOp::delete(range.start, Some(options))],
                    ..Write::default()
                };
                self.connection.write(write).await?;
            }
            trimmed += events.len() as u64;
            total -= count;
        }
        Ok(trimmed)
    }

    async fn history(&self) -> Result<(Base, i64), Failure> {
        self.open().await?;
        let mut asks = Vec::new();
        let start = Start::ask(&self.keys, None, &mut asks);
        let mut pages = self.connection.read(&asks, None).await?;
        let revision = pages.revision;
        Ok((start.take(self, &mut pages)?.base, revision))
    }

    /// The events of a segment, in their order, as they were at this revision.
    async fn segment(&self, segment: u64, revision: i64) -> Result<Vec<Event>, Failure> {
        let asks = [Ask::all(self.keys.segment(segment))];
        let Page { mut entries, .. } = self.connection.read(&asks, Some(revision)).await?.next();
        entries.sort_by_key(|entry| entry.mod_revision());
        let mut events = Vec::new();
        for entry in &entries {
            let change: ChangeRecord = decode(entry, self.url())?;
            for (index, event) in (0..).zip(change.events) {
                let revision = event_revision(entry.mod_revision(), index);
                events.push(Event::new(revision, change.at, event.into_core()));
            }
        }
        Ok(events)
    }
}

/// The segments that are kept, oldest first, with the revisions at which they began.
fn segments(base: &Base) -> Vec<(u64, i64)> {
    let current = (base.log.segment, base.revision("log"));
    base.log.earlier.iter().copied().chain([current]).collect()
}
