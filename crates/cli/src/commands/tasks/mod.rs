//! `tenure tasks`: what is to be done, by one worker each.

mod add;
mod claim;
mod finish;
mod hand;
mod heartbeat;
mod list;
mod obtain;
mod own;
pub(crate) mod show;
mod update;
pub(crate) mod values;

pub(crate) use own::runner_grant;

use crate::commands::task_files;
use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use tenure::Client;
use tenure::core::Task;
use tenure::core::rules::tasks::ManualChange;

/// Add, claim, finish and look at tasks
///
/// A task is named by its id, by a unique beginning of its id, or by its exact title.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks add 'Fix bug' --section Backend --priority 10
  tenure tasks claim --as alice            the next that is ready; prints grant and token
  tenure tasks complete 'Fix bug' --as alice --result '{\"commit\": \"abc\"}'
  tenure tasks update 'Fix bug' --status in_progress --no-wait
  tenure tasks list --status pending")]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    command: TasksCommand,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    Add(add::AddArgs),
    List(list::ListArgs),
    /// One task in full, and what it waits for
    Show(TaskArg),
    Claim(claim::ClaimArgs),
    /// Note that you began with a task that you claimed
    Start(own::OwnArgs),
    Heartbeat(heartbeat::HeartbeatArgs),
    Complete(finish::ResultArgs),
    Fail(finish::FailArgs),
    /// Ask for somebody to look at a task that you claimed
    Review(finish::ResultArgs),
    /// Say that a task in review is fine
    Approve(TaskArg),
    Reject(hand::RejectArgs),
    Snooze(finish::SnoozeArgs),
    /// Give a task that you claimed back, untouched
    Release(own::OwnArgs),
    /// Say that a task is no longer wanted; a worker that has it loses it
    Cancel(TaskArg),
    /// Have a failed, blocked, cancelled or skipped task done after all
    Retry(TaskArg),
    /// Pass over a task; those that wait for it may go on
    Skip(TaskArg),
    Update(update::UpdateArgs),
    /// Remove a task that nobody works on and nobody waits for
    Delete(TaskArg),
    /// How many tasks there are of each section and status
    Stats,
    /// Take back the tasks whose worker died or fell silent
    Recover,
    Import(task_files::ImportArgs),
    Export(task_files::ExportArgs),
}

/// Which task.
#[derive(Debug, Args)]
struct TaskArg {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
}

impl TasksArgs {
    /// The word for the envelope.
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.command {
            TasksCommand::Add(_) => "add",
            TasksCommand::List(_) => "list",
            TasksCommand::Show(_) => "show",
            TasksCommand::Claim(_) => "claim",
            TasksCommand::Start(_) => "start",
            TasksCommand::Heartbeat(_) => "heartbeat",
            TasksCommand::Complete(_) => "complete",
            TasksCommand::Fail(_) => "fail",
            TasksCommand::Review(_) => "review",
            TasksCommand::Approve(_) => "approve",
            TasksCommand::Reject(_) => "reject",
            TasksCommand::Snooze(_) => "snooze",
            TasksCommand::Release(_) => "release",
            TasksCommand::Cancel(_) => "cancel",
            TasksCommand::Retry(_) => "retry",
            TasksCommand::Skip(_) => "skip",
            TasksCommand::Update(_) => "update",
            TasksCommand::Delete(_) => "delete",
            TasksCommand::Stats => "stats",
            TasksCommand::Recover => "recover",
            TasksCommand::Import(_) => "import",
            TasksCommand::Export(_) => "export",
        }
    }
}

pub(crate) async fn run(context: &Context, args: TasksArgs) -> Result<i32, Failure> {
    let by_hand =
        async |task: TaskArg, verb: ManualChange| hand::run(context, &task.task, verb).await;
    match args.command {
        TasksCommand::Add(args) => add::run(context, args).await,
        TasksCommand::List(args) => list::run(context, args).await,
        TasksCommand::Show(args) => list::show_one(context, &args.task).await,
        TasksCommand::Claim(args) => claim::run(context, args).await,
        TasksCommand::Start(args) => finish::start(context, args).await,
        TasksCommand::Heartbeat(args) => heartbeat::run(context, args).await,
        TasksCommand::Complete(args) => finish::complete(context, args).await,
        TasksCommand::Fail(args) => finish::fail(context, args).await,
        TasksCommand::Review(args) => finish::review(context, args).await,
        TasksCommand::Approve(args) => by_hand(args, ManualChange::Approve).await,
        TasksCommand::Reject(args) => hand::reject(context, args).await,
        TasksCommand::Snooze(args) => finish::snooze(context, args).await,
        TasksCommand::Release(args) => finish::release(context, args).await,
        TasksCommand::Cancel(args) => by_hand(args, ManualChange::Cancel).await,
        TasksCommand::Retry(args) => by_hand(args, ManualChange::Retry).await,
        TasksCommand::Skip(args) => by_hand(args, ManualChange::Skip).await,
        TasksCommand::Update(args) => update::run(context, args).await,
        TasksCommand::Delete(args) => hand::delete(context, &args.task).await,
        TasksCommand::Stats => list::stats(context).await,
        TasksCommand::Recover => hand::recover(context).await,
        TasksCommand::Import(args) => task_files::import(context, args).await,
        TasksCommand::Export(args) => task_files::export(context, args).await,
    }
}

/// The task that a person means; `task:ID` means what it means everywhere.
pub(crate) async fn find(client: &Client, text: &str) -> Result<Task, Failure> {
    let bare = text.strip_prefix("task:").unwrap_or(text);
    if bare.trim().is_empty() {
        return Err(Failure::usage("a task is named by its id or its title, not by nothing"));
    }
    Ok(client.tasks().find(bare).await?)
}
