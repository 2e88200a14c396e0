//! Keeps the uncommitted work of a worker that is gone, as a commit under a reference of its own.
//!
//! Nothing that the worker or its user sees changes: neither a file, nor the index, nor a branch. The
//! commit is put together in an index file of its own.

use super::changes::{self, Changes, Files};
use super::program::{Git, GitError};
use super::reference::{Message, is_object};
use super::repository::{NoWorktree, Repository};
use super::worktrees::MadeFor;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tenure::core::{TaskId, rescue_reference};

/// More files than this are no work that a worker did by hand.
const FILES_MAX: usize = 10_000;

/// How many attempts of a task can have the same number.
const AGAIN_MAX: u32 = 100;

/// Files are added one by one only so many times, after git refused them together.
const SINGLE_MAX: usize = 500;

/// Whose work is rescued from where.
#[derive(Clone, Debug)]
pub struct RescueRequest<'a> {
    /// The worktree in which it lies, as a record names it.
    pub worktree: &'a Path,
    /// The globs of the task's files; in a worktree that was made for the worker all files count.
    pub files: &'a [tenure::core::glob::Glob],
    /// The task.
    pub task: &'a TaskId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Which claim it was, so that the same work is not rescued twice.
    pub claim: &'a str,
    /// The label of the worker.
    pub by: &'a str,
    /// The most that is rescued, in bytes.
    pub bytes_max: u64,
}

/// What came of a rescue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rescue {
    /// The work is kept.
    Kept(Rescued),
    /// There is nothing to keep.
    Nothing,
    /// It is too much.
    TooLarge {
        /// How many files.
        files: usize,
        /// How large they are together.
        bytes: u64,
    },
    /// It cannot be looked for there.
    NoWorktree(NoWorktree),
}

/// Work that was rescued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// The reference that keeps it.
    pub reference: String,
    /// The commit.
    pub commit: String,
    /// How many files differ from the last commit of that worktree.
    pub files: usize,
    /// How large the changed and new ones are together.
    pub bytes: u64,
    /// How many changed files are not in it: unreadable, in repositories inside the worktree, or
    /// files that a configured filter would change.
    pub left_out: usize,
}

impl Repository {
    /// Keeps the work that a worker left in a worktree of this repository. Asked again about the same
    /// claim, it answers with the same commit.
    pub fn rescue(&self, request: &RescueRequest<'_>) -> Result<Rescue, GitError> {
        let root = match self.worktree(request.worktree)? {
            Ok(root) => root,
            Err(why) => return Ok(Rescue::NoWorktree(why)),
        };
        let git = Git::automatic(&root);
        let reference = match free_reference(&git, request)? {
            Reference::Taken(rescued) => return Ok(Rescue::Kept(rescued)),
            Reference::Free(reference) => reference,
        };
        // A command in it may have claimed another task.
        let made_for = MadeFor::of(&git)?.filter(|made| made.task == request.task.as_str());
        let files = match &made_for {
            Some(_) => Files::All,
            None if request.files.is_empty() => return Ok(Rescue::Nothing),
            None => Files::Matching(request.files.to_vec()),
        };
        let scratch = tempfile::Builder::new().prefix("tenure-rescue-").tempdir();
        let scratch = scratch.map_err(|source| GitError::File { path: PathBuf::new(), source })?;
        let head = head(&git)?;
        let changes = changes::find(&known(&git, scratch.path(), head.as_deref())?, &files)?;
        if changes.count() > FILES_MAX || changes.bytes > request.bytes_max {
            return Ok(Rescue::TooLarge { files: changes.count(), bytes: changes.bytes });
        }
        let empty = git.line(&["hash-object", "-t", "tree", "/dev/null"])?;
        let before = head.clone().unwrap_or_else(|| empty.clone());
        let base = made_for.map(|made| made.base).unwrap_or_else(|| before.clone());
        let (tree, left_out) = tree(&git, scratch.path(), head.as_deref(), &changes)?;
        let tree_before = git.line(&["rev-parse", &format!("{before}^{{tree}}")])?;
        // Commits of its own are the worker's work too.
        if tree == tree_before && base == before {
            return Ok(Rescue::Nothing);
        }
        let message = Message {
            task: request.task.to_string(),
            attempt: request.attempt,
            by: request.by.to_owned(),
            claim: request.claim.to_owned(),
            base,
        };
        let commit = commit(&git, &tree, head.as_deref(), &message)?;
        if let Err(error) = create(&git, &reference, &commit) {
            // Another process may have been faster.
            return match free_reference(&git, request)? {
                Reference::Taken(rescued) => Ok(Rescue::Kept(rescued)),
                Reference::Free(_) => Err(error),
            };
        }
        Ok(Rescue::Kept(Rescued {
            reference,
            commit,
            files: changes.count().saturating_sub(left_out),
            bytes: changes.bytes,
            left_out: changes.left_out + left_out,
        }))
    }
}

