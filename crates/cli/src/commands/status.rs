//! `tenure status`: shows whether a resource is held, and its holder.

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::Client;
use tenure::core::{HoldSnapshot, Overview, Proof, Resource};
use tenure_frontend::view;

/// Show whether a resource is held, and by whom
///
/// Without a resource: everything that is held, and the store. Always exits 0; scripts read
/// `data.free` of --json. A lapsed hold and that of a dead holder count as free.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure status deploy
  tenure status deploy --json | jq .data.free")]
pub(crate) struct StatusArgs {
    /// The resource; by default everything
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Option<args::ResourceArg>,
}

pub(crate) async fn run(context: &Context, args: StatusArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    match args.resource {
        Some(written) => {
            let resource = context.resource(&client, &written).await?;
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
    let overview = Overview::of(&seen, client.witness());
    let mut data = status_json(context, client, resource, &overview);
    let human = || {
        let mut lines = match overview.holds.is_empty() {
            true => vec![format!("{} is free", show::name(resource))],
            false => overview
                .holds
                .iter()
                .map(|hold| show::hold_text(hold.seen, client.witness()))
                .collect(),
        };
        lines.extend(match overview.waiters.len() {
            0 => None,
            1 => Some("  1 waits".to_owned()),
            many => Some(format!("  {many} waiters")),
        });
        let next = view::next_in_line_words(&overview, resource);
        lines.extend(next.map(|words| format!("  {words}")));
        lines.join("\n")
    };
    match context.only_resource() {
        // Programs that know this folder's single lock expect its state at the top level, in their
        // own form.
        Some(_) => {
            data.as_object_mut().map(|fields| fields.remove("free"));
            context.output.done_flat(data, human);
        }
        None => context.output.done(data, human),
    }
    Ok(0)
}

/// `locked`, `holder`, `is_stale`, `stale_reason` and `we_hold_it` are as the tools of the lock
/// files print them: a stale lock is `locked` too. Of several holders, the first valid one is shown
/// there, and all are in `holders`. `free` says whether the next request would get it.
fn status_json(
    context: &Context,
    client: &Client,
    resource: &Resource,
    overview: &Overview<'_>,
) -> Value {
    let waiting = overview.waiters.len();
    let first = overview.held().next().or(overview.holds.first().map(|hold| hold.seen));
    let Some(first) = first else {
        return match waiting {
            0 => json!({ "locked": false, "free": true }),
            _ => json!({ "locked": false, "free": true, "waiting": waiting }),
        };
    };
    let stale = show::stale_reason(first, client.witness());
    let holds = || overview.holds.iter().map(|hold| hold.seen);
    let holders: Vec<Value> = holds().map(holder_json).collect();
    json!({
        "locked": true,
        "free": overview.is_free(resource),
        "holder": holder_json(first),
        "holders": holders,
        "is_stale": stale.is_some(),
        "stale_reason": stale,
        "we_hold_it": overview.held().any(|seen| ours(context, seen)),
        "waiting": waiting,
    })
}

fn holder_json(seen: &HoldSnapshot) -> Value {
    let evidence = seen.hold.holder.evidence.as_ref();
    json!({
        "pid": evidence.and_then(|evidence| evidence.process).map(|process| process.pid),
        "session_id": seen.hold.holder.label,
        "acquired_at": show::time(seen.acquired_at),
        "hostname": evidence.map(|evidence| &evidence.host),
        "operation": seen.hold.operation,
        "resource": seen.hold.want.resource.to_string(),
        "token": seen.hold.token,
        "slot": seen.hold.slot,
        "expires_at": seen.limit().map(show::time),
    })
}

fn ours(context: &Context, seen: &HoldSnapshot) -> bool {
    let by_label = seen.hold.holder.chosen && context.own_label() == Some(&seen.hold.holder.label);
    by_label || context.enclosing_grant().is_some_and(|grant| Proof::Grant(grant).recognises(seen))
}

async fn all(context: &Context, client: &Client) -> Result<i32, Failure> {
    let seen = client.look_at_workers().await?;
    let info = client.info();
    let overview = Overview::of(&seen, client.witness());
    let counts = overview.counts();
    let holds: Vec<&HoldSnapshot> = seen.holds.iter().collect();
    let waiting = |resource: &Resource| overview.waiting_for(resource).len();
    let held = holds.iter().map(|hold| {
        let waiting = waiting(&hold.hold.want.resource);
        view::HoldAmong::new(hold, &seen.holds, client.witness(), waiting)
    });
    let data = json!({
        "locked": counts.held > 0,
        "store": info.url,
        "engine": info.engine,
        "held": held.collect::<Vec<_>>(),
        "counts": view::Counts::from(counts),
        "waiting": counts.waiting,
        "revision": seen.revision,
    });
    context.output.done(data, || {
        let count = view::counts_words(counts);
        let store = match info.engine.as_str() {
            "memory" => "none yet".to_owned(),
            engine => format!("{} ({engine})", info.url),
        };
        let head = format!("Store  {store}\n       {count}");
        match holds.is_empty() {
            true => head,
            false => format!(
                "{head}\n\n{}",
                show::hold_table(&holds, &seen.holds, &waiting, client.witness())
            ),
        }
    });
    Ok(0)
}
