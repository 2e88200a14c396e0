//! `native`: a folder of tenure's own, with no other program's files.

use super::{DialectRules, HoldDefaults, LockFiles, TaskListFormat};

#[derive(Debug)]
pub(super) struct Native;

impl DialectRules for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn temporary_files(&self) -> &'static [&'static str] {
        &[]
    }

    fn lock_files(&self) -> Option<&'static dyn LockFiles> {
        None
    }

    fn task_list(&self) -> Option<&'static dyn TaskListFormat> {
        None
    }

    fn defaults(&self) -> HoldDefaults {
        HoldDefaults::default()
    }
}
