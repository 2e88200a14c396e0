//! What `tenure setup` can set up, as one interface.

use super::plan::Plan;
use super::project::Project;
use super::trial::Trial;
use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// Something that `tenure setup` sets up: a host of agents, or git.
///
/// A target only plans; the plan is written when all targets have planned. Planning twice must
/// change nothing the second time, and removing must give back each file as it was.
pub(crate) trait Target: Sync {
    /// Its name on the command line.
    fn word(&self) -> &'static str;

    /// The sign by which it seems to be used here, in a few words; `None` if it does not.
    fn found(&self, project: &Project) -> Option<String>;

    /// Plans to set it up, or to bring it up to date.
    fn add(&self, project: &Project, plan: &mut Plan) -> Result<(), Failure>;

    /// Plans to remove all of it. What users changed elsewhere in the files stays.
    fn remove(&self, removal: &Removal<'_>, plan: &mut Plan) -> Result<(), Failure>;

    /// A sign that it is used in this very project, for `tenure doctor`; `None` if it is not, or
    /// if that needs no mention.
    fn used(&self, project: &Project) -> Option<String>;

    /// Whether its hooks are in place, of whatever version.
    fn is_set_up(&self, project: &Project) -> bool;

    /// The file of instructions, which several targets may share.
    fn instructions(&self, project: &Project) -> Option<PathBuf>;

    /// Folders below the root that it may create, innermost first.
    fn folders(&self) -> &'static [&'static str];

    /// How to try whether its hooks refuse, if that is possible.
    fn trial(&self, project: &Project) -> Option<Trial>;

    /// Why the host will not run its hooks here, as its own files say.
    fn untrusted(&self, _: &Project) -> Option<String> {
        None
    }

    /// What the user must do once by hand after setting it up.
    fn advice(&self) -> Option<&'static str>;
}

/// A removal of some targets.
pub(crate) struct Removal<'a> {
    pub(crate) project: &'a Project,
    /// Targets that stay.
    pub(crate) staying: Vec<&'static dyn Target>,
}

impl Removal<'_> {
    /// Whether a target that stays needs this file of instructions.
    pub(crate) fn is_needed(&self, file: &Path) -> bool {
        // One of them may be a link to the other.
        let real = |file: &Path| file.canonicalize().ok();
        self.staying.iter().any(|target| {
            let other = target.instructions(self.project);
            other.is_some_and(|other| other == file || real(&other) == real(file))
                && target.is_set_up(self.project)
        })
    }
}
