//! Tasks that are shared with other programs.

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
    /// Whether other programs changed their tasks before this process had taken the lock files of
    /// those that it claims: one may be done by now. If so, the lock files are given back.
    pub(super) fn came_too_late(&self, records: &[Record]) -> Result<bool, FileStoreError> {
        let Some(tasks) = &self.foreign_tasks else { return Ok(false) };
        let takes = records.iter().any(|record| {
            matches!(record, Record::Hold(stored) if stored.hold.want.resource.kind() == Kind::Task)
        });
        if !takes || !tasks.has_changed()? {
            return Ok(false);
        }
        self.undo_locks(records);
        Ok(true)
    }

    /// Takes in other programs' changes to their task list, and keeps them from changing it while
    /// the answer lives. The caller must be the writer whose turn it is.
    pub(super) fn sync_foreign_tasks(
        &mut self,
        at: StoreTime,
    ) -> Result<Option<File>, FileStoreError> {
        if self.foreign_tasks.is_none() {
            return Ok(None);
        }
        self.load_tasks()?;
        let list = self.foreign_tasks.as_ref().map(ForeignTasks::lock).transpose()?.flatten();
        self.remembering(|state| state.take_in_foreign_tasks(at))?;
        Ok(list)
    }

    fn take_in_foreign_tasks(&mut self, at: StoreTime) -> Result<(), FileStoreError> {
        let Some(tasks) = &mut self.foreign_tasks else { return Ok(()) };
        let Some(changes) = tasks.take_in(&self.ledger, at)? else { return Ok(()) };
        if !changes.records.is_empty() {
            let next = self.ledger.revision + 1;
            self.append_line(changes.records, next, changes.events, at)?;
        }
        match &mut self.foreign_tasks {
            Some(tasks) if !changes.rewrite.is_empty() => {
                tasks.rewrite(&changes.rewrite, &self.ledger, at)
            }
            _ => Ok(()),
        }
    }

    /// Runs `act`, which changes the list and the journal. If it fails half way, on a full disk for
    /// example, the list is compared with the ledger once more.
    pub(super) fn remembering<T>(
        &mut self,
        act: impl FnOnce(&mut State) -> Result<T, FileStoreError>,
    ) -> Result<T, FileStoreError> {
        let done = act(self);
        if let Some(tasks) = self.foreign_tasks.as_mut().filter(|_| done.is_err()) {
            tasks.forget();
        }
        done
    }

    /// Whether tasks are shared with other programs, so that reading them takes the writer's turn.
    pub(in crate::store::file) fn has_foreign_tasks(&self) -> bool {
        self.foreign_tasks.is_some()
    }

    /// Takes in other programs' changes to their task list. The caller must be the writer whose turn
    /// it is.
    pub(in crate::store::file) fn refresh_foreign_tasks(
        &mut self,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        self.begin(at)?;
        self.sync_foreign_tasks(at).map(drop)
    }

    /// Shows a task that another program has as in progress.
    pub(super) fn show_claim(&self, task: &mut Task, at: StoreTime) -> Result<(), FileStoreError> {
        if task.status != Status::Pending {
            return Ok(());
        }
        if let Some(tasks) = &self.foreign_tasks {
            tasks.show_claim(task, at);
        }
        match &self.foreign_locks {
            Some(locks) if task.status == Status::Pending => locks.show_claim(task, at),
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
            self.foreign_tasks.iter().flat_map(|tasks| tasks.claimed()).cloned().collect();
        if let Some(locks) = self.foreign_locks.as_ref().filter(|_| self.has_foreign_tasks()) {
            ids.extend(locks.locked_tasks()?);
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

    /// Shows other programs' claims to rules that change tasks by hand, and returns them.
    pub(super) fn show_claims(
        &self,
        scope: &Scope,
        seen: &mut Snapshot,
        at: StoreTime,
    ) -> Result<HashMap<TaskId, GrantId>, FileStoreError> {
        let mut shown = HashMap::new();
        let by_hand = matches!(scope, Scope::Tasks(tasks) if tasks.dependents);
        if self.foreign_tasks.is_none() || !by_hand {
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

    /// Lists tasks that are shared with other programs: a task that one of them has is in progress.
    pub(super) fn list_foreign(
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
        Ok(tasks.into_iter().map(|task| filter.listed(task)).collect())
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
        Scope::Tasks(_) | Scope::Everything | Scope::Waits { .. } => true,
        Scope::At { resources, .. } | Scope::Queues(resources) => {
            resources.iter().any(|resource| resource.kind() == Kind::Task)
        }
    }
}
