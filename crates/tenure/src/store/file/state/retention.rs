//! Finding completed tasks and events that are beyond what is kept, and removing what was deleted.

use super::State;
use crate::store::file::archive::BUCKETS;
use crate::store::file::error::FileStoreError;
use crate::store::ledger::surplus_of;
use crate::store::store_time::StoreTime;
use crate::store::{SurplusTasks, Trim};
use tenure_core::{EndedTask, Keep, Status, WallTime};

/// Among so many archived tasks the oldest are found by reading all of them, in some tens of
/// milliseconds; so they are where very many are asked for. Otherwise one file of the archive is looked at each time: ids are spread over the
/// files by their hash, so that each file has its share of every time.
const ALL_READ_MAX: u64 = 4096;

/// After so many events another file of the archive is looked at.
const EVENTS_PER_FILE: u64 = 256;

impl State {
    /// Finished tasks that are beyond what is kept, oldest first. Tasks that are listed by other
    /// programs are theirs to remove.
    pub(in crate::store::file) fn surplus(
        &mut self,
        asked: &SurplusTasks,
        at: StoreTime,
    ) -> Result<Vec<EndedTask>, FileStoreError> {
        self.read_good()?;
        self.load_tasks()?;
        let now = WallTime(at.wall_ms);
        let archived = self.ledger.tasks.archived_count();
        if self.foreign_tasks.is_some() {
            return Ok(vec![]);
        }
        if asked.status != Status::Completed || archived == 0 {
            return Ok(self.ledger.tasks.surplus(asked, now));
        }
        let total = self.ledger.tasks.count(Status::Completed);
        if archived <= ALL_READ_MAX || u64::from(asked.limit) * 16 >= archived {
            let mut ended = self.archived_in(0..BUCKETS)?;
            ended.extend(self.ledger.tasks.ended(Status::Completed).cloned());
            ended.sort();
            return Ok(surplus_of(ended.into_iter(), total, asked, now));
        }
        let share = |newest: u64| newest.div_ceil(u64::from(BUCKETS));
        let newest = asked.keep.newest.filter(|newest| *newest < total).map(share);
        let asked = SurplusTasks { keep: Keep { newest, ..asked.keep }, ..*asked };
        let file = self.file_to_look_at();
        let mut ended = self.archived_in(file..file + 1)?;
        ended.sort();
        let total = ended.len() as u64;
        Ok(surplus_of(ended.into_iter(), total, &asked, now))
    }

    fn file_to_look_at(&self) -> u32 {
        (self.ledger.revision / EVENTS_PER_FILE % u64::from(BUCKETS)) as u32
    }

    fn archived_in(&self, files: std::ops::Range<u32>) -> Result<Vec<EndedTask>, FileStoreError> {
        let mut ended = self.archive.ended(files)?;
        let is_archived = |ended: &EndedTask| {
            !self.deleted.contains(&ended.id) && self.ledger.tasks.get(&ended.id).is_none()
        };
        ended.retain(is_archived);
        Ok(ended)
    }

    /// Removes old generations of the journal, and what was deleted from the archive: from one of its
    /// files, or from all where there is no limit. Only for the writer.
    pub(in crate::store::file) fn trim(
        &mut self,
        trim: Trim,
        at: StoreTime,
    ) -> Result<u64, FileStoreError> {
        self.begin(at)?;
        let total = self.journal.header.events + self.events_here;
        let trimmed = self.journal.trim(trim, total, WallTime(at.wall_ms))?;
        if !trim.dry_run {
            self.recent.clear();
            let file = self.file_to_look_at();
            let files = if trim.limit == u32::MAX { 0..BUCKETS } else { file..file + 1 };
            files.into_iter().try_for_each(|number| self.archive.compact(number))?;
        }
        Ok(trimmed)
    }
}
