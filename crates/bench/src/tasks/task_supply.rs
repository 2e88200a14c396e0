//! Adds the tasks that a benchmark claims.

use crate::BenchError;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure::blocking::Client;
use tenure::core::retention::TASKS_KEPT;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{Status, TaskId};

/// How many tasks are added in one change: enough to share a sync, few enough for memory.
const BATCH_TASKS: usize = 10_000;

/// The same for a store at servers, which take no change of any size.
const BATCH_TASKS_REMOTE: usize = 2_000;

/// How many tasks of each status a store has.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(super) all: usize,
    pub(super) pending: usize,
    pub(super) in_progress: usize,
    pub(crate) completed: usize,
}

pub(crate) fn counts(client: &Client) -> Result<Counts, BenchError> {
    let mut counts = Counts::default();
    for tally in client.run(client.asynchronous().tasks().tallies())? {
        let count = tally.count as usize;
        counts.all += count;
        match tally.status {
            Status::Pending => counts.pending += count,
            Status::InProgress => counts.in_progress += count,
            Status::Completed => counts.completed += count,
            _ => {}
        }
    }
    Ok(counts)
}

/// Refuses a store that already has tasks: it is in use.
pub(super) fn refuse_used(url: &str) -> Result<(), BenchError> {
    match counts(&Client::open(url)?)?.all {
        0 => Ok(()),
        tasks => Err(BenchError::UsedStore { url: url.to_owned(), tasks }),
    }
}

/// Adds tasks until there are `total`, of which `pending` can be claimed, spread evenly among the
/// completed ones. Returns how many were added.
pub(super) fn fill(client: &Client, total: usize, pending: usize) -> Result<usize, BenchError> {
    let before = counts(client)?;
    let added = total.saturating_sub(before.all);
    let fresh = pending.saturating_sub(before.pending).min(added);
    let is_pending = |number: usize| (number + 1) * fresh / added > number * fresh / added;
    let task = |number: usize| {
        let mut task = new_task();
        if !is_pending(number) {
            task.status = Status::Completed;
        }
        task
    };
    let is_local = client.asynchronous().info().local;
    let batch_size = if is_local { BATCH_TASKS } else { BATCH_TASKS_REMOTE };
    for first in (0..added).step_by(batch_size) {
        let batch = (first..added.min(first + batch_size)).map(task).collect();
        client.run(client.asynchronous().tasks().add(batch))?;
    }
    Ok(added)
}

/// Adds tasks until this many can be claimed.
pub(super) fn stock_up(client: &Client, pending: usize) -> Result<(), BenchError> {
    let counts = counts(client)?;
    let missing = pending.saturating_sub(counts.pending);
    fill(client, counts.all + missing, counts.pending + missing)?;
    Ok(())
}

/// A store that is refilled with tasks while workers claim them.
pub(crate) struct TaskSupply {
    client: Client,
    completed_before: usize,
}

impl TaskSupply {
    pub(crate) fn of(url: &str) -> Result<TaskSupply, BenchError> {
        refuse_used(url)?;
        let client = Client::open(url)?;
        let completed_before = counts(&client)?.completed;
        Ok(TaskSupply { client, completed_before })
    }

    /// Adds tasks until this many can be claimed, and waits until they are on disk.
    pub(crate) fn fill_up(&self, pending: u64) -> Result<(), BenchError> {
        stock_up(&self.client, pending as usize)?;
        sync_all();
        Ok(())
    }

    /// Adds so many completed tasks, and among them so many that can be claimed.
    pub(crate) fn fill_up_beside(
        &self,
        completed: usize,
        pending: usize,
    ) -> Result<(), BenchError> {
        fill(&self.client, completed + pending, pending)?;
        sync_all();
        Ok(())
    }

    /// Checks that the store has as many completed tasks as the workers reported, or as many as it
    /// keeps.
    pub(crate) fn must_have_completed(&self, done: u64) -> Result<(), BenchError> {
        let counts = counts(&self.client)?;
        let (store, workers) = (counts.completed - self.completed_before, done as usize);
        let is_right = store == workers.min(store.max(TASKS_KEPT as usize));
        match (is_right, counts.in_progress) {
            (false, _) => Err(BenchError::Miscounted { what: "completed", store, workers }),
            (true, 0) => Ok(()),
            (true, store) => Err(BenchError::Miscounted { what: "in progress", store, workers: 0 }),
        }
    }
}

/// A task with an id that no other one had: of this process, and of the others that fill the store. What is
/// left in the store says nothing of that: retention removes completed tasks.
fn new_task() -> NewTask {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = format!("bench-{}-{number:07}", std::process::id());
    let id: TaskId = id.parse().expect("letters and digits are an id");
    NewTask::new(id, format!("Task number {number}"))
}

/// Waits until everything written is on disk.
pub(super) fn sync_all() {
    rustix::fs::sync();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_were_removed_do_not_matter_to_the_ids_of_further_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("db").display());
        let supply = TaskSupply::of(&url).expect("a new store");
        supply.fill_up(3).expect("three tasks");
        let tasks = supply.client.asynchronous().tasks();
        let first = supply.client.run(tasks.list(&Default::default())).expect("a list")[0].clone();
        supply.client.run(tasks.delete(&first.id)).expect("it is gone");
        supply.fill_up(5).expect("further tasks");
        assert_eq!(counts(&supply.client).expect("counts").pending, 5);
    }
}
