//! Worktrees that are made for workers: one for each claim, with a branch of its own.

use super::program::{Git, GitError};
use super::reference::is_object;
use super::repository::{Repository, path_of, real};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tenure::core::{TaskId, reference_component};

/// The file in a worktree's own git directory that says for what the worktree was made. Git removes
/// it together with the worktree.
const RECORD: &str = "tenure-worktree.json";

/// Where the branches of workers are.
const BRANCHES: &str = "tenure/";

/// A title in a branch name is only a hint.
const SLUG_MAX: usize = 40;

/// An id in a branch name is only a hint: the record has the whole of it.
const SHORT_ID_MAX: usize = 12;

/// How many attempts of one task can have worktrees side by side.
const ATTEMPTS_MAX: u32 = 1000;

/// For what a worktree was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MadeFor {
    /// The id of the task.
    pub(super) task: String,
    /// The branch, without `refs/heads/`.
    branch: String,
    /// The commit at which it began.
    pub(super) base: String,
    /// The branch into which it is to be merged, by its full name; the commit where there is none.
    into: String,
}

impl MadeFor {
    /// The record of the worktree in which git runs, if it was made for a worker.
    pub(super) fn of(git: &Git) -> Result<Option<MadeFor>, GitError> {
        let path = record(git)?;
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(GitError::File { path, source }),
        };
        let made: Option<MadeFor> = serde_json::from_slice(&bytes).ok();
        // Both go into command lines.
        let is_into = |into: &str| is_object(into) || into.starts_with("refs/heads/");
        Ok(made.filter(|made| is_object(&made.base) && is_into(&made.into)))
    }
}

fn record(git: &Git) -> Result<PathBuf, GitError> {
    let folder = git.run(&["rev-parse", "--absolute-git-dir"])?;
    Ok(path_of(folder.trim_ascii_end()).join(RECORD))
}

/// Makes worktrees in a folder, all from one base.
#[derive(Clone, Debug)]
pub struct Worktrees {
    repository: Repository,
    folder: PathBuf,
    base: String,
    into: String,
}

/// A worktree that was made for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerTree {
    /// Its root.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The id of the task for which it was made.
    pub task: String,
}

