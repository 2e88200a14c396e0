//! Tasks that are other programs' too.

use super::State;
use crate::store::TaskFilter;
use crate::store::file::dialect::Board;
use crate::store::file::fault::Trouble;
use crate::store::ledger::Record;
use crate::store::moment::Moment;
use std::fs::File;
use tenure_core::{Kind, Look, Status, Task};

impl State {
    /// Whether other programs did something to tasks before this one got hold of theirs: a task may
    /// be done by now. Then it lets go again.
    pub(super) fn came_too_late(&self, records: &[Record]) -> Result<bool, Trouble> {
        let Some(board) = &self.board else { return Ok(false) };
        let takes = records.iter().any(|record| {
            matches!(record, Record::Hold(stored) if stored.hold.want.resource.kind() == Kind::Task)
        });
        if !takes || !board.has_news()? {
            return Ok(false);
        }
        if let Some(face) = &self.face {
            face.undo_all(records);
        }
        Ok(true)
    }

    /// Takes in what other programs did to their task list, and keeps them from changing it as long
    /// as the answer lives. Only with the seat.
    pub(super) fn sync_board(&mut self, at: Moment) -> Result<Option<File>, Trouble> {
        if self.board.is_none() {
            return Ok(None);
        }
        self.load_tasks()?;
        let list = self.board.as_ref().map(Board::lock).transpose()?.flatten();
        self.remembering(|state| state.take_in_board(at))?;
        Ok(list)
    }

    fn take_in_board(&mut self, at: Moment) -> Result<(), Trouble> {
        let Some(board) = &mut self.board else { return Ok(()) };
        let Some(merged) = board.take_in(&self.ledger, at)? else { return Ok(()) };
        if !merged.records.is_empty() {
            let next = self.ledger.revision + 1;
            self.append_line(merged.records, next, merged.events, at)?;
        }
        match &mut self.board {
            Some(board) if !merged.rewrite.is_empty() => {
                board.rewrite(&merged.rewrite, &self.ledger, at)
            }
            _ => Ok(()),
        }
    }

    /// Does something to the list and the journal. If that fails half way, on a full disk for
    /// example, the list is compared with the ledger once more.
    pub(super) fn remembering<T>(
        &mut self,
        act: impl FnOnce(&mut State) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let done = act(self);
        if let Some(board) = self.board.as_mut().filter(|_| done.is_err()) {
            board.read_again();
        }
        done
    }

    /// Whether tasks are other programs' too, so that looking at them needs the seat.
    pub(in crate::store::file) fn has_board(&self) -> bool {
        self.board.is_some()
    }

    /// Takes in what other programs did to their task list. Only with the seat.
    pub(in crate::store::file) fn refresh_board(&mut self, at: Moment) -> Result<(), Trouble> {
        self.begin(at)?;
        self.sync_board(at).map(drop)
    }

    /// Shows a task that another program has as in progress.
    pub(super) fn show_claim(&self, task: &mut Task) -> Result<(), Trouble> {
        if task.status != Status::Pending {
            return Ok(());
        }
        if let Some(board) = &self.board {
            board.show_claim(task);
        }
        match &self.face {
            Some(face) if task.status == Status::Pending => face.show_claim(task),
            _ => Ok(()),
        }
    }

    /// The same of other programs' tasks: what they have is in progress.
    pub(super) fn list_board(&mut self, filter: &TaskFilter) -> Result<Vec<Task>, Trouble> {
        let mut tasks: Vec<Task> = self.ledger.tasks.all().cloned().collect();
        for task in &mut tasks {
            self.show_claim(task)?;
        }
        tasks.retain(|task| filter.admits(task));
        tasks.truncate(filter.limit as usize);
        Ok(tasks)
    }
}

/// Whether other programs' tasks may be part of what is looked at.
pub(in crate::store::file) fn is_about_tasks(look: &Look) -> bool {
    match look {
        Look::Tasks(_) | Look::Everything => true,
        Look::At { resources, .. } | Look::Queues(resources) => {
            resources.iter().any(|resource| resource.kind() == Kind::Task)
        }
    }
}
