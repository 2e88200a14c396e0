//! `tenure status`: whether something is held, and by whom.

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::Client;
use tenure::core::{Proof, Resource, Seen, SeenHold};
use tenure::place::Reach;

/// Tell whether something is held, and by whom
///
/// Without a resource: everything that is held, and the store. Always exits 0; to test in a script
/// read `data.locked` of --json.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure status deploy
  tenure status deploy --json | jq .data.locked")]
pub(crate) struct StatusArgs {
    /// What to look at
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Option<args::Written>,
}

pub(crate) async fn run(context: &Context, args: StatusArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    match args.resource {
        Some(written) => {
            let resource = context.resource(&client, &written, Reach::AllWorktrees).await?;
            one(context, &client, &resource).await
        }
        None => match context.only_resource() {
            Some(only) => one(context, &client, &only).await,
            None => all(context, &client).await,
        },
    }
}

async fn one(context: &Context, client: &Client, resource: &Resource) -> Result<i32, Failure> {
    let seen = client.look(std::slice::from_ref(resource)).await?;
    let data = status_json(context, client, &seen);
    let human = || {
        if seen.holds.is_empty() {
            return format!("{resource} is free");
        }
        let holds = seen.holds.iter().map(|seen| show::hold_words(seen, client.witness()));
        let waiting = (!seen.waiters.is_empty()).then(|| match seen.waiters.len() {
            1 => "  1 waits".to_owned(),
            many => format!("  {many} wait"),
        });
        holds.chain(waiting).collect::<Vec<_>>().join("\n")
    };
    match context.only_resource() {
        // Programs that know this folder's one lock read its state at the top.
        Some(_) => context.output.done_flat(data, human),
        None => context.output.done(data, human),
    }
    Ok(0)
}

/// `locked`, `holder`, `is_stale`, `stale_reason` and `we_hold_it`, as lock files' own tools print
/// them. Of several shared holders the first is shown there, all of them in `holders`.
fn status_json(context: &Context, client: &Client, seen: &Seen) -> Value {
    let Some(first) = seen.holds.first() else { return json!({ "locked": false }) };
    let stale = show::stale_reason(first, client.witness());
    let holders: Vec<Value> = seen.holds.iter().map(holder_json).collect();
    json!({
        "locked": true,
        "holder": holder_json(first),
        "holders": holders,
        "is_stale": stale.is_some(),
        "stale_reason": stale,
        "we_hold_it": seen.holds.iter().any(|seen| ours(context, seen)),
        "waiting": seen.waiters.len(),
    })
}

fn holder_json(seen: &SeenHold) -> Value {
    let evidence = seen.hold.holder.evidence.as_ref();
    json!({
        "pid": evidence.and_then(|evidence| evidence.process).map(|process| process.pid),
        "session_id": seen.hold.holder.label,
        "acquired_at": show::time(seen.acquired_at),
        "hostname": evidence.map(|evidence| &evidence.host),
        "operation": seen.hold.operation,
        "resource": seen.hold.want.resource.to_string(),
        "token": seen.hold.token,
        "expires_at": show::time(seen.expires_at),
    })
}

fn ours(context: &Context, seen: &SeenHold) -> bool {
    let by_label =
        seen.hold.holder.chosen && context.chosen_label() == Some(&seen.hold.holder.label);
    by_label || context.own_grant().is_some_and(|grant| Proof::Grant(grant).recognises(seen))
}

async fn all(context: &Context, client: &Client) -> Result<i32, Failure> {
    let seen = client.look_everywhere().await?;
    let info = client.info();
    let holds: Vec<&SeenHold> = seen.holds.iter().collect();
    let data = json!({
        "locked": !holds.is_empty(),
        "store": info.url,
        "engine": info.engine,
        "held": holds.iter().map(|seen| show::hold_json(seen, client.witness(), 0)).collect::<Vec<_>>(),
        "waiting": seen.waiters.len(),
        "revision": seen.revision,
    });
    context.output.done(data, || {
        let count = format!("{} held, {} waiting", holds.len(), seen.waiters.len());
        let store = match info.engine.as_str() {
            "memory" => "none here yet".to_owned(),
            engine => format!("{} ({engine})", info.url),
        };
        let head = format!("Store  {store}\n       {count}");
        match holds.is_empty() {
            true => head,
            false => format!("{head}\n\n{}", show::hold_table(&holds, client.witness())),
        }
    });
    Ok(0)
}
