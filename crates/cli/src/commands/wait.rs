//! `tenure wait`: waits until a resource is free, without taking it.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_under_lock::with_wait_hint;
use crate::show;
use crate::wait_display::WaitDisplay;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::agent::processes_around;
use tenure::core::{Blocker, Owner, Proof, Resource};
use tenure::{Busy, Client, Free, Wait};

/// Wait until a resource is free, without taking it
///
/// Another process may take it at once; to take it yourself use `run` or `acquire`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure wait deploy && echo 'the deployment is over'
  tenure wait -w 30 db                    up to 30 seconds, then exit 6")]
pub(crate) struct WaitArgs {
    /// The resource to wait for
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: args::ResourceArg,
    #[command(flatten)]
    patience: args::PatienceArgs,
}

pub(crate) async fn run(context: &Context, args: WaitArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let wait = context.wait(args.patience.nonblock, args.patience.limit);
    let resource = context.resource(&client, &args.resource).await?;
    match watch(context, &client, &resource, wait).await? {
        Free::Free => {
            let data = json!({ "resource": resource.to_string(), "free": true });
            context.output.done(data, || match context.output.quiet {
                true => String::new(),
                false => format!("{} is free", show::name(&resource)),
            });
            Ok(0)
        }
        Free::Busy(busy) => Err(with_wait_hint(Failure::locked(&[resource], &busy), wait)),
    }
}

/// Looks once before waiting, to show the holder.
async fn watch(
    context: &Context,
    client: &Client,
    resource: &Resource,
    wait: Wait,
) -> Result<Free, Failure> {
    let blockers = match client.wait_until_free(resource, Wait::No).await? {
        Free::Busy(busy) => busy.blockers,
        Free::Free => return Ok(Free::Free),
    };
    let own = context.enclosing_grants().into_iter().map(Proof::Grant);
    let is_own = |blocker: &Blocker| match blocker {
        Blocker::Hold(seen) => own.clone().any(|proof| proof.recognises(seen)),
        Blocker::Waiter(_) => false,
    };
    if blockers.iter().any(is_own) {
        let message = format!("Deadlock: a command around this one holds {}", show::name(resource));
        return Err(Failure::new(Exit::Locked, "DEADLOCK", message)
            .hint("It is free only after that command has ended."));
    }
    if wait == Wait::No {
        return Ok(Free::Busy(Busy::new(blockers, Duration::ZERO)));
    }
    if let Some(label) = context.own_label() {
        let owner = Owner { around: processes_around(), ..Owner::of_label(label) };
        let is_kept = |blocker: &Blocker| match blocker {
            Blocker::Hold(seen) => owner.keeps(&seen.hold),
            Blocker::Waiter(_) => false,
        };
        if blockers.iter().any(is_kept) {
            let message = format!("Deadlock: you ({label}) already hold {}", show::name(resource));
            return Err(Failure::new(Exit::Locked, "DEADLOCK", message)
                .hint("Release it first: nothing else would end this wait."));
        }
    }
    let display = WaitDisplay::new(&context.output, std::slice::from_ref(resource), wait);
    display.watch(&blockers);
    let answer = client.wait_until_free(resource, wait).await;
    display.end(matches!(answer, Ok(Free::Free)));
    Ok(answer?)
}
