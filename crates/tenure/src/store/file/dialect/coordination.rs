//! `coordination`: programs that share a task list, `tasks.json`, and change it under a kernel lock
//! on `tasks.json.lock`. The lock file says nothing, so there are no lock files to read.

use super::task_list::{TaskList, TasksJson};
use super::{DialectRules, HoldDefaults, LockFiles, SharedFolder, TaskListFormat};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Coordination;

impl DialectRules for Coordination {
    fn name(&self) -> &'static str {
        "coordination"
    }

    fn temporary_files(&self) -> &'static [&'static str] {
        &["tasks.json.lock"]
    }

    fn lock_files(&self) -> Option<&'static dyn LockFiles> {
        None
    }

    fn task_list(&self) -> Option<&'static dyn TaskListFormat> {
        Some(&Coordination)
    }

    fn defaults(&self) -> HoldDefaults {
        HoldDefaults::default()
    }
}

impl TaskListFormat for Coordination {
    fn files(&self, folder: &Path) -> Vec<PathBuf> {
        vec![TasksJson::path(folder)]
    }

    fn open(&self, shared: &SharedFolder<'_>) -> Box<dyn TaskList> {
        Box::new(TasksJson::new(shared))
    }

    fn has_endless_claims(&self) -> bool {
        true
    }
}
