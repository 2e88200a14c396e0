//! Where a repository's hooks are, and whose they are.

use super::super::plan::Plan;
use super::super::project::Project;
use crate::exit::Exit;
use crate::failure::Failure;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder of hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) owner: Owner,
    /// A folder without links in which everything may be changed: the git directory or the project.
    root: PathBuf,
}

/// Which program owns the hooks of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// This clone alone: they are in its git directory.
    Clone,
    /// The project: they can be committed.
    Project,
    /// The project, and husky runs them, with `sh` whatever their first line says.
    Husky,
    /// Other projects too: the folder is outside.
    Elsewhere,
}

impl Folder {
    /// Allows changes in it.
    pub(super) fn allow_in(&self, plan: &mut Plan) {
        plan.allow(&self.root);
    }
}

/// The folder from which git takes hooks now.
pub(super) fn find(project: &Project) -> Result<Folder, Failure> {
    let directory = real(&git_path(project, &["--git-common-dir"])?);
    let hooks = git_path(project, &["--git-path", "hooks"])?;
    Ok(judge(project, &directory, hooks))
}

/// All folders in which hooks of tenure may be: the one now, the usual one, and husky's.
pub(super) fn all(project: &Project) -> Result<Vec<Folder>, Failure> {
    let directory = real(&git_path(project, &["--git-common-dir"])?);
    let usual = directory.join("hooks");
    let mut folders = vec![find(project)?, judge(project, &directory, usual)];
    folders.push(judge(project, &directory, project.root.join(".husky/_")));
    let mut seen: Vec<PathBuf> = Vec::new();
    folders.retain(|folder| {
        let is_new = !seen.contains(&folder.path);
        seen.push(folder.path.clone());
        is_new
    });
    Ok(folders)
}

/// Whose the hooks of this folder are. It need not exist.
fn judge(project: &Project, directory: &Path, hooks: PathBuf) -> Folder {
    let real_hooks = real(&hooks);
    if real_hooks.starts_with(directory) {
        return Folder { path: hooks, owner: Owner::Clone, root: directory.to_owned() };
    }
    if !real_hooks.starts_with(&project.root) {
        let root = project.root.clone();
        return Folder { path: hooks, owner: Owner::Elsewhere, root };
    }
    // Husky writes the hooks in `.husky/_`, which is not committed, and those run the files of the
    // same names in `.husky`.
    let husky = hooks.parent().filter(|parent| {
        hooks.file_name() == Some(OsStr::new("_"))
            && parent.file_name() == Some(OsStr::new(".husky"))
    });
    let root = project.root.clone();
    match husky {
        Some(husky) => Folder { path: husky.to_owned(), owner: Owner::Husky, root },
        None => Folder { path: hooks, owner: Owner::Project, root },
    }
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(found) = existing.canonicalize() {
            return match path.strip_prefix(existing) {
                Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
                _ => found,
            };
        }
    }
    path.to_owned()
}

/// A path that git names.
fn git_path(project: &Project, arguments: &[&str]) -> Result<PathBuf, Failure> {
    let failed = |reason: String| {
        Failure::new(
            Exit::Configuration,
            "GIT",
            format!("git cannot say where hooks are: {reason}"),
        )
        .hint("The target git needs a git repository, and git 2.31 or later.")
    };
    let mut command = Command::new("git");
    command.current_dir(&project.root).stdin(Stdio::null()).env("LC_ALL", "C");
    // Variables that git sets for its hooks would lead to another repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        command.env_remove(variable);
    }
    command.args(["rev-parse", "--path-format=absolute"]).args(arguments);
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(failed(text.lines().next().unwrap_or("it failed").to_owned()));
    }
    let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    Ok(PathBuf::from(OsStr::from_bytes(path)))
}
