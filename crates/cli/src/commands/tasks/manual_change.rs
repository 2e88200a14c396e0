//! `tenure tasks approve`, `reject`, `cancel`, `retry`, `skip`, `delete` and `recover`: changes by
//! people, not by the task's worker.

use super::{find, show};
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use tenure::core::Status;
use tenure::core::rules::tasks::ManualChange;
use tenure_frontend::view;

/// Reject a task in review: it has to be done again
#[derive(Debug, Args)]
pub(super) struct RejectArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
    /// What has to change
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
        ManualChange::Retry => "Pending again:",
        ManualChange::Skip => "Skipped",
        ManualChange::Update(_) => "Changed",
    };
    let task = client.tasks().edit(&task.id, verb).await?;
    let data = json!({ "task": view::Task::new(&task, None) });
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
    let data = json!({ "task": view::Task::new(&task, None) });
    context.output.done(data, || match context.output.quiet {
        true => String::new(),
        false => format!("Deleted {}", show::name(&task)),
    });
    Ok(0)
}

pub(super) async fn recover(context: &Context) -> Result<i32, Failure> {
    let client = context.client().await?;
    let mut tasks = client.tasks().recover().await?;
    let rescuer = context.rescuer();
    for task in &mut tasks {
        let hand_over = rescuer.take_over(&client, task).await;
        hand_over.update(task);
        if let Some(warning) = hand_over.warning {
            context.output.note(&warning);
        }
    }
    let data: Vec<_> = tasks.iter().map(|task| view::Task::new(task, None)).collect();
    context.output.confirm(json!({ "tasks": data }), || {
        if tasks.is_empty() {
            return "No task to recover".to_owned();
        }
        let lines = tasks.iter().map(|task| match task.status {
            Status::Blocked => {
                format!(
                    "Blocked {}: too many of its workers died or stopped renewing",
                    show::name(task)
                )
            }
            _ => format!("Recovered {}", show::name(task)),
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}
