//! `tenure why`: shows who holds a resource, who waits, and what would free it.

use crate::args;
use crate::commands::tasks;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::core::{HoldSnapshot, Kind, Liveness, Overview, Resource, Snapshot, Task};
use tenure::{Client, Error};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view::{self, spelling};

/// Explain who holds a resource, or why a task cannot be claimed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure why deploy
  tenure why 'path:src/**'                the holders of any of these files")]
pub(crate) struct WhyArgs {
    /// The resource, or a task by its id, a beginning of its id, or its title
    #[arg(value_name = "RESOURCE|TASK", value_parser = args::resource)]
    resource: args::ResourceArg,
}

pub(crate) async fn run(context: &Context, args: WhyArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let resource = match context.resource(&client, &args.resource).await {
        Ok(resource) => resource,
        // A title may look like a path.
        Err(failure) => match client.tasks().find(&args.resource.text).await {
            Ok(task) if args.resource.is_plain() => {
                return explain_task(context, &client, &task).await;
            }
            _ => return Err(failure),
        },
    };
    let seen = client.look(std::slice::from_ref(&resource)).await?;
    if let Some(task) = meant_task(&client, &resource, &seen).await? {
        return explain_task(context, &client, &task).await;
    }
    let overview = Overview::of(&seen, client.witness());
    let holders = seen.holds.iter().map(|hold| {
        let hold_shown = view::Hold::new(hold, client.witness(), overview.waiters.len());
        let mut value = view::json(&hold_shown);
        value["freed_by"] = json!(freed_by(&client, hold));
        if let Some(left) = show::left_words(&hold.hold.holder) {
            value["still_running"] = json!(left);
        }
        value
    });
    let data = json!({
        "resource": resource.to_string(),
        "locked": !seen.holds.is_empty(),
        "free": overview.is_free(&resource),
        "holders": holders.collect::<Vec<Value>>(),
        "waiters": view::Waiter::all(overview.waiters.iter().copied()),
        "next_in_line": view::next_in_line_words(&overview, &resource),
    });
    context.output.done(data, || words(&client, &resource, &overview));
    Ok(0)
}

/// The task that is meant: by `task:`, or by a text that matches nothing held or awaited.
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
        // The name of a free lock may also be the beginning of several ids.
        Err(Error::Ambiguous { .. }) if resource.kind() == Kind::Lock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn explain_task(context: &Context, client: &Client, task: &Task) -> Result<i32, Failure> {
    let why = client.tasks().why(&task.id).await?;
    let seen = client.tasks().claims_of(std::slice::from_ref(task)).await?;
    let claims = view::Claims::of(&seen, client.witness());
    let hold = claims.hold(task);
    let queue = client.look(&[task.id.resource()]).await?;
    let overview = Overview::of(&queue, client.witness());
    let data = json!({
        "task": claims.task(task),
        "ready": why.is_empty(),
        "waits_for": why,
        "freed_by": hold.map(|hold| freed_by(client, hold)),
        "waiters": view::Waiter::all(overview.waiters.iter().copied()),
    });
    context.output.done(data, || {
        let name = tasks::show::name(task);
        let mut lines = match why.is_empty() {
            true => vec![format!("{name} is ready: it can be claimed now")],
            false => vec![format!("{name} cannot be claimed now:")],
        };
        lines.extend(why.iter().map(|sentence| format!("  {}", spelling::sentence(sentence))));
        lines.extend(hold.map(|hold| show::hold_text(hold, client.witness())));
        lines.extend(hold.map(|hold| format!("  {}", freed_by(client, hold))));
        lines.extend(queue_lines(&overview));
        lines.join("\n")
    });
    Ok(0)
}

fn queue_lines(overview: &Overview<'_>) -> Vec<String> {
    let waiters = overview.waiters.iter().enumerate();
    let waiters = waiters.map(|(index, waiter)| show::waiter_text(waiter, index + 1));
    let header = (!overview.waiters.is_empty()).then(|| "Waiters, in order:".to_owned());
    header.into_iter().chain(waiters).collect()
}

fn words(client: &Client, resource: &Resource, overview: &Overview<'_>) -> String {
    let mut lines = Vec::new();
    if overview.holds.is_empty() {
        lines.push(format!("{} is free", show::name(resource)));
    }
    for hold in &overview.holds {
        lines.push(show::hold_text(hold.seen, client.witness()));
        lines.push(format!("  {}", freed_by(client, hold.seen)));
    }
    lines.extend(queue_lines(overview));
    lines.extend(view::next_in_line_words(overview, resource));
    lines.join("\n")
}

/// What would end this hold, as a sentence.
fn freed_by(client: &Client, seen: &HoldSnapshot) -> String {
    if seen.gone(client.witness()) {
        return "free: the next request gets it".to_owned();
    }
    if seen.has_no_limit() {
        return "freed when it is released".to_owned();
    }
    let left = format_duration(seen.left);
    if show::left_words(&seen.hold.holder).is_some() {
        return format!("freed when all of that has ended, or in {left}");
    }
    match seen.hold.holder.liveness(client.witness()) {
        Liveness::Alive => format!(
            "freed when it is released, when its process ends, or in {left} if it is not renewed"
        ),
        Liveness::Dead | Liveness::Unknown => {
            format!("freed when it is released, or in {left} if it is not renewed")
        }
    }
}