impl Worktrees {
    /// Worktrees in this folder, which is created if needed, from this base: any name of a commit.
    pub fn new(repository: &Repository, folder: &Path, base: &str) -> Result<Worktrees, GitError> {
        let git = Git::automatic(repository.folder());
        let commit = format!("{base}^{{commit}}");
        let commit = git.line(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]);
        let commit = commit.ok().filter(|commit| is_object(commit)).ok_or_else(|| {
            let message = format!("{base:?} is no commit of this repository");
            GitError::Failed { command: "rev-parse".to_owned(), code: Some(1), message }
        })?;
        let name = ["rev-parse", "--symbolic-full-name", "--end-of-options", base];
        let name = git.line(&name).unwrap_or_default();
        let name = name.lines().next_back().unwrap_or_default().to_owned();
        let into = match name.as_str() {
            branch if branch.starts_with("refs/heads/") => name,
            _ => commit.clone(),
        };
        create_folder(folder)?;
        let folder = real(folder)?;
        Ok(Worktrees { repository: repository.clone(), folder, base: commit, into })
    }

    /// Makes a worktree with a new branch for an attempt at a task. The base is where the base's
    /// branch is now.
    pub fn make(&self, task: &TaskId, title: &str) -> Result<WorkerTree, GitError> {
        let git = Git::as_user(self.repository.folder());
        let base = git.line(&["rev-parse", "--verify", "--quiet", &self.into]);
        let base = base.ok().filter(|base| is_object(base)).unwrap_or_else(|| self.base.clone());
        let (name, path) = self.free_name(&git, task, title)?;
        let branch = format!("{BRANCHES}{name}");
        let arguments = ["worktree", "add", "--quiet", "--no-track", "-b", &branch];
        let mut arguments: Vec<std::ffi::OsString> = arguments.map(Into::into).into();
        arguments.extend([path.clone().into(), base.clone().into()]);
        git.run(&arguments)?;
        let made = MadeFor {
            task: task.to_string(),
            branch: branch.clone(),
            base,
            into: self.into.clone(),
        };
        let file = record(&Git::automatic(&path))?;
        let text = serde_json::to_vec(&made).unwrap_or_default();
        fs::write(&file, text).map_err(|source| GitError::File { path: file, source })?;
        Ok(WorkerTree { path, branch, task: made.task })
    }

    /// A name that neither a branch nor a folder has.
    fn free_name(
        &self,
        git: &Git,
        task: &TaskId,
        title: &str,
    ) -> Result<(String, PathBuf), GitError> {
        let plain = branch_name(task, title);
        for attempt in 1..=ATTEMPTS_MAX {
            let name = if attempt > 1 { format!("{plain}-{attempt}") } else { plain.clone() };
            let path = self.folder.join(&name);
            let branch = format!("refs/heads/{BRANCHES}{name}");
            let is_branch = git.ask(&["rev-parse", "--verify", "--quiet", &branch])?.is_some();
            if !is_branch && fs::symlink_metadata(&path).is_err() {
                return Ok((name, path));
            }
        }
        let message = format!("there are {ATTEMPTS_MAX} worktrees of this task already");
        Err(GitError::Failed { command: "worktree".to_owned(), code: None, message })
    }

    /// The worktrees in the folder that were made for workers.
    pub fn made(&self) -> Result<Vec<WorkerTree>, GitError> {
        let mut made = Vec::new();
        for listed in self.repository.worktrees()? {
            let Ok(path) = fs::canonicalize(&listed.path) else { continue };
            let is_inside = path.parent().is_some_and(|folder| folder == self.folder);
            let Some(branch) = listed.branch.filter(|_| is_inside) else { continue };
            // The branch could be another by now: then the worktree has become someone's own.
            let is_it = |made: &MadeFor| format!("refs/heads/{}", made.branch) == branch;
            if let Some(record) = MadeFor::of(&Git::automatic(&path))?.filter(is_it) {
                made.push(WorkerTree { path, branch: record.branch, task: record.task });
            }
        }
        Ok(made)
    }

    /// Removes a worktree and its branch if nothing is lost by that: all of its commits are merged
    /// and no file differs from them. Says whether it did.
    pub fn remove_if_merged(&self, tree: &WorkerTree) -> Result<bool, GitError> {
        let git = Git::automatic(&tree.path);
        let Some(made) = MadeFor::of(&git)? else { return Ok(false) };
        let branch = format!("refs/heads/{}", made.branch);
        let tip = git.line(&["rev-parse", "--verify", "--quiet", &branch])?;
        let merged = ["merge-base", "--is-ancestor", &tip, &made.into];
        // A base that was deleted meanwhile takes the answer with it.
        let is_merged = tip == made.base || matches!(git.ask(&merged), Ok(Some(_)));
        let status = ["status", "--porcelain", "-z", "--untracked-files=normal"];
        if !is_merged || !git.run(&status)?.is_empty() {
            return Ok(false);
        }
        let main = Git::automatic(self.repository.folder());
        let remove = ["worktree".into(), "remove".into(), tree.path.clone().into_os_string()];
        // Git looks again, and removes none with changes.
        if main.ask(&remove).is_err() {
            return Ok(false);
        }
        main.run(&["update-ref", "--no-deref", "-d", &branch, &tip])?;
        Ok(true)
    }
}

/// Creates the folder. One that is new ignores itself, in case it is inside a worktree.
fn create_folder(folder: &Path) -> Result<(), GitError> {
    let failed = |source| GitError::File { path: folder.to_owned(), source };
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(failed)?;
    fs::write(folder.join(".gitignore"), "*\n").map_err(failed)
}

/// The name of a branch and of a folder: the beginning of the id, and of the title.
fn branch_name(task: &TaskId, title: &str) -> String {
    let id: String = task.as_str().chars().take(SHORT_ID_MAX).collect();
    let id = reference_component(&id).replace('%', "-");
    let id = id.trim_matches('-');
    let mut slug = String::new();
    for letter in title.chars() {
        if slug.len() >= SLUG_MAX {
            break;
        }
        match letter.is_ascii_alphanumeric() {
            true => slug.push(letter.to_ascii_lowercase()),
            false if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            false => {}
        }
    }
    let slug = slug.trim_matches('-');
    let parts = [if id.is_empty() { "task" } else { id }, slug];
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_after_its_task() {
        let name = |id: &str, title: &str| branch_name(&id.parse().expect("an id"), title);
        assert_eq!(name("t17", "Fix the log-in, again!"), "t17-fix-the-log-in-again");
        assert_eq!(name("0190a1b2c3d4e5f6", "Über  alles"), "0190a1b2c3d4-ber-alles");
        assert_eq!(name("../x", "..."), "2E-2E-2Fx");
        assert_eq!(name("t", &"long".repeat(40)).len(), 2 + SLUG_MAX);
    }
}
