//! Files that get another name in their folder: hooks that are set aside as they are and brought back
//! later. They are neither read nor followed if they are links.

use super::plan::refused;
use crate::failure::Failure;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tenure::file::FileError;

/// A planned rename.
#[derive(Debug)]
pub(crate) struct PlannedRename {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
    /// The text of the file that goes, if one has that name. It must still be the same then.
    pub(super) replaced: Option<String>,
}

impl PlannedRename {
    /// Plans it, if the file belongs to this user.
    pub(super) fn of(from: PathBuf, name: &str) -> Result<PlannedRename, Failure> {
        let metadata = fs::symlink_metadata(&from)
            .map_err(|error| refused(format!("{} cannot be read: {error}", from.display())))?;
        let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
        if owner != user {
            let message = format!("{} belongs to another user (id {owner})", from.display());
            return Err(refused(message).hint("Run this as its owner."));
        }
        let to = from.with_file_name(name);
        Ok(PlannedRename { from, to, replaced: None })
    }

    /// Renames the file now.
    pub(super) fn apply(&self) -> Result<&PlannedRename, Failure> {
        let there = match fs::read_to_string(&self.to) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                return Err(refused(format!("{} cannot be read: {error}", self.to.display())));
            }
        };
        if there != self.replaced {
            return Err(FileError::Changed { path: self.to.clone() }.into());
        }
        rename(&self.from, &self.to)?;
        Ok(self)
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::rename(from, to).map_err(|error| {
        refused(format!("{} cannot be renamed to {}: {error}", from.display(), to.display()))
    })
}

/// Renames that are undone on drop unless they are kept.
#[derive(Default)]
pub(super) struct Undo<'a> {
    done: Vec<&'a PlannedRename>,
}

impl<'a> Undo<'a> {
    pub(super) fn add(&mut self, done: &'a PlannedRename) {
        self.done.push(done);
    }

    pub(super) fn keep(mut self) {
        self.done.clear();
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        for done in self.done.iter().rev() {
            let _ = rename(&done.to, &done.from);
        }
    }
}
