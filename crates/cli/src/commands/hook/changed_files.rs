//! Which files of a worktree have changes that are not committed, as `git status` says.

use crate::exit::Exit;
use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file with changes that are not committed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedFile {
    /// Its path from the root of the worktree.
    pub(super) path: PathBuf,
    /// Whether git does not know it yet.
    pub(super) is_untracked: bool,
}

/// More paths than this are asked for in several commands: the system limits their length.
const PATHS_MAX: usize = 500;

/// The changed files at or below these paths, which are absolute and in this worktree. Nothing is
/// written, not even git's index, and nothing that the repository configures is run.
pub(super) fn below(root: &Path, paths: &[PathBuf]) -> Result<Vec<ChangedFile>, Failure> {
    let mut changed = Vec::new();
    for some in paths.chunks(PATHS_MAX) {
        let mut arguments: Vec<OsString> = Vec::new();
        let options = ["-c", "core.fsmonitor=false", "--no-optional-locks", "--literal-pathspecs"];
        arguments.extend(options.map(OsString::from));
        let verb =
            ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--"];
        arguments.extend(verb.map(OsString::from));
        arguments.extend(some.iter().map(OsString::from));
        changed.extend(entries(&git(root, &arguments)?));
    }
    Ok(changed)
}

/// The roots of all worktrees of the repository around a folder.
pub(super) fn worktrees(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let arguments = ["worktree", "list", "--porcelain", "-z"].map(OsString::from);
    let output = git(root, &arguments)?;
    let lines = output.split(|byte| *byte == 0);
    let roots = lines.filter_map(|line| line.strip_prefix(b"worktree "));
    Ok(roots.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
}

fn git(root: &Path, arguments: &[OsString]) -> Result<Vec<u8>, Failure> {
    let failed = |why: &str| Failure::new(Exit::Error, "GIT", format!("git did not answer: {why}"));
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    // A hook of git runs with these, and they would name another repository or index.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
    let output = command.output().map_err(|error| failed(&error.to_string()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(failed(text.lines().next().unwrap_or_default()))
        }
    }
}

/// The entries of `git status --porcelain -z`: two letters, a space, and a path.
fn entries(output: &[u8]) -> Vec<ChangedFile> {
    let lines = output.split(|byte| *byte == 0).filter(|line| line.len() > 3);
    let entry = |line: &[u8]| ChangedFile {
        path: PathBuf::from(OsStr::from_bytes(&line[3..])),
        is_untracked: line.starts_with(b"??"),
    };
    lines.map(entry).collect()
}
