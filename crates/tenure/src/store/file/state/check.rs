//! Checks the store's files, and removes what processes that died left behind.

use super::State;
use crate::store::Finding;
use crate::store::file::dialect::ForeignLocks;
use crate::store::file::error::FileStoreError;
use crate::store::file::held::is_draft;
use crate::store::file::journal::{Tail, remove_if_there};
use crate::store::store_time::StoreTime;
use std::path::PathBuf;
use tenure_core::WallTime;

impl State {
    /// Files that processes died over before they were complete.
    fn leftovers(&self) -> Vec<PathBuf> {
        let folders = [self.journal.folder(), self.archive.folder()].into_iter();
        let entries =
            folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let drafts = entries.map(|entry| entry.path()).filter(|path| is_draft(path));
        let locks = self.foreign_locks.iter().flat_map(ForeignLocks::leftover_drafts);
        let records = self.records.drafts().into_iter().filter(|path| is_draft(path));
        drafts.chain(self.held.drafts()).chain(records).chain(locks).collect()
    }

    /// Removes what processes that died left behind, and returns how much. The caller must be the
    /// writer whose turn it is: then no other process is making files.
    pub(in crate::store::file) fn tidy(&mut self, at: StoreTime) -> Result<usize, FileStoreError> {
        let leftovers = self.leftovers();
        for path in &leftovers {
            remove_if_there(path)?;
        }
        let mut removed = leftovers.len();
        self.read_on()?;
        if let Some(foreign) = &self.foreign_locks {
            for orphan in foreign.orphans(&self.ledger)? {
                removed += usize::from(foreign.remove_orphan(&orphan)?);
            }
            for path in foreign.abandoned(WallTime(at.wall_ms)) {
                foreign.set_aside(&path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Counts what [`State::tidy`] would remove.
    pub(in crate::store::file) fn count_leftovers(
        &mut self,
        at: StoreTime,
    ) -> Result<usize, FileStoreError> {
        let count = self.leftovers().len();
        self.read_on()?;
        let Some(foreign) = &self.foreign_locks else { return Ok(count) };
        let orphans = foreign.orphans(&self.ledger)?.len();
        Ok(count + orphans + foreign.abandoned(WallTime(at.wall_ms)).len())
    }

    pub(in crate::store::file) fn check(
        &mut self,
        at: StoreTime,
    ) -> Result<Vec<Finding>, FileStoreError> {
        let tail = self.read_on()?;
        let journal = match tail {
            Tail::Wrong => Err(self.wrong_line().into_message()),
            _ => self.load_tasks().map_err(FileStoreError::into_message),
        };
        let archive = self.archive.check().map_err(FileStoreError::into_message);
        let generation = self.journal.header.generation;
        let differences = self.held.differences(&self.ledger);
        let finding = |subject: &str, ok: bool, message: String| Finding {
            subject: subject.to_owned(),
            ok,
            message,
        };
        let aside = std::fs::read_dir(self.folder.join("aside")).map_or(0, Iterator::count);
        let now = WallTime(at.wall_ms);
        let locks = match &self.foreign_locks {
            Some(locks) => Some(locks.problems(now)?),
            // A dialect that has no lock files has none that cannot be read.
            None => self.foreign_tasks.as_ref().map(|_| vec![]),
        };
        let locks = locks.map(|problems| match problems.as_slice() {
            [] => finding("lock files", true, "all can be read".to_owned()),
            some => finding("lock files", false, some.join("; ")),
        });
        let list = self.foreign_tasks.as_ref().map(|tasks| match tasks.problems() {
            [] => finding("task list", true, "all entries make sense".to_owned()),
            some => finding("task list", false, some.join("; ")),
        });
        let mut findings = vec![
            finding(
                "journal",
                journal.is_ok(),
                journal
                    .err()
                    .unwrap_or_else(|| format!("generation {generation}, all lines whole")),
            ),
            finding(
                "done",
                archive.is_ok(),
                archive.err().unwrap_or_else(|| "completed tasks can be read".to_owned()),
            ),
            finding(
                "held",
                true,
                match differences {
                    0 => "the files in held/ say what the journal says".to_owned(),
                    count => {
                        format!("{count} files in held/ are behind; the next change updates them")
                    }
                },
            ),
            finding(
                "aside",
                true,
                match aside {
                    0 => "nothing was set aside".to_owned(),
                    count => format!(
                        "{count} unreadable files were kept in {}",
                        self.folder.join("aside").display()
                    ),
                },
            ),
        ];
        findings.extend(locks.into_iter().chain(list));
        Ok(findings)
    }
}
