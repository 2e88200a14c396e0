//! `tenure gc`: removes history beyond what is kept.

use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;

/// Remove finished tasks and events beyond what the settings keep
///
/// The settings are `retention.events`, `retention.eventsAge`, `retention.tasks`,
/// `retention.tasksAge` and `retention.failedAge`; of a server, the server's own. Commands and
/// servers do the same little by little while they change the store, so this is needed only after
/// a limit was lowered. Tasks that an unfinished task depends on stay. A removed task is no longer
/// recognised by its key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure gc --dry-run                        what would be removed
  TENURE_RETENTION_TASKS_AGE=30d tenure gc   remove tasks that ended more than 30 days ago")]
pub(crate) struct GcArgs {
    /// Count what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, args: GcArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let collected = client.collect(args.dry_run).await?;
    let (tasks, events) = (collected.tasks, collected.events);
    let data = json!({ "dry_run": args.dry_run, "tasks": tasks, "events": events });
    context.output.confirm(data, || {
        let verb = if args.dry_run { "Would remove" } else { "Removed" };
        match (tasks, events) {
            (0, 0) => "Nothing to remove".to_owned(),
            _ => format!("{verb} {} and {}", counted(tasks, "task"), counted(events, "event")),
        }
    });
    Ok(0)
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}
