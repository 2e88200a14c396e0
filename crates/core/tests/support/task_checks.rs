//! What must never happen to tasks, asserted at every step.

use super::World;
use super::checks::take;
use std::collections::BTreeSet;
use tenure_core::handover::TRIES_MAX;
use tenure_core::task::MOVES;
use tenure_core::{Change, EventKind, NewEvent, Status, Task, TaskId, Token, Try};

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
            // What a completed task waited for may have been removed since.
            if task.status != Status::Completed {
                let unmet = task.depends_on.iter().filter(|id| !satisfied(id)).count();
                assert_eq!(task.unmet as usize, unmet, "what {} waits for", task.id);
            }
            let is_worked_on = task.status == Status::InProgress;
            assert_eq!(task.claim.is_some(), is_worked_on, "the claim of {task:?}");
            assert_eq!(task.finished_at.is_some(), task.status.is_final(), "the end of {task:?}");
            let is_done = task.status.is_final() || task.status == Status::Review;
            assert!(is_done || task.finished_by.is_none(), "{task:?}");
            assert!(is_done || task.finished_claim.is_none(), "{task:?}");
            assert!(task.max_attempts > 0, "{task:?}");
            check_tries(task);
        }
        let ages: BTreeSet<u64> = self.tasks.iter().map(|task| task.age).collect();
        assert_eq!(ages.len(), self.tasks.len(), "two tasks are of the same age");
    }
}

/// One try at most is open, exactly while the task is worked on, and it is that of the claim.
fn check_tries(task: &Task) {
    let open: Vec<&Try> = task.tries.iter().filter(|one| one.ended_at.is_none()).collect();
    let claims: Vec<(&str, Token)> =
        task.claim.iter().map(|claim| (claim.by.as_str(), claim.token)).collect();
    let tried: Vec<(&str, Token)> = open.iter().map(|one| (one.by.as_str(), one.token)).collect();
    assert_eq!(tried, claims, "the open try of {task:?}");
    assert_eq!(task.open_try(), open.first().copied(), "it is the last of {task:?}");
    for one in &task.tries {
        assert_eq!(one.outcome.is_some(), one.ended_at.is_some(), "{one:?}");
        assert!(one.ended_at.is_none_or(|end| end >= one.claimed_at), "{one:?}");
    }
    let numbers: Vec<u32> = task.tries.iter().map(|one| one.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    assert!(task.tries.windows(2).all(|pair| pair[1].token > pair[0].token), "{task:?}");
    assert!(task.tries.len() <= TRIES_MAX, "{numbers:?}");
}
