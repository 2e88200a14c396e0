//! What somebody who is not its worker does to a task.

use super::{find, show};
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use tenure::core::Status;
use tenure::core::rules::tasks::ManualChange;

/// Say that a task in review is to be done again
#[derive(Debug, Args)]
pub(super) struct RejectArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
    /// What is to be changed
    #[arg(long, value_name = "TEXT")]
    feedback: String,
}

pub(super) async fn reject(context: &Context, args: RejectArgs) -> Result<i32, Failure> {
    run(context, &args.task, ManualChange::Reject { feedback: args.feedback }).await
}

pub(super) async fn run(context: &Context, text: &str, verb: ManualChange) -> Result<i32, Failure> {
    let client = context.client().await?;
    let task = find(&client, text).await?;
    let done = match &verb {
        ManualChange::Approve => "Approved",
        ManualChange::Reject { .. } => "Rejected",
        ManualChange::Cancel => "Cancelled",
        ManualChange::Retry => "To be done again:",
        ManualChange::Skip => "Skipped",
        ManualChange::Snooze { .. } => "Put off",
        ManualChange::Update(_) => "Changed",
    };
    let task = client.tasks().edit(&task.id, verb).await?;
    let data = json!({ "task": show::task_json(&task, None) });
    context.output.done(data, || match context.output.quiet {
        true => String::new(),
        false => format!("{done} {}", show::name(&task)),
    });
    Ok(0)
}

pub(super) async fn delete(context: &Context, text: &str) -> Result<i32, Failure> {
    let client = context.client().await?;
    let task = find(&client, text).await?;
    let task = client.tasks().delete(&task.id).await?;
    let data = json!({ "task": show::task_json(&task, None) });
    context.output.done(data, || match context.output.quiet {
        true => String::new(),
        false => format!("Deleted {}", show::name(&task)),
    });
    Ok(0)
}

pub(super) async fn recover(context: &Context) -> Result<i32, Failure> {
    let client = context.client().await?;
    let tasks = client.tasks().recover().await?;
    let data: Vec<_> = tasks.iter().map(|task| show::task_json(task, None)).collect();
    context.output.confirm(json!({ "tasks": data }), || {
        if tasks.is_empty() {
            return "Nothing to take back".to_owned();
        }
        let lines = tasks.iter().map(|task| match task.status {
            Status::Blocked => {
                format!("Blocked {}: its workers died or fell silent too often", show::name(task))
            }
            _ => format!("Took back {}", show::name(task)),
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}
