//! `tenure why`: who holds, who waits in which order, and what would free it.

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::Client;
use tenure::core::{Liveness, Resource, Seen, SeenHold};
use tenure::duration::format_duration;

/// Tell who holds a resource, who waits, and what would free it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure why deploy
  tenure why 'path:src/**'                whoever holds any of these files")]
pub(crate) struct WhyArgs {
    /// What to explain
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Resource,
}

pub(crate) async fn run(context: &Context, args: WhyArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let seen = client.look(std::slice::from_ref(&args.resource)).await?;
    let holders = seen.holds.iter().map(|hold| {
        let mut value = show::hold_json(hold, client.witness(), seen.waiters.len());
        value["freed_by"] = json!(freed_by(&client, hold));
        value
    });
    let waiters =
        seen.waiters.iter().enumerate().map(|(index, seen)| show::waiter_json(seen, index + 1));
    let data = json!({
        "resource": args.resource.to_string(),
        "locked": !seen.holds.is_empty(),
        "holders": holders.collect::<Vec<Value>>(),
        "waiters": waiters.collect::<Vec<Value>>(),
    });
    context.output.done(data, || words(&client, &args.resource, &seen));
    Ok(0)
}

fn words(client: &Client, resource: &Resource, seen: &Seen) -> String {
    let mut lines = Vec::new();
    if seen.holds.is_empty() {
        lines.push(format!("{resource} is free"));
    }
    for hold in &seen.holds {
        lines.push(show::hold_words(hold, client.witness()));
        lines.push(format!("  {}", freed_by(client, hold)));
    }
    if !seen.waiters.is_empty() {
        lines.push("Waiting, in order:".to_owned());
    }
    for (index, waiter) in seen.waiters.iter().enumerate() {
        lines.push(show::waiter_words(waiter, index + 1));
    }
    lines.join("\n")
}

/// What would end this hold, in a sentence.
fn freed_by(client: &Client, seen: &SeenHold) -> String {
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
