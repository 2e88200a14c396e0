//! Tasks that are other programs' too.

use super::State;
use crate::store::file::dialect::ForeignTasks;
use crate::store::file::error::FileStoreError;
use crate::store::ledger::Record;
use crate::store::store_time::StoreTime;
use crate::store::{Tally, TaskFilter};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use tenure_core::{GrantId, Kind, Scope, Snapshot, Status, Task, TaskId};

impl State {
    /// Whether other programs did something to tasks before this one got hold of theirs: a task may
    /// be done by now. Then it lets go again.
    pub(super) fn came_too_late(&self, records: &[Record]) -> Result<bool, FileStoreError> {
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
    pub(super) fn sync_board(&mut self, at: StoreTime) -> Result<Option<File>, FileStoreError> {
        if self.board.is_none() {
            return Ok(None);
        }
        self.load_tasks()?;
        let list = self.board.as_ref().map(ForeignTasks::lock).transpose()?.flatten();
        self.remembering(|state| state.take_in_board(at))?;
        Ok(list)
    }

    fn take_in_board(&mut self, at: StoreTime) -> Result<(), FileStoreError> {
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
        act: impl FnOnce(&mut State) -> Result<T, FileStoreError>,
    ) -> Result<T, FileStoreError> {
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
    pub(in crate::store::file) fn refresh_board(
        &mut self,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        self.begin(at)?;
        self.sync_board(at).map(drop)
    }

    /// Shows a task that another program has as in progress.
    pub(super) fn show_claim(&self, task: &mut Task, at: StoreTime) -> Result<(), FileStoreError> {
        if task.status != Status::Pending {
            return Ok(());
        }
        if let Some(board) = &self.board {
            board.show_claim(task, at);
        }
        match &self.face {
            Some(face) if task.status == Status::Pending => face.show_claim(task, at),
            _ => Ok(()),
        }
    }

    /// How many tasks of each section have each status; what other programs have is in progress.
    pub(in crate::store::file) fn tallies(
        &mut self,
        at: StoreTime,
    ) -> Result<Vec<Tally>, FileStoreError> {
        let mut tallies = self.with_tasks()?.tasks.tallies();
        let mut ids: BTreeSet<TaskId> =
            self.board.iter().flat_map(|board| board.claimed()).cloned().collect();
        if let Some(face) = self.face.as_ref().filter(|_| self.board.is_some()) {
            ids.extend(face.locked_tasks()?);
        }
        for id in ids {
            let Some(known) = self.ledger.tasks.get(&id) else { continue };
            let mut shown = known.clone();
            self.show_claim(&mut shown, at)?;
            if shown.status != known.status {
                count(&mut tallies, &shown, known.status, -1);
                count(&mut tallies, &shown, shown.status, 1);
            }
        }
        tallies.retain(|tally| tally.count > 0);
        Ok(tallies)
    }

    /// Shows rules that change tasks by hand what other programs have; says which those are.
    pub(super) fn show_claims(
        &self,
        scope: &Scope,
        seen: &mut Snapshot,
        at: StoreTime,
    ) -> Result<HashMap<TaskId, GrantId>, FileStoreError> {
        let mut shown = HashMap::new();
        let by_hand = matches!(scope, Scope::Tasks(tasks) if tasks.dependents);
        if self.board.is_none() || !by_hand {
            return Ok(shown);
        }
        for task in &mut seen.tasks {
            let before = task.status;
            self.show_claim(task, at)?;
            if let Some(claim) = task.claim.as_ref().filter(|_| task.status != before) {
                shown.insert(task.id.clone(), claim.grant);
            }
        }
        Ok(shown)
    }

    /// The same of other programs' tasks: what they have is in progress.
    pub(super) fn list_board(
        &mut self,
        filter: &TaskFilter,
        at: StoreTime,
    ) -> Result<Vec<Task>, FileStoreError> {
        let mut tasks: Vec<Task> = self.ledger.tasks.all().cloned().collect();
        for task in &mut tasks {
            self.show_claim(task, at)?;
        }
        tasks.retain(|task| filter.admits(task));
        tasks.truncate(filter.limit as usize);
        Ok(tasks)
    }
}

/// In records, what another program has is pending: its own file says who has it.
pub(super) fn hide_claims(records: &mut [Record], shown: &HashMap<TaskId, GrantId>) {
    for record in records {
        let Record::Task(task) = record else { continue };
        let grant = task.claim.as_ref().map(|claim| claim.grant);
        if grant.is_some() && grant == shown.get(&task.id).copied() {
            task.status = Status::Pending;
            task.claim = None;
            task.claimed_at = None;
        }
    }
}

fn count(tallies: &mut Vec<Tally>, task: &Task, status: Status, by: i64) {
    let same = |tally: &&mut Tally| tally.section == task.section && tally.status == status;
    match tallies.iter_mut().find(same) {
        Some(tally) => tally.count = tally.count.saturating_add_signed(by),
        None if by > 0 => tallies.push(Tally { section: task.section.clone(), status, count: 1 }),
        None => {}
    }
}

/// Whether other programs' tasks may be part of what is looked at.
pub(in crate::store::file) fn is_about_tasks(scope: &Scope) -> bool {
    match scope {
        Scope::Tasks(_) | Scope::Everything => true,
        Scope::At { resources, .. } | Scope::Queues(resources) => {
            resources.iter().any(|resource| resource.kind() == Kind::Task)
        }
    }
}
