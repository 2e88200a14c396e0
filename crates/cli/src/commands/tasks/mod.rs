//! `tenure tasks`: the task list, from which each task is claimed by one worker.

mod add;
mod claim;
mod claim_or_wait;
mod finish;
mod heartbeat;
mod list;
mod log;
mod manual_change;
mod note;
mod ownership;
mod rescue;
pub(crate) mod show;
mod update;
pub(crate) mod values;

pub(crate) use tenure::agent::runner_grant;

use crate::commands::task_files;
use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use tenure::Client;
use tenure::core::rules::tasks::ManualChange;
use tenure::core::{HoldSnapshot, Task};

/// Add, claim, finish and show tasks
///
/// A task is named by its id, by a unique beginning of its id, or by its exact title.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks                             the tasks, oldest first
  tenure tasks add 'Fix bug' --section Backend --priority 10
  tenure tasks claim --as alice            the next ready task; prints grant and token
  tenure tasks complete 'Fix bug' --as alice --result '{\"commit\": \"abc\"}'
  tenure tasks update 'Fix bug' --status in_progress --no-wait
  tenure tasks list --status pending")]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    command: Option<TasksCommand>,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    Add(add::AddArgs),
    List(list::ListArgs),
    Show(list::ShowArgs),
    Log(log::LogArgs),
    Claim(claim::ClaimArgs),
    /// Record that you started a task that you claimed
    Start(ownership::OwnTaskArgs),
    Heartbeat(heartbeat::HeartbeatArgs),
    Note(note::NoteArgs),
    Complete(finish::ResultArgs),
    Fail(finish::FailArgs),
    /// Send a task that you claimed to review
    Review(finish::ResultArgs),
    /// Approve a task in review
    Approve(TaskArg),
    Reject(manual_change::RejectArgs),
    Snooze(finish::SnoozeArgs),
    /// Return a task that you claimed, unfinished
    Release(ownership::OwnTaskArgs),
    /// Cancel a task; its worker loses it
    Cancel(TaskArg),
    /// Make a failed, blocked, cancelled or skipped task pending again
    Retry(TaskArg),
    /// Skip a task; tasks that wait for it can start
    Skip(TaskArg),
    Update(update::UpdateArgs),
    /// Delete a task that has no worker and that no task waits for
    Delete(TaskArg),
    /// Count tasks by section and status
    Stats,
    /// Recover tasks whose worker died or stopped renewing
    Recover,
    Rescue(rescue::RescueArgs),
    Import(task_files::ImportArgs),
    Export(task_files::ExportArgs),
}

/// The argument that names a task.
#[derive(Debug, Args)]
struct TaskArg {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
}

pub(crate) async fn run(context: &Context, args: TasksArgs) -> Result<i32, Failure> {
    let by_hand = async |task: TaskArg, verb: ManualChange| {
        manual_change::run(context, &task.task, verb).await
    };
    match args.command.unwrap_or(TasksCommand::List(list::ListArgs::default())) {
        TasksCommand::Add(args) => add::run(context, args).await,
        TasksCommand::List(args) => list::run(context, args).await,
        TasksCommand::Show(args) => list::show_one(context, &args).await,
        TasksCommand::Log(args) => log::run(context, args).await,
        TasksCommand::Claim(args) => claim::run(context, args).await,
        TasksCommand::Start(args) => finish::start(context, args).await,
        TasksCommand::Heartbeat(args) => heartbeat::run(context, args).await,
        TasksCommand::Note(args) => note::run(context, args).await,
        TasksCommand::Complete(args) => finish::complete(context, args).await,
        TasksCommand::Fail(args) => finish::fail(context, args).await,
        TasksCommand::Review(args) => finish::review(context, args).await,
        TasksCommand::Approve(args) => by_hand(args, ManualChange::Approve).await,
        TasksCommand::Reject(args) => manual_change::reject(context, args).await,
        TasksCommand::Snooze(args) => finish::snooze(context, args).await,
        TasksCommand::Release(args) => finish::release(context, args).await,
        TasksCommand::Cancel(args) => by_hand(args, ManualChange::Cancel).await,
        TasksCommand::Retry(args) => by_hand(args, ManualChange::Retry).await,
        TasksCommand::Skip(args) => by_hand(args, ManualChange::Skip).await,
        TasksCommand::Update(args) => update::run(context, args).await,
        TasksCommand::Delete(args) => manual_change::delete(context, &args.task).await,
        TasksCommand::Stats => list::stats(context).await,
        TasksCommand::Recover => manual_change::recover(context).await,
        TasksCommand::Rescue(args) => rescue::run(context, args).await,
        TasksCommand::Import(args) => task_files::import(context, args).await,
        TasksCommand::Export(args) => task_files::export(context, args).await,
    }
}

/// Finds a task by its id, a beginning of its id, or its title; also by `task:ID`.
pub(crate) async fn find(client: &Client, text: &str) -> Result<Task, Failure> {
    Ok(client.tasks().find(bare(text)?).await?)
}

/// The same, with the hold by which its worker has it.
async fn find_with_hold(
    client: &Client,
    text: &str,
) -> Result<(Task, Option<HoldSnapshot>), Failure> {
    Ok(client.tasks().find_with_hold(bare(text)?).await?)
}

fn bare(text: &str) -> Result<&str, Failure> {
    let bare = text.strip_prefix("task:").unwrap_or(text);
    match bare.trim().is_empty() {
        true => Err(Failure::usage("the name of a task must not be empty")),
        false => Ok(bare),
    }
}
