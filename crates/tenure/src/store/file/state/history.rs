//! What a handle answers about history and small records.

use super::State;
use crate::store::file::error::FileStoreError;
use crate::store::store_time::StoreTime;
use crate::store::{EventSearch, Prefer, RecordSearch};
use tenure_core::{Event, EventFilter, RecordSnapshot, Revision};

impl State {
    pub(in crate::store::file) fn events(
        &mut self,
        after: Revision,
        limit: usize,
    ) -> Result<Vec<Event>, FileStoreError> {
        self.read_good()?;
        let in_memory =
            self.recent.front().is_some_and(|first| first.revision.0 <= after.0.saturating_add(1));
        if in_memory || after.0 >= self.ledger.revision {
            let later = self.recent.iter().filter(|event| event.revision > after);
            return Ok(later.take(limit).cloned().collect());
        }
        let mut events = Vec::new();
        self.journal.history(after.0, |line| {
            let later = line.into_events().filter(|event| event.revision > after);
            events.extend(later.take(limit - events.len()));
            events.len() < limit
        })?;
        Ok(events)
    }

    pub(in crate::store::file) fn newest_events(
        &mut self,
        limit: usize,
    ) -> Result<Vec<Event>, FileStoreError> {
        self.read_good()?;
        if self.recent.len() >= limit {
            return Ok(self.recent.range(self.recent.len() - limit..).cloned().collect());
        }
        self.search_backwards(&EventSearch::newest(EventFilter::default(), limit as u32))
    }

    /// The events that are asked for, oldest first.
    pub(in crate::store::file) fn search_events(
        &mut self,
        search: &EventSearch,
    ) -> Result<Vec<Event>, FileStoreError> {
        self.read_good()?;
        if search.prefer == Prefer::Newest {
            let found = self.recent.iter().rev().filter(|event| search.admits(event));
            let mut found: Vec<Event> = found.take(search.limit as usize).cloned().collect();
            if found.len() == search.limit as usize {
                found.reverse();
                return Ok(found);
            }
            return self.search_backwards(search);
        }
        let mut events = Vec::new();
        self.journal.history(search.after.0, |line| {
            let found = line.into_events().filter(|event| search.admits(event));
            events.extend(found.take(search.limit as usize - events.len()));
            events.len() < search.limit as usize
        })?;
        Ok(events)
    }

    /// Reads the history from its end until enough is found.
    fn search_backwards(&self, search: &EventSearch) -> Result<Vec<Event>, FileStoreError> {
        let limit = search.limit as usize;
        let mut events: Vec<Event> = Vec::new();
        self.journal.history_backwards(|mut found| {
            let is_last = found.first().is_some_and(|first| first.revision <= search.after);
            found.retain(|event| search.admits(event));
            found.append(&mut events);
            events = std::mem::take(&mut found);
            events.len() < limit && !is_last
        })?;
        let surplus = events.len().saturating_sub(limit);
        events.drain(..surplus);
        Ok(events)
    }

    pub(in crate::store::file) fn search_records(
        &mut self,
        search: &RecordSearch,
        at: StoreTime,
    ) -> Result<Vec<RecordSnapshot>, FileStoreError> {
        self.read_good()?;
        Ok(self.records.search(search, &self.ledger.boot, at)?)
    }
}