/// The last commit; `None` in a repository without one.
fn head(git: &Git) -> Result<Option<String>, GitError> {
    let printed = git.ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
    let head = printed.map(|head| String::from_utf8_lossy(head.trim_ascii()).into_owned());
    Ok(head.filter(|head| is_object(head)))
}

enum Reference {
    Free(String),
    Taken(Rescued),
}

/// The reference for a claim's work, or the work if it was rescued already.
fn free_reference(git: &Git, request: &RescueRequest<'_>) -> Result<Reference, GitError> {
    for again in 1..=AGAIN_MAX {
        let reference = rescue_reference(request.task, request.attempt, again);
        let Some(commit) = git.ask(&["rev-parse", "--verify", "--quiet", &reference])? else {
            return Ok(Reference::Free(reference));
        };
        let commit = String::from_utf8_lossy(commit.trim_ascii()).into_owned();
        let message = git.line(&["show", "-s", "--format=%B", &commit])?;
        let Some(message) = Message::parse(&message) else { continue };
        if message.claim != request.claim {
            continue;
        }
        let arguments = ["diff-tree", "-r", "-z", "--name-only", &message.base, &commit];
        let files = git.run(&arguments)?.split(|byte| *byte == 0).count().saturating_sub(1);
        let rescued = Rescued { reference, commit, files, bytes: 0, left_out: 0 };
        return Ok(Reference::Taken(rescued));
    }
    Ok(Reference::Free(rescue_reference(request.task, request.attempt, AGAIN_MAX + 1)))
}

/// Git with a copy of the worktree's index, which knows the files that were looked at already.
fn known(git: &Git, scratch: &Path, head: Option<&str>) -> Result<Git, GitError> {
    let index = git.run(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
    let index = super::repository::path_of(index.trim_ascii_end());
    let copy = scratch.join("known");
    let private = git.with_index(&copy);
    match copy_index(&index, &copy) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => read_tree(&private, head)?,
        Err(source) => return Err(GitError::File { path: index, source }),
    }
    Ok(private)
}

/// Copies an index with its time of change. By that time git knows which files may have changed after it
/// looked at them, in the same tick of the clock: it reads those again.
fn copy_index(index: &Path, copy: &Path) -> io::Result<()> {
    let changed_at = fs::metadata(index)?.modified()?;
    fs::copy(index, copy)?;
    fs::File::options().write(true).open(copy)?.set_modified(changed_at)
}

fn read_tree(git: &Git, head: Option<&str>) -> Result<(), GitError> {
    let from = head.unwrap_or("--empty");
    git.run(&["read-tree", from]).map(drop)
}

/// Writes the last commit's tree with the changes; says how many files git refused.
fn tree(
    git: &Git,
    scratch: &Path,
    head: Option<&str>,
    changes: &Changes,
) -> Result<(String, usize), GitError> {
    let git = changes::without_filters(&git.with_index(&scratch.join("rescued")))?;
    read_tree(&git, head)?;
    let remove = ["update-index", "--force-remove", "-z", "--stdin"];
    git.feed(&remove, changes::with_ends(&changes.gone))?;
    let add = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
    let mut refused = 0;
    if git.feed(&add, changes::with_ends(&changes.present)).is_err() {
        // One file that git cannot take must not lose the others.
        for path in changes.present.iter().take(SINGLE_MAX) {
            let one = git.feed(&add, changes::with_ends(std::slice::from_ref(path)));
            refused += usize::from(one.is_err());
        }
        refused += changes.present.len().saturating_sub(SINGLE_MAX);
    }
    Ok((git.line(&["write-tree"])?, refused))
}

/// Makes the commit. It is tenure's: the user did not decide what is in it.
fn commit(
    git: &Git,
    tree: &str,
    head: Option<&str>,
    message: &Message,
) -> Result<String, GitError> {
    let mut git = git.clone();
    for role in ["author", "committer"] {
        git = git.with_setting(format!("{role}.name"), "tenure");
        git = git.with_setting(format!("{role}.email"), "tenure@localhost");
    }
    let mut arguments = vec!["commit-tree", tree];
    if let Some(head) = head {
        arguments.extend(["-p", head]);
    }
    let printed = git.feed(&arguments, message.text().into_bytes())?;
    Ok(String::from_utf8_lossy(printed.trim_ascii()).into_owned())
}

/// Creates the reference, which must not exist.
fn create(git: &Git, reference: &str, commit: &str) -> Result<(), GitError> {
    let nothing = "0".repeat(commit.len());
    git.run(&["update-ref", "--no-deref", reference, commit, &nothing]).map(drop)
}
