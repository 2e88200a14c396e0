//! The locks of tasks that this process has claimed.
//!
//! The change that finishes a task needs the locks of its section and its files too. To look them up
//! costs the server more than to take them. They are remembered from the claim instead; if they are
//! no longer right, or other tasks wait for this one, the change writes something that is not locked,
//! which is noticed, and begins again.

use super::locks;
use parking_lot::Mutex;
use std::collections::HashMap;
use tenure_core::{Change, Scope, Status, TaskId, Write};

/// The locks of more tasks than these are not remembered.
const TASKS_MAX: usize = 4096;

#[derive(Default)]
pub(super) struct ClaimedTasks {
    locks: Mutex<HashMap<TaskId, Vec<String>>>,
}

impl ClaimedTasks {
    /// Notes which tasks a change claimed, and which it ended.
    pub(super) fn note(&self, change: &Change) {
        for write in &change.writes {
            let Write::Task(task) = write else { continue };
            let mut known = self.locks.lock();
            if task.status != Status::InProgress {
                known.remove(&task.id);
            } else if known.len() < TASKS_MAX {
                known.insert(task.id.clone(), locks::of_task(task));
            }
        }
    }

    /// All locks that a change of these tasks is likely to need, if they are known.
    pub(super) fn locks(&self, scope: &Scope) -> Option<Vec<String>> {
        let Scope::Tasks(scope) = scope else { return None };
        let names_more =
            scope.adds || scope.in_progress || scope.pick.is_some() || !scope.grants.is_empty();
        if names_more || scope.ids.is_empty() {
            return None;
        }
        let known = self.locks.lock();
        let locks: Option<Vec<&Vec<String>>> = scope.ids.iter().map(|id| known.get(id)).collect();
        Some(locks?.into_iter().flatten().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::TaskScope;
    use tenure_core::sample::full_task;

    #[test]
    fn what_was_claimed_is_known_until_it_ends() {
        let claimed = ClaimedTasks::default();
        let mut task = full_task();
        let scope = |ids: &[&TaskId]| {
            let ids = ids.iter().map(|id| (*id).clone()).collect();
            Scope::Tasks(TaskScope { ids, ..TaskScope::default() })
        };
        let written = |task: &tenure_core::Task| Change {
            writes: vec![Write::Task(Box::new(task.clone()))],
            ..Change::default()
        };
        task.status = Status::InProgress;
        claimed.note(&written(&task));
        assert_eq!(claimed.locks(&scope(&[&task.id])), Some(locks::of_task(&task)));
        let other: TaskId = "other".parse().unwrap();
        assert_eq!(claimed.locks(&scope(&[&task.id, &other])), None);
        assert_eq!(claimed.locks(&Scope::Everything), None);
        task.status = Status::Completed;
        claimed.note(&written(&task));
        assert_eq!(claimed.locks(&scope(&[&task.id])), None);
    }
}
