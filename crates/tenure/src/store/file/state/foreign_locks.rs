//! Holds that have lock files for other programs.

use super::State;
use crate::store::Renewal;
use crate::store::file::error::FileStoreError;
use crate::store::ledger::Record;

impl State {
    /// Removes the lock files of a change that is not remembered after all.
    pub(super) fn undo_locks(&self, records: &[Record]) {
        if let Some(locks) = &self.foreign_locks {
            locks.undo(records);
        }
    }

    /// Whether a hold still has the lock files that it needs.
    pub(super) fn has_files(&self, renewal: &Renewal) -> Result<bool, FileStoreError> {
        match &self.foreign_locks {
            Some(locks) => locks.has_files(&renewal.resources, renewal.token),
            None => Ok(true),
        }
    }
}
