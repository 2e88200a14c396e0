//! Prepares an attempt at a task: takes over what an interrupted worker left, and makes a worktree.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use std::path::Path;
use std::sync::Arc;
use tenure::core::rules::tasks::DescribeTry;
use tenure::core::{Status, Task, TaskId, Try};
use tenure::{Client, Lease, Work};
use tenure_frontend::git::{GitError, Repository, WorkerTree, Worktrees};
use tenure_frontend::rescue::Rescuer;
use tokio::sync::Mutex;

/// Prepares the attempts of a worker, or of all workers of a swarm.
pub(crate) struct Preparation {
    client: Client,
    rescuer: Rescuer,
    /// One at a time: git refuses to be called while it changes its list of worktrees.
    trees: Option<Arc<Mutex<Worktrees>>>,
    output: Output,
}

/// An attempt that is ready to begin.
pub(super) struct Prepared {
    /// The task, with what was noted about it until now.
    pub(super) task: Task,
    /// The worktree in which to work, if one was made.
    pub(super) tree: Option<WorkerTree>,
}

impl Preparation {
    pub(crate) fn new(
        context: &Context,
        client: &Client,
        args: &super::WorkerArgs,
    ) -> Result<Preparation, Failure> {
        let trees = match &args.worktrees {
            Some(folder) => Some(worktrees(context, folder, args.base.as_deref())?),
            None => None,
        };
        Ok(Preparation {
            client: client.clone(),
            rescuer: context.rescuer(),
            trees: trees.map(|trees| Arc::new(Mutex::new(trees))),
            output: context.output.clone(),
        })
    }

    /// Prepares an attempt at a task that was just claimed.
    pub(super) async fn prepare(&self, work: &Work) -> Result<Prepared, Failure> {
        let mut task = work.task().clone();
        let hand_over = self.rescuer.take_over(&self.client, &task).await;
        hand_over.update(&mut task);
        if let Some(warning) = hand_over.warning {
            self.output.note(&warning);
        }
        if self.trees.is_none() {
            return Ok(Prepared { task, tree: None });
        }
        self.tidy().await;
        let (id, title) = (task.id.clone(), task.title.clone());
        let made = self.with_trees(move |trees| trees.make(&id, &title)).await;
        let tree = made.transpose().map_err(|error| {
            let message = format!("cannot make a worktree: {error}");
            Failure::new(Exit::Error, "WORKTREE", message)
        })?;
        if let Some(tree) = &tree {
            self.record(&mut task, tree, work.lease()).await;
        }
        Ok(Prepared { task, tree })
    }

    /// Says in the task's record where its worker works. If that fails, a rescue would not find it:
    /// a warning says so, and the work goes on.
    async fn record(&self, task: &mut Task, tree: &WorkerTree, lease: &Lease) {
        let act = DescribeTry {
            task: task.id.clone(),
            token: lease.token,
            grant: Some(lease.grant),
            worktree: tree.path.to_str().map(str::to_owned),
            branch: Some(tree.branch.clone()),
            rescue: None,
            note: None,
            by: self.client.holder().label.clone(),
        };
        match self.client.tasks().describe_try(&act).await {
            Ok(now) => task.tries = now.tries,
            Err(error) => {
                let path = tree.path.display();
                self.output.note(&format!("{path} is not recorded with its task: {error}"));
            }
        }
    }

    /// Removes worktrees of tasks that are done, if nothing is lost by that. What cannot be removed
    /// now stays for the next time.
    pub(crate) async fn tidy(&self) {
        let Some(Ok(made)) = self.with_trees(|trees| trees.made()).await else { return };
        let ids: Vec<TaskId> = made.iter().filter_map(|tree| tree.task.parse().ok()).collect();
        if ids.is_empty() {
            return;
        }
        let Ok(tasks) = self.client.tasks().get_all(ids).await else { return };
        for tree in made {
            let task = tasks.iter().find(|task| task.id.as_str() == tree.task);
            if !task.is_some_and(|task| is_over(task, &tree)) {
                continue;
            }
            let path = tree.path.display().to_string();
            let removed = self.with_trees(move |trees| trees.remove_if_merged(&tree)).await;
            if let Some(Ok(true)) = removed {
                self.output.detail(&format!("Removed the worktree {path}: nothing in it is new."));
            }
        }
    }

    /// Runs git for worktrees on another thread; `None` without worktrees.
    async fn with_trees<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Worktrees) -> Result<T, GitError> + Send + 'static,
    ) -> Option<Result<T, GitError>> {
        let trees = self.trees.clone()?.lock_owned().await;
        tokio::task::spawn_blocking(move || run(&trees)).await.ok()
    }
}

/// Whether no worker needs this worktree any more: the task is done, or the attempt ended by the
/// worker's own word. That of a failed or interrupted attempt stays until the task is done.
fn is_over(task: &Task, tree: &WorkerTree) -> bool {
    let own = |one: &&Try| one.workspace.branch.as_deref() == Some(tree.branch.as_str());
    let is_done = matches!(task.status, Status::Completed | Status::Skipped | Status::Cancelled);
    is_done || task.tries.iter().find(own).is_some_and(is_given_back)
}

fn is_given_back(one: &Try) -> bool {
    use tenure::core::TryOutcome::{Completed, Released, Review, Snoozed};
    matches!(one.outcome, Some(Completed | Released | Review | Snoozed))
}

/// The worktrees that the options describe.
fn worktrees(context: &Context, folder: &Path, base: Option<&str>) -> Result<Worktrees, Failure> {
    let failed = |error: GitError| Failure::new(Exit::Configuration, "WORKTREE", error.to_string());
    let Some(repository) = Repository::around(&context.directory()).map_err(failed)? else {
        let message = "--worktrees needs a git repository, and this folder is in none";
        return Err(Failure::new(Exit::Configuration, "WORKTREE", message)
            .hint("Run it in a repository, or without --worktrees."));
    };
    let base = base.unwrap_or("HEAD");
    Worktrees::new(&repository, folder, base).map_err(|error| match error {
        GitError::Failed { message, .. } => Failure::new(Exit::Configuration, "WORKTREE", message)
            .hint("A worktree begins at a commit: name one with --base, or make the first."),
        error => failed(error),
    })
}
