//! Work that was rescued: finding it, showing it, taking it over, and removing it when it is old.

use super::program::{Git, GitError};
use super::reference::{Message, is_object};
use super::repository::Repository;
use std::path::Path;
use std::time::Duration;
use tenure::core::{RESCUE_REFERENCES, TaskId, WallTime, rescue_folder};

/// The rescued work of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescuedWork {
    /// The reference that keeps it.
    pub reference: String,
    /// The commit.
    pub commit: String,
    /// The id of the task.
    pub task: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The label of the worker.
    pub by: String,
    /// When it was rescued.
    pub rescued_at: WallTime,
    /// The commit or tree with which it is compared: where the worker began.
    base: String,
}

/// What came of taking rescued work over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// These files were changed.
    Changed(Vec<String>),
    /// The worktree has all of it already.
    AlreadyThere,
    /// Nothing was changed, because it contradicts what the worktree has.
    Conflict(Vec<String>),
}

impl Repository {
    /// The rescued work of a task, or of all, the newest first.
    pub fn rescued(&self, task: Option<&TaskId>) -> Result<Vec<RescuedWork>, GitError> {
        let under = task.map_or_else(|| RESCUE_REFERENCES.to_owned(), rescue_folder);
        let format = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents)%00";
        let arguments = ["for-each-ref", "--format", format, "--sort=-committerdate", &under];
        let printed = self.git().run(&arguments)?;
        let text = String::from_utf8_lossy(&printed);
        let fields: Vec<&str> = text.split('\0').collect();
        let found = fields.chunks_exact(4).filter_map(|fields| {
            let message = Message::parse(fields[3])?;
            Some(RescuedWork {
                reference: fields[0].trim_start_matches('\n').to_owned(),
                commit: fields[1].to_owned(),
                rescued_at: WallTime(fields[2].parse::<i64>().ok()?.saturating_mul(1000)),
                task: message.task,
                attempt: message.attempt,
                by: message.by,
                base: message.base,
            })
        });
        let is_wanted = |work: &RescuedWork| task.is_none_or(|task| work.task == task.as_str());
        Ok(found.filter(is_wanted).collect())
    }

    /// The work as a patch, or as one line for each file and a sum.
    pub fn rescued_diff(&self, work: &RescuedWork, summary: bool) -> Result<Vec<u8>, GitError> {
        let form = if summary { "--stat=100" } else { "--patch" };
        self.git().run(&[&DIFF[..], &[form, &work.base, &work.commit]].concat())
    }

    /// The files that the work changes.
    pub fn rescued_files(&self, work: &RescuedWork) -> Result<Vec<String>, GitError> {
        names(&self.git(), &work.base, &work.commit)
    }

    /// Changes the files of the worktree around `folder` as the work says: all of them or none. It
    /// changes neither the index nor a branch. What was committed since is merged with it.
    pub fn apply_rescued(&self, folder: &Path, work: &RescuedWork) -> Result<Applied, GitError> {
        let root = Git::automatic(folder).line(&["rev-parse", "--show-toplevel"])?;
        let git = Git::automatic(Path::new(&root));
        let plain = patch(&git, &work.base, &work.commit)?;
        if try_apply(&git, &["--check", "--reverse"], &plain)? {
            return Ok(Applied::AlreadyThere);
        }
        if try_apply(&git, &["--check"], &plain)? {
            git.feed(&["apply"], plain)?;
            return Ok(Applied::Changed(names(&git, &work.base, &work.commit)?));
        }
        let base = format!("--merge-base={}", work.base);
        let merge = ["merge-tree", "--write-tree", "-z", "--name-only", &base, "HEAD"];
        // Before git 2.40 there is no such merge, and then it is a conflict.
        let merged = git.ask(&[&merge[..], &[&work.commit]].concat()).unwrap_or_default();
        let merged = merged.map(|printed| first_field(&printed)).filter(|tree| is_object(tree));
        if let Some(merged) = merged {
            let patch = patch(&git, "HEAD", &merged)?;
            if patch.is_empty() || try_apply(&git, &["--check", "--reverse"], &patch)? {
                return Ok(Applied::AlreadyThere);
            }
            if try_apply(&git, &["--check"], &patch)? {
                let names = names(&git, "HEAD", &merged)?;
                git.feed(&["apply"], patch)?;
                return Ok(Applied::Changed(names));
            }
        }
        Ok(Applied::Conflict(names(&git, &work.base, &work.commit)?))
    }

    /// Removes the references of work that was rescued longer than this ago; says how many.
    pub fn expire_rescued(&self, keep: Duration, now: WallTime) -> Result<usize, GitError> {
        let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let oldest = now.0.saturating_sub(keep_ms);
        let old = self.rescued(None)?;
        let mut removed = 0;
        for work in old.iter().filter(|work| work.rescued_at.0 < oldest) {
            let arguments = ["update-ref", "--no-deref", "-d", &work.reference, &work.commit];
            // Another process may have been faster.
            removed += usize::from(self.git().run(&arguments).is_ok());
        }
        Ok(removed)
    }
}

/// A diff as git makes it by itself: attributes of the repository can name other programs.
const DIFF: [&str; 4] = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"];

fn patch(git: &Git, from: &str, to: &str) -> Result<Vec<u8>, GitError> {
    let form = ["--binary", "--full-index", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/"];
    git.run(&[&DIFF[..], &form, &[from, to]].concat())
}

fn names(git: &Git, from: &str, to: &str) -> Result<Vec<String>, GitError> {
    let printed =
        git.run(&[&DIFF[..], &["--name-only", "-z", "--no-renames", from, to]].concat())?;
    let names = printed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Whether git would apply the patch.
fn try_apply(git: &Git, how: &[&str], patch: &[u8]) -> Result<bool, GitError> {
    let arguments = [&["apply"], how].concat();
    Ok(git.ask_with(&arguments, patch.to_vec())?.is_some())
}

fn first_field(printed: &[u8]) -> String {
    let field = printed.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(field.trim_ascii()).into_owned()
}
