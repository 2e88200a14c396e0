//! `tenure tasks rescue`: the work that an interrupted worker of a task left.

use super::{find, show};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::show::time;
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;
use tenure::core::Task;
use tenure_frontend::git::{Applied, GitError, Repository, RescuedWork};

/// Show or take over the work that an interrupted worker left
///
/// When the worker of a task dies, falls silent or loses its claim, the next claim keeps what it did
/// not commit: changed, new and deleted files among those of the task, or all in a worktree that was
/// made for it. They become a commit under refs/tenure/rescue, for as long as rescue.keep says. No file,
/// index or branch changes, and a push does not take it along, except for `git push --mirror`.
///
/// Prints the work as a diff. With --apply it changes the files of the worktree you are in, all or none,
/// merged with what was committed since; what contradicts it is refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks rescue 'Fix bug'                   the newest rescued work, as a diff
  tenure tasks rescue 'Fix bug' --list            all that was rescued for the task
  tenure tasks rescue $TENURE_TASK_ID --apply     go on where the last worker stopped")]
pub(super) struct RescueArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
    /// Change the files of this worktree as the work says
    #[arg(long, conflicts_with = "list")]
    apply: bool,
    /// The work of this attempt, not of the last
    #[arg(long, value_name = "N", value_parser = crate::args::numbers::attempts)]
    attempt: Option<u32>,
    /// List what was rescued for the task
    #[arg(long)]
    list: bool,
}

pub(super) async fn run(context: &Context, args: RescueArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let task = find(&client, &args.task).await?;
    // Work that no claim has looked for yet.
    let hand_over = context.rescuer().take_over(&client, &task).await;
    if let Some(warning) = &hand_over.warning {
        context.output.note(warning);
    }
    let folder = context.directory();
    let Some(repository) = Repository::around(&folder).map_err(git_failed)? else {
        let message = "rescued work is in a git repository, and this folder is in none";
        return Err(Failure::new(Exit::Configuration, "NO_REPOSITORY", message));
    };
    let mut all = repository.rescued(Some(&task.id)).map_err(git_failed)?;
    if let Some(attempt) = args.attempt {
        all.retain(|work| work.attempt == attempt);
    }
    if args.list {
        return list(context, &repository, &task, &all);
    }
    let Some(work) = all.first() else { return Err(nothing(&task, args.attempt)) };
    match args.apply {
        true => apply(context, &repository, &folder, &task, work),
        false => diff(context, &repository, work),
    }
}

fn list(
    context: &Context,
    repository: &Repository,
    task: &Task,
    all: &[RescuedWork],
) -> Result<i32, Failure> {
    let mut entries = Vec::new();
    for work in all {
        entries.push(json_of(repository, work)?);
    }
    let data = json!({ "task_id": task.id.as_str(), "rescues": entries });
    context.output.done(data, || match all.is_empty() {
        true => format!("No work was rescued for {}", show::name(task)),
        false => all.iter().map(line).collect::<Vec<_>>().join("\n"),
    });
    Ok(0)
}

fn line(work: &RescuedWork) -> String {
    let RescuedWork { reference, attempt, by, rescued_at, .. } = work;
    format!("attempt {attempt} by {by}, rescued {}: {reference}", time(*rescued_at))
}

fn diff(context: &Context, repository: &Repository, work: &RescuedWork) -> Result<i32, Failure> {
    let patch = repository.rescued_diff(work, false).map_err(git_failed)?;
    if !context.output.json {
        context.output.raw(&patch);
        return Ok(0);
    }
    let mut data = json_of(repository, work)?;
    data["diff"] = json!(String::from_utf8_lossy(&patch));
    context.output.done(data, String::new);
    Ok(0)
}

fn apply(
    context: &Context,
    repository: &Repository,
    folder: &Path,
    task: &Task,
    work: &RescuedWork,
) -> Result<i32, Failure> {
    let whose = format!("the work of {} on {}", work.by, show::name(task));
    let files = match repository.apply_rescued(folder, work).map_err(git_failed)? {
        Applied::Changed(files) => files,
        Applied::AlreadyThere => vec![],
        Applied::Conflict(files) => {
            let message = format!("{whose} contradicts this worktree; nothing was changed");
            let reference = &work.reference;
            let hint = format!("See it with `git show {reference}`, and merge it by hand.");
            let mut failure = Failure::new(Exit::Error, "CONFLICT", capital(&message)).hint(hint);
            failure.more = files.iter().map(|file| format!("  {file}")).collect();
            failure.details = json!({ "reference": reference, "files": files });
            return Err(failure);
        }
    };
    let mut data = json_of(repository, work)?;
    data["changed"] = json!(files);
    context.output.confirm(data, || match files.is_empty() {
        true => format!("This worktree has {whose} already"),
        false => {
            let files = files.iter().map(|file| format!("\n  {file}")).collect::<String>();
            format!("Applied {whose}:{files}")
        }
    });
    Ok(0)
}

fn json_of(repository: &Repository, work: &RescuedWork) -> Result<Value, Failure> {
    let files = repository.rescued_files(work).map_err(git_failed)?;
    Ok(json!({
        "task_id": work.task,
        "attempt": work.attempt,
        "by": work.by,
        "rescued_at": time(work.rescued_at),
        "reference": work.reference,
        "commit": work.commit,
        "files": files,
    }))
}

fn nothing(task: &Task, attempt: Option<u32>) -> Failure {
    let attempt = attempt.map_or_else(String::new, |attempt| format!(", attempt {attempt}"));
    let message = format!("No work was rescued for {}{attempt}", show::name(task));
    Failure::new(Exit::NotFound, "NOTHING_RESCUED", message).hint(
        "Work is rescued when the worker died or lost its claim, on its machine, and the task has files \
         or a worktree of its own.",
    )
}

fn git_failed(error: GitError) -> Failure {
    Failure::new(Exit::Error, "GIT", capital(&error.to_string()))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
