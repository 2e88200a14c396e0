//! The project that is set up: its root, and signs of the hosts that are used in it.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use tenure::place::{self, PlaceKind, Surroundings};

/// A project, and the surroundings of this process.
pub(crate) struct Project {
    /// The root of this git worktree; outside a repository, the current folder. Without links.
    pub(crate) root: PathBuf,
    /// Whether the root is that of a git worktree.
    pub(crate) is_repository: bool,
}

/// By what a host is recognised.
#[derive(Debug)]
pub(crate) struct Signs {
    /// Files and folders of the project.
    pub(crate) files: &'static [&'static str],
    /// Variables that the host sets for commands that it runs.
    pub(crate) variables: &'static [&'static str],
    /// Programs.
    pub(crate) programs: &'static [&'static str],
}

impl Project {
    /// The project around the current folder.
    pub(crate) fn of(context: &Context) -> Result<Project, Failure> {
        let (root, is_repository) = match context.place().map(|place| &place.kind) {
            Ok(PlaceKind::Repository { worktree_root, .. }) => (worktree_root.clone(), true),
            _ => (context.directory(), false),
        };
        let root = root.canonicalize().map_err(|error| {
            let message = format!("cannot use the folder {}: {error}", root.display());
            Failure::new(Exit::Configuration, "DIRECTORY", message)
        })?;
        Ok(Project { root, is_repository })
    }

    /// The home folder of the user, for the user's own settings.
    pub(crate) fn home() -> Result<Project, Failure> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let root = home.and_then(|home| home.canonicalize().ok()).ok_or_else(|| {
            Failure::new(Exit::Configuration, "NO_HOME", "no home folder for your settings")
        })?;
        Ok(Project { root, is_repository: false })
    }

    /// The first sign in the project itself, in words: a file or folder, or the host that runs
    /// this command.
    pub(crate) fn used(&self, signs: &Signs) -> Option<String> {
        let file = signs.files.iter().find(|name| self.root.join(name).exists());
        let variable = || signs.variables.iter().find(|name| std::env::var_os(name).is_some());
        file.map(|name| (*name).to_owned())
            .or_else(|| variable().map(|name| format!("the variable {name}")))
    }

    /// As [`Project::used`], and programs that are installed.
    pub(crate) fn found(&self, signs: &Signs) -> Option<String> {
        let installed = || signs.programs.iter().find(|name| program(name).is_some());
        self.used(signs).or_else(|| installed().map(|name| format!("the program {name}")))
    }

    /// A path as a user writes it: relative to the root if it is below it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

/// The project around a folder, if it is in a git worktree.
pub(crate) fn project_at(folder: &Path) -> Option<Project> {
    match place::find(&Surroundings::of_process(folder.to_owned())).ok()?.kind {
        PlaceKind::Repository { worktree_root, .. } => {
            Some(Project { root: worktree_root.canonicalize().ok()?, is_repository: true })
        }
        _ => None,
    }
}

/// Where a program is, by `PATH`.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let folders = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(name));
    files.find(|file| {
        let metadata = std::fs::metadata(file);
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    })
}
