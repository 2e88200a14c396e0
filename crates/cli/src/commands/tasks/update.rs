//! `tenure tasks update`: changes fields, and the status by running the matching command.

use super::claim::{claim_text, claimed_json};
use super::claim_or_wait::{ClaimOptions, claim_or_wait};
use super::finish::end_task;
use super::ownership::{OwnTaskArgs, hold_of};
use super::values::{self, TimeArg};
use super::{find, show};
use crate::args::numbers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use tenure::core::rules::tasks::{Finish, ManualChange, TaskChange};
use tenure::core::{GrantId, Status, Task};
use tenure::{ClaimRequest, Client};
use tenure_frontend::view;

/// Change a task's fields or status
///
/// A new --status runs the matching command: in_progress claims the task for you and waits if
/// another worker has it (unless --no-wait); completed, failed, review and pending end your claim;
/// cancelled and skipped need no claim.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks update 'Fix bug' --status in_progress --as alice
  tenure tasks update 'Fix bug' --status completed --as alice
  tenure tasks update 'Fix bug' --priority 5 --section Backend --file 'src/**'")]
pub(super) struct UpdateArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
    /// The new status
    #[arg(long, value_name = "STATUS", value_parser = values::status)]
    status: Option<Status>,
    /// The title, in one line
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The full description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The section; empty for none
    #[arg(long, value_name = "SECTION")]
    section: Option<String>,
    /// Priority from 0 (first) to 100 (last)
    #[arg(long, value_name = "N", value_parser = values::priority)]
    priority: Option<u8>,
    /// Order among tasks of equal priority: lower goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = numbers::position)]
    position: Option<i64>,
    /// JSON for the worker
    #[arg(long, value_name = "JSON", value_parser = values::json)]
    payload: Option<String>,
    /// The largest number of attempts
    #[arg(long, value_name = "N", value_parser = numbers::attempts)]
    max_attempts: Option<u32>,
    /// Start only after this time: 2026-01-29T20:30:00Z, or +10m from now
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    not_before: Option<TimeArg>,
    /// Files that the task changes, relative to the current folder, instead of those it had; can be
    /// repeated; empty for none
    #[arg(long = "file", value_name = "GLOB")]
    files: Vec<String>,
    /// The grant of your claim, to end it
    #[arg(long, value_name = "GRANT")]
    grant: Option<GrantId>,
    #[command(flatten)]
    how: ClaimOptions,
}

pub(super) async fn run(context: &Context, args: UpdateArgs) -> Result<i32, Failure> {
    let change = change(context, &args)?;
    if change == TaskChange::default() && args.status.is_none() {
        return Err(Failure::usage("nothing to change")
            .hint("See `tenure tasks update --help` for the fields."));
    }
    if change.title.as_ref().is_some_and(|title| title.trim().is_empty()) {
        return Err(Failure::usage("a task needs a title"));
    }
    let client = context.client().await?;
    let mut task = find(&client, &args.task).await?;
    if change != TaskChange::default() {
        task = client.tasks().edit(&task.id, ManualChange::Update(Box::new(change))).await?;
    }
    match args.status {
        Some(Status::InProgress) => return begin(context, &client, &task, &args.how).await,
        Some(status) => task = set_status(context, &client, task, status, args.grant).await?,
        None => {}
    }
    let data = json!({ "task": view::Task::new(&task, None) });
    context.output.done(data, || match (context.output.quiet, args.status) {
        (true, _) => String::new(),
        (false, None) => format!("Updated {}", show::name(&task)),
        (false, Some(_)) => status_words(&task),
    });
    Ok(0)
}

fn status_words(task: &Task) -> String {
    format!("Task {:?} status updated to {}.", task.title, task.status)
}

fn change(context: &Context, args: &UpdateArgs) -> Result<TaskChange, Failure> {
    let globs = args.files.iter().filter(|glob| !glob.is_empty());
    let files: Vec<String> = globs.map(|glob| context.task_glob(glob)).collect::<Result<_, _>>()?;
    Ok(TaskChange {
        title: args.title.clone(),
        description: args.description.clone(),
        section: args.section.clone(),
        priority: args.priority,
        position: args.position,
        payload: args.payload.clone(),
        max_attempts: args.max_attempts,
        not_before: args.not_before.map(TimeArg::wall),
        files: (!args.files.is_empty()).then_some(files),
    })
}

/// Claims the task for the caller.
async fn begin(
    context: &Context,
    client: &Client,
    task: &Task,
    how: &ClaimOptions,
) -> Result<i32, Failure> {
    let request = ClaimRequest { task: Some(task.id.clone()), ..how.request(context) };
    let obtained = claim_or_wait(context, client, &request, how).await?;
    let one = &obtained.tasks[0];
    let data = json!({ "task": claimed_json(one) });
    let words = || match context.output.quiet {
        true => one.task.id.to_string(),
        false => format!("{}\n{}", status_words(&one.task), claim_text(one, request.ttl)),
    };
    obtained.hand_out(context, client, data, words).await
}

async fn set_status(
    context: &Context,
    client: &Client,
    task: Task,
    status: Status,
    grant: Option<GrantId>,
) -> Result<Task, Failure> {
    if task.status == status {
        return Ok(task);
    }
    let verb = match (status, task.status) {
        (Status::Completed, Status::Review) => ManualChange::Approve,
        (Status::Cancelled, _) => ManualChange::Cancel,
        (Status::Skipped, _) => ManualChange::Skip,
        (Status::Pending, Status::Review) => {
            return Err(impossible(&task, status)
                .hint("Reject it with `tenure tasks reject --feedback TEXT`."));
        }
        (Status::Pending, from) if from != Status::InProgress => ManualChange::Retry,
        (Status::Blocked, _) => return Err(impossible(&task, status)),
        _ => {
            let own = OwnTaskArgs::new(&task, grant);
            let finish = match status {
                Status::Completed => Finish::Complete { result: None },
                Status::Review => Finish::Review { result: None },
                Status::Failed => {
                    Finish::Fail { reason: "no reason given".to_owned(), retry: false }
                }
                _ => Finish::Release,
            };
            let hold = hold_of(client, &task).await?;
            let ended = end_task(context, client, &task, hold.as_ref(), &own, finish).await?;
            return Ok(ended.task);
        }
    };
    Ok(client.tasks().edit(&task.id, verb).await?)
}

fn impossible(task: &Task, status: Status) -> Failure {
    let (title, from) = (&task.title, task.status);
    let message = format!("Task {title:?} is {from}: it cannot be set to {status}");
    Failure::new(Exit::Error, "TASK_STATUS", message)
}
