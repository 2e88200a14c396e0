//! What must never happen to tasks, asserted at every step.

use super::World;
use super::checks::take;
use std::collections::BTreeSet;
use tenure_core::task::MOVES;
use tenure_core::{Change, EventKind, NewEvent, Status, Task, TaskId};

impl World {
    /// A task is written for a reason that an event tells, and only as the state machine allows.
    pub(super) fn check_task(&self, task: &Task, change: &Change, told: &mut Vec<&NewEvent>) {
        assert!(change.durable, "what is written of tasks is kept");
        let resource = task.id.resource();
        let Some(before) = self.tasks.iter().find(|other| other.id == task.id) else {
            assert_eq!(take(told, &resource, None).kind, EventKind::Added);
            return;
        };
        let about = |event: &&NewEvent| event.resource.as_ref() == Some(&resource);
        if before.status != task.status {
            let (from, to) = (before.status, task.status);
            assert!(MOVES.iter().any(|row| (row.0, row.2) == (from, to)), "{from} to {to}");
            assert!(change.events.iter().any(|event| about(&event)), "{from} to {to} untold");
        }
        let note = told.iter().position(|event| about(event) && event.token.is_none());
        note.map(|index| told.remove(index));
    }

    /// The records of tasks agree with themselves and with each other.
    pub(super) fn check_tasks(&self) {
        let satisfied = |id: &&TaskId| {
            let status = self.tasks.iter().find(|task| task.id == **id).map(|task| task.status);
            matches!(status, Some(Status::Completed | Status::Skipped))
        };
        for task in &self.tasks {
            let unmet = task.depends_on.iter().filter(|id| !satisfied(id)).count();
            assert_eq!(task.unmet as usize, unmet, "what {} waits for", task.id);
            let is_worked_on = task.status == Status::InProgress;
            assert_eq!(task.claim.is_some(), is_worked_on, "the claim of {task:?}");
            assert_eq!(task.finished_at.is_some(), task.status.is_final(), "the end of {task:?}");
            let is_done = task.status.is_final() || task.status == Status::Review;
            assert!(is_done || task.finished_by.is_none(), "{task:?}");
            assert!(is_done || task.finished_claim.is_none(), "{task:?}");
            assert!(task.max_attempts > 0, "{task:?}");
        }
        let ages: BTreeSet<u64> = self.tasks.iter().map(|task| task.age).collect();
        assert_eq!(ages.len(), self.tasks.len(), "two tasks are of the same age");
    }
}
