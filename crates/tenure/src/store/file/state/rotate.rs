//! How a handle begins the next generation of the journal.

use super::State;
use crate::platform::access;
use crate::store::file::error::FileStoreError;
use crate::store::file::failpoint::failpoint;
use crate::store::file::journal::{Header, Line, draft, sync_folder, tasks_path};
use crate::store::file::line;
use crate::store::format::journal::VERSION;
use crate::store::ledger::Record;
use std::io::Write as _;
use tenure_core::Status;

/// How much more is written before a generation that could not be followed is tried again.
const ROTATE_AGAIN_BYTES: u64 = 64 * 1024;

impl State {
    /// After a change: begins the next generation if this one is over. The change is
    /// there already, so what fails here is left to the next.
    pub(super) fn finish(&mut self) {
        if self.journal.is_over() && self.journal.end >= self.rotate_from && self.rotate().is_err()
        {
            self.rotate_from = self.journal.end + ROTATE_AGAIN_BYTES;
            // It may be there or not, and what is archived may be in the journal still.
            self.stale = true;
        }
    }

    fn rotate(&mut self) -> Result<(), FileStoreError> {
        self.load_tasks()?;
        self.load_answers()?;
        // What other programs list must be compared with what is known of it.
        if self.foreign_tasks.is_none() {
            let all = self.ledger.tasks.all();
            let completed = all.filter(|task| task.status == Status::Completed);
            self.archive.add(completed, self.deleted.iter())?;
            self.ledger.tasks.archive_completed();
        }
        self.deleted.clear();
        let generation = self.journal.header.generation + 1;
        let tasks_bytes = self.write_tasks(generation)?;
        let header = Header {
            generation,
            revision: self.ledger.revision,
            events: self.journal.header.events + self.events_here,
            boot: self.ledger.boot.clone(),
            ended_boots: self.ledger.ended_boots.clone(),
            tasks_bytes,
            tenure: VERSION,
            ..self.journal.header.clone()
        };
        let archived = self.ledger.tasks.archived_records();
        let answers = self.ledger.answers.records();
        self.journal.rotate(header, self.ledger.records().chain(archived), answers)?;
        self.events_here = 0;
        self.mark_published();
        self.journal.remove_old_tasks()?;
        Ok(())
    }

    /// Writes the tasks for the next generation beside it, on disk.
    fn write_tasks(&self, generation: u64) -> Result<u64, FileStoreError> {
        let mut bytes = Vec::new();
        for task in self.ledger.tasks.all() {
            let line = Line::state(Record::Task(Box::new(task.clone())));
            bytes.extend_from_slice(&line::encode(&line));
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let folder = self.journal.folder();
        let draft = draft(folder);
        let placed = (|| {
            let mut file = access::create_new(&draft)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            failpoint("rotate-tasks-drafted");
            std::fs::rename(&draft, tasks_path(folder, generation))?;
            sync_folder(folder)
        })();
        if placed.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        failpoint("rotate-tasks-placed");
        placed?;
        Ok(bytes.len() as u64)
    }
}
