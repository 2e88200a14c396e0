//! `tenure why`: who holds, who waits in which order, and what would free it.

use crate::args;
use crate::commands::tasks;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::core::{HoldSnapshot, Kind, Liveness, Overview, Resource, Snapshot, Task};
use tenure::place::Reach;
use tenure::{Client, Error};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view;

/// Tell who holds a resource and what would free it, or what a task waits for
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure why deploy
  tenure why 'path:src/**'                whoever holds any of these files")]
pub(crate) struct WhyArgs {
    /// What to explain: a resource, or a task by its id, a beginning of it, or its title
    #[arg(value_name = "RESOURCE|TASK", value_parser = args::resource)]
    resource: args::ResourceArg,
}

pub(crate) async fn run(context: &Context, args: WhyArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let resource = context.resource(&client, &args.resource, Reach::AllWorktrees).await?;
    let seen = client.look(std::slice::from_ref(&resource)).await?;
    if let Some(task) = meant_task(&client, &resource, &seen).await? {
        return explain_task(context, &client, &task).await;
    }
    let overview = Overview::of(&seen, client.witness());
    let holders = seen.holds.iter().map(|hold| {
        let mut value = show::hold_json(hold, client.witness(), overview.waiters.len());
        value["freed_by"] = json!(freed_by(&client, hold));
        value
    });
    let data = json!({
        "resource": resource.to_string(),
        "locked": !seen.holds.is_empty(),
        "free": overview.is_free(&resource),
        "holders": holders.collect::<Vec<Value>>(),
        "waiters": view::waiters_json(&overview.waiters),
        "next_in_line": view::next_in_line_words(&overview, &resource),
    });
    context.output.done(data, || words(&client, &resource, &overview));
    Ok(0)
}

/// The task that is meant: by `task:`, or by a text that names nothing that is held or waited for.
async fn meant_task(
    client: &Client,
    resource: &Resource,
    seen: &Snapshot,
) -> Result<Option<Task>, Failure> {
    let may_be = match resource.kind() {
        Kind::Task => true,
        Kind::Lock => {
            let overview = Overview::of(seen, client.witness());
            overview.holds.is_empty() && overview.waiters.is_empty()
        }
        Kind::Section | Kind::Path => false,
    };
    if !may_be {
        return Ok(None);
    }
    match client.tasks().find(resource.name()).await {
        Ok(task) => Ok(Some(task)),
        Err(Error::NoSuchTask { .. }) => Ok(None),
        // The name of a free lock may well be how several ids begin.
        Err(Error::Ambiguous { .. }) if resource.kind() == Kind::Lock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn explain_task(context: &Context, client: &Client, task: &Task) -> Result<i32, Failure> {
    let why = client.tasks().why(&task.id).await?;
    let seen = client.look(&[task.id.resource()]).await?;
    let hold = tasks::show::hold_of(task, &seen.holds);
    let data = json!({
        "task": tasks::show::task_json(task, hold),
        "ready": why.is_empty(),
        "waits_for": why,
        "freed_by": hold.map(|hold| freed_by(client, hold)),
    });
    context.output.done(data, || {
        let name = tasks::show::name(task);
        let mut lines = match why.is_empty() {
            true => vec![format!("{name} is ready: it can be claimed now")],
            false => vec![format!("{name} cannot be claimed now:")],
        };
        lines.extend(why.iter().map(|sentence| format!("  {sentence}")));
        lines.extend(hold.map(|hold| show::hold_words(hold, client.witness())));
        lines.extend(hold.map(|hold| format!("  {}", freed_by(client, hold))));
        lines.join("\n")
    });
    Ok(0)
}

fn words(client: &Client, resource: &Resource, overview: &Overview<'_>) -> String {
    let mut lines = Vec::new();
    if overview.holds.is_empty() {
        lines.push(format!("{resource} is free"));
    }
    for hold in &overview.holds {
        lines.push(show::hold_words(hold.seen, client.witness()));
        lines.push(format!("  {}", freed_by(client, hold.seen)));
    }
    if !overview.waiters.is_empty() {
        lines.push("Waiting, in order:".to_owned());
    }
    for (index, waiter) in overview.waiters.iter().enumerate() {
        lines.push(show::waiter_words(waiter, index + 1));
    }
    lines.extend(view::next_in_line_words(overview, resource));
    lines.join("\n")
}

/// What would end this hold, in a sentence.
fn freed_by(client: &Client, seen: &HoldSnapshot) -> String {
    if seen.gone(client.witness()) {
        return "free for the next who asks".to_owned();
    }
    let left = format_duration(seen.left);
    match seen.hold.holder.liveness(client.witness()) {
        Liveness::Alive => format!(
            "freed when it is released, when its process ends, or in {left} if that stops renewing"
        ),
        Liveness::Dead | Liveness::Unknown => {
            format!("freed when it is released, or in {left} unless it is renewed")
        }
    }
}
