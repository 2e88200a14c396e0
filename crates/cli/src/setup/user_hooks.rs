//! The hooks of a host in its user's own settings. Some hosts read a project's settings only in the
//! folder in which they are started: the user's hooks then do there what the project's would.

use super::hook_entries::HookEntries;
use super::host::{HOOKS, HookFile, Host};
use super::plan::Plan;
use super::project::{Project, project_at};
use super::target::{Removal, Target};
use super::trial::Trial;
use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// The hooks of this host in its user's settings.
#[derive(Debug)]
pub(crate) struct UserHooks(pub(crate) &'static Host);

impl UserHooks {
    /// The file, which is where the project's would be, and the entries.
    fn parts(&self, home: &Project) -> (PathBuf, Option<HookEntries>) {
        let entries = match &self.0.hooks {
            HookFile::Entries { entries, .. } => Some(entries.of_user()),
            HookFile::Plugin { .. } => None,
        };
        (self.0.hook_file(home), entries)
    }

    /// Whether the user's hook is to act on an event in this folder: the project around it is set up,
    /// and the host was started in another folder of it, so that the project's own hook does not run.
    pub(crate) fn acts(&self, folder: &Path, started_in: &Path) -> bool {
        let Some(project) = project_at(folder) else { return false };
        let is_started_there = started_in.canonicalize().is_ok_and(|path| path == project.root);
        !is_started_there && self.0.is_set_up(&project)
    }
}

impl Target for UserHooks {
    fn word(&self) -> &'static str {
        self.0.word
    }

    fn found(&self, home: &Project) -> Option<String> {
        self.0.found(home)
    }

    fn add(&self, home: &Project, plan: &mut Plan) -> Result<(), Failure> {
        let (file, entries) = self.parts(home);
        let Some(entries) = entries else { return Ok(()) };
        plan.edit(self.0.word, HOOKS, &file, |text| entries.with(text).map(Some))
    }

    fn remove(&self, removal: &Removal<'_>, plan: &mut Plan) -> Result<(), Failure> {
        let (file, entries) = self.parts(removal.project);
        let Some(entries) = entries else { return Ok(()) };
        plan.edit(self.0.word, HOOKS, &file, |text| match text {
            Some(text) => entries.without(text),
            None => Ok(None),
        })
    }

    fn used(&self, home: &Project) -> Option<String> {
        self.0.used(home)
    }

    fn is_set_up(&self, home: &Project) -> bool {
        self.0.is_set_up(home)
    }

    fn instructions(&self, _: &Project) -> Option<PathBuf> {
        None
    }

    fn folders(&self) -> &'static [&'static str] {
        self.0.folders
    }

    fn trial(&self, _: &Project) -> Option<Trial> {
        None
    }

    fn advice(&self) -> Option<&'static str> {
        None
    }
}
