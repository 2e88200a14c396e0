//! The file store's archive of completed tasks, one line each.

use super::parts::TaskRecord;
use super::record::Form;
use serde::{Deserialize, Serialize};
use tenure_core::{Task, TaskId};

/// A line about a task.
#[derive(Serialize, Deserialize)]
pub(crate) struct TaskLine {
    pub(crate) id: TaskId,
    /// None if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<Box<TaskRecord>>,
}

impl TaskLine {
    pub(crate) fn completed(task: &Task) -> TaskLine {
        TaskLine { id: task.id.clone(), task: Some(Box::new(TaskRecord::of(task))) }
    }

    pub(crate) fn deleted(id: &TaskId) -> TaskLine {
        TaskLine { id: id.clone(), task: None }
    }

    /// The task; none if it was deleted.
    pub(crate) fn into_task(self) -> Option<Task> {
        self.task.map(|task| (*task).into_core())
    }
}

/// A line about the key with which a task was added.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeyLine {
    pub(crate) key: String,
    pub(crate) id: TaskId,
}
