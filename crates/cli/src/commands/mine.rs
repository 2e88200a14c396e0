//! `tenure mine`: shows what the caller's agent or label holds.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::Client;
use tenure::core::{HoldSnapshot, Kind, Overview, Proof};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view;

/// Show what you hold
///
/// Lists what your agent or label holds: until when, since when and what for, and the tasks that you
/// claimed. All commands, hooks and tools of one agent hold under one label; `tenure whoami` shows it.
/// What your running commands hold (`run`, `work`) is listed too, and ends with them. Exits 0 also if
/// you hold nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure mine
  tenure mine --json | jq -r '.data.holding[].resource'
  tenure --as alice mine")]
pub(crate) struct MineArgs {}

pub(crate) async fn run(context: &Context, _: MineArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let seen = client.look_everywhere().await?;
    let overview = Overview::of(&seen, client.witness());
    let mine: Vec<&HoldSnapshot> = overview.held().filter(|seen| is_mine(context, seen)).collect();
    let mut holding = Vec::new();
    for seen in &mine {
        let waiting = overview.waiting_for(&seen.hold.want.resource).len();
        let mut value = view::json(&view::Hold::new(seen, client.witness(), waiting));
        value["owned"] = json!(is_owned(context, seen));
        value["task"] = task(&client, seen).await?;
        holding.push(value);
    }
    let label = context.own_label();
    let data = json!({ "label": label, "holding": holding });
    context.output.done(data, || {
        if mine.is_empty() {
            return match label {
                Some(label) => format!("{} holds nothing", styled(NAME, label)),
                None => {
                    "You hold nothing: each of your commands has a label of its own. Choose one \
                         with --as or TENURE_AGENT."
                        .to_owned()
                }
            };
        }
        table(context, &mine)
    });
    Ok(0)
}

/// Whether a hold is shown: the caller's own, that of a command under the same label, or that of the
/// command around this one.
fn is_mine(context: &Context, seen: &HoldSnapshot) -> bool {
    let around = context.enclosing_grants();
    context.own_label() == Some(&seen.hold.holder.label)
        || around.into_iter().any(|grant| Proof::Grant(grant).recognises(seen))
}

/// Whether the caller's label proves that the hold is the caller's.
fn is_owned(context: &Context, seen: &HoldSnapshot) -> bool {
    let label = context.own_label().map(|label| Proof::Label(label.to_owned()));
    label.is_some_and(|proof| proof.recognises(seen))
}

async fn task(client: &Client, seen: &HoldSnapshot) -> Result<Value, Failure> {
    let resource = &seen.hold.want.resource;
    let id = (resource.kind() == Kind::Task).then(|| resource.name().parse().ok()).flatten();
    let Some(id) = id else { return Ok(Value::Null) };
    let task = client.tasks().get(&id).await?;
    Ok(task.map_or(
        Value::Null,
        |task| json!({ "id": task.id.as_str(), "title": task.title, "status": task.status.word() }),
    ))
}

fn table(context: &Context, mine: &[&HoldSnapshot]) -> String {
    let header = ["RESOURCE", "AGE", "LEFT", "TOKEN", "FOR"].map(str::to_owned);
    let rows = mine.iter().map(|seen| {
        let operation = seen.hold.operation.as_deref().map(show::one_line).unwrap_or_default();
        let by_command = if is_owned(context, seen) { "" } else { "(a running command) " };
        [
            show::name(&seen.hold.want.resource),
            format_duration(seen.held_for),
            format_duration(seen.left),
            seen.hold.token.to_string(),
            format!("{by_command}{operation}"),
        ]
    });
    show::table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}
