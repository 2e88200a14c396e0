//! The repository around a folder, and its worktrees.

use super::program::{Git, GitError};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A git repository, as seen from one of its worktrees.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Where git is run for questions about the repository.
    folder: PathBuf,
    /// What all its worktrees share.
    common_directory: PathBuf,
}

/// Why nothing is rescued from a folder that a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWorktree {
    /// There is no such folder.
    #[error("the folder is gone")]
    Gone,
    /// It is a folder of something else: a record could name any.
    #[error("the folder is no worktree of this repository")]
    NotOurs,
    /// It belongs to another user, with another user's settings and files.
    #[error("the folder belongs to another user")]
    OtherUser,
}

impl Repository {
    /// The repository that this folder is in; `None` outside of one.
    pub fn around(folder: &Path) -> Result<Option<Repository>, GitError> {
        let git = Git::automatic(folder);
        let asked = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        match git.run(&asked) {
            Ok(printed) => {
                let common_directory = real(&path_of(printed.trim_ascii_end()))?;
                Ok(Some(Repository { folder: folder.to_owned(), common_directory }))
            }
            Err(GitError::Failed { code: Some(128), message, .. })
                if message.contains("not a git repository") =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The folder from which the repository was found.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Git for what tenure does by itself.
    pub(super) fn git(&self) -> Git {
        Git::automatic(&self.folder)
    }

    /// The roots of all worktrees that the repository knows, the main one first, with the branch of
    /// each.
    pub(super) fn worktrees(&self) -> Result<Vec<Listed>, GitError> {
        let printed = self.git().run(&["worktree", "list", "--porcelain", "-z"])?;
        let mut listed: Vec<Listed> = Vec::new();
        for line in printed.split(|byte| *byte == 0) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                listed.push(Listed { path: path_of(path), branch: None });
            } else if line == b"bare" {
                // The repository itself, which has no files.
                listed.pop();
            } else if let (Some(branch), Some(last)) =
                (line.strip_prefix(b"branch "), listed.last_mut())
            {
                last.branch = Some(String::from_utf8_lossy(branch).into_owned());
            }
        }
        Ok(listed)
    }

    /// The root of the worktree at this path, which comes from a record: only a worktree that this
    /// repository itself lists, that leads back to it, and that belongs to this user is one.
    pub(super) fn worktree(&self, path: &Path) -> Result<Result<PathBuf, NoWorktree>, GitError> {
        let Ok(root) = fs::canonicalize(path) else { return Ok(Err(NoWorktree::Gone)) };
        let same = |listed: &Listed| fs::canonicalize(&listed.path).is_ok_and(|one| one == root);
        if !self.worktrees()?.iter().any(same) {
            return Ok(Err(NoWorktree::NotOurs));
        }
        let owner = fs::metadata(&root).map(|found| found.uid());
        if owner.ok() != Some(rustix::process::geteuid().as_raw()) {
            return Ok(Err(NoWorktree::OtherUser));
        }
        let leads_to = Repository::around(&root)?.map(|found| found.common_directory);
        if leads_to.as_ref() != Some(&self.common_directory) {
            return Ok(Err(NoWorktree::NotOurs));
        }
        Ok(Ok(root))
    }
}

/// A worktree as its repository lists it.
#[derive(Debug)]
pub(super) struct Listed {
    /// Its root.
    pub(super) path: PathBuf,
    /// The full name of the branch that is checked out there.
    pub(super) branch: Option<String>,
}

/// A path as git prints it.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

pub(super) fn real(path: &Path) -> Result<PathBuf, GitError> {
    fs::canonicalize(path).map_err(|source| GitError::File { path: path.to_owned(), source })
}
