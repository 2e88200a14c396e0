//! `tenure acquire`: takes a lease that outlives the command, or holds until Ctrl-C.

use crate::args::{self, ModeArgs};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, aside, styled};
use crate::run_under_lock::{lost, request_for, with_own_holds, with_wait_hint};
use crate::show;
use crate::shutdown::shutdown_signal;
use crate::wait_display::WaitDisplay;
use clap::Args;
use serde_json::{Value, json};
use std::time::Duration;
use tenure::core::{GrantId, Proof, Reason, Resource};
use tenure::{Attempt, Client, Guard, Lease, LeaseAttempt, ReleaseOutcome, Request, Wait};
use tenure_frontend::config::Key;
use tenure_frontend::duration::format_duration;

/// Take a lease that outlives this command
///
/// Prints the grant (your proof of ownership: keep it secret), the fencing token and the time when
/// the lease lapses. Release it with `tenure release --grant GRANT`, renew it with `tenure renew`.
/// With --pid the lease also ends when that process dies; otherwise only a release, its time or a
/// reboot ends it. With --hold this command stays in the foreground and renews the lease until
/// Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure acquire deploy --ttl 10m --operation 'release 1.2'
  GRANT=$(tenure acquire -q deploy) && ./deploy.sh; tenure release --grant \"$GRANT\"
  tenure acquire deploy --pid $$          ends with this shell
  tenure acquire --hold memory            until Ctrl-C")]
pub(crate) struct AcquireArgs {
    /// What to hold: NAME, section:NAME, task:ID or path:GLOB; several are all or nothing
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resources: Vec<args::ResourceArg>,
    #[command(flatten)]
    patience: args::PatienceArgs,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    reach: args::ReachArgs,
    /// Length of the lease [default: locking.lockTimeout 60m, sections 120m; 30s with --hold or dialect=memory]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
    /// Bind the lease to this process: it ends when the process dies
    #[arg(long, value_name = "PID", conflicts_with = "hold", value_parser = args::numbers::pid)]
    pid: Option<u32>,
    /// What you hold it for, shown to others
    #[arg(long, value_name = "TEXT")]
    operation: Option<String>,
    /// Stay in the foreground and renew the lease until Ctrl-C
    #[arg(long)]
    hold: bool,
    /// An earlier grant: if it still holds all of this, its lease is renewed
    #[arg(long, value_name = "GRANT", conflicts_with = "hold")]
    grant: Option<GrantId>,
}

pub(crate) async fn run(context: &Context, args: AcquireArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let wait = context.wait(args.patience.nonblock, args.patience.limit);
    let resources = context.wanted_or_only(&client, &args.resources, args.reach.reach()).await?;
    let request = build(context, &client, &args, &resources, wait).await?;
    let mode = args.mode.mode();
    let display = WaitDisplay::new(&context.output, &resources, wait).for_mode(mode);
    let telling = display.clone();
    let request = request.on_wait(move |waiting| telling.tell(waiting));
    if args.hold {
        let attempt = request.hold().await;
        display.end(matches!(attempt, Ok(Attempt::Held(_))));
        return match attempt? {
            Attempt::Held(guard) => hold(context, guard, args.operation.as_deref()).await,
            Attempt::Busy(busy) => {
                Err(with_wait_hint(Failure::locked_as(&resources, mode, &busy), wait))
            }
        };
    }
    let attempt = request.lease().await;
    display.end(matches!(attempt, Ok(LeaseAttempt::Held(_))));
    match attempt? {
        LeaseAttempt::Held(lease) => hand_out(context, &client, &lease).await,
        LeaseAttempt::Busy(busy) => {
            Err(with_wait_hint(Failure::locked_as(&resources, mode, &busy), wait))
        }
    }
}

/// Prints the lease, if it can be trusted at that moment. A lease that cannot be printed is given back:
/// without its grant it is of no use to the caller, and in the way of others.
async fn hand_out(context: &Context, client: &Client, lease: &Lease) -> Result<i32, Failure> {
    let failure = if client.is_trusted(lease) {
        let printed = context.output.try_done(lease_json(lease), || match context.output.quiet {
            true => lease.grant.to_string(),
            false => lease_text(lease),
        });
        match printed {
            Ok(()) => return Ok(0),
            Err(error) => Failure::unprinted(&error),
        }
    } else {
        lost(&format!("The lease on {} was lost before it was used", show::names(&lease.resources)))
    };
    if !lease.is_shared() {
        client.release(Proof::Grant(lease.grant), Some(&lease.resources)).await?;
    }
    Err(failure)
}

async fn build(
    context: &Context,
    client: &Client,
    args: &AcquireArgs,
    resources: &[Resource],
    wait: Wait,
) -> Result<Request, Failure> {
    let usual = match args.hold {
        true => context.settings.duration(Key::RunTimeout),
        false => context.detached_lease(resources),
    };
    let mut request =
        request_for(client, resources, wait).mode(args.mode.mode()).ttl(args.ttl.unwrap_or(usual));
    if let Some(operation) = &args.operation {
        request = request.operation(operation);
    }
    if let Some(grant) = args.grant {
        request = request.with_grant(grant);
    }
    request = match args.pid {
        _ if args.hold => request,
        Some(pid) => request.for_process(pid),
        None => request.detached(),
    };
    Ok(with_own_holds(context, request))
}

async fn hold(context: &Context, guard: Guard, operation: Option<&str>) -> Result<i32, Failure> {
    let names = show::names(&guard.lease().resources);
    let what = operation.unwrap_or(&names);
    let data = lease_json(guard.lease());
    let shutdown_signal = shutdown_signal();
    // A reader that does not read must not keep a signal from releasing the lock.
    aside::begin();
    if !guard.is_held() {
        return Err(lost(&format!("The lease on {names} was lost")));
    }
    context.output.done(data, || format!("Lock acquired for: {what}"));
    context.output.note("Press Ctrl+C to release...");
    tokio::select! {
        () = guard.lost() => return Err(lost(&format!("The lease on {names} was lost"))),
        _ = shutdown_signal => aside::hurry(),
    }
    match guard.release().await? {
        ReleaseOutcome::Released => {
            context.output.note("Lock released.");
            Ok(0)
        }
        ReleaseOutcome::Lost => Err(lost(&format!("The lease on {names} was lost"))),
    }
}

fn lease_json(lease: &Lease) -> Value {
    let names: Vec<String> = lease.resources.iter().map(Resource::to_string).collect();
    let takeovers = lease.takeovers.iter().map(|takeover| {
        json!({
            "resource": takeover.from.hold.want.resource.to_string(),
            "holder": takeover.from.hold.holder.label,
            "token": takeover.from.hold.token,
            "reason": takeover.words(),
        })
    });
    json!({
        "resources": names,
        "holder": lease.holder.label,
        "grant": lease.grant,
        "token": lease.token,
        "slots": lease.slots,
        "reason": lease.reason.word(),
        "took_over": takeovers.collect::<Vec<_>>(),
        "acquired_at": show::time(lease.acquired_at),
        "expires_at": show::time(lease.expires_at),
        "ttl_seconds": lease.ttl.as_secs_f64(),
        "waited_seconds": show::seconds(lease.waited),
    })
}

fn lease_text(lease: &Lease) -> String {
    let names = styled(NAME, show::names(&lease.resources));
    let how = match lease.reason {
        Reason::AcquiredNew => "Acquired",
        Reason::AlreadyOwned => "Renewed",
        Reason::ClaimedExpired | Reason::ClaimedDead => "Took over",
    };
    let from = lease.takeovers.iter().map(|takeover| {
        let holder = &takeover.from.hold.holder;
        let resource = show::name(&takeover.from.hold.want.resource);
        format!("\n  from     {}, who held {resource}: {}", holder.label, takeover.words())
    });
    format!(
        "{how} {names}{}\n  grant    {}\n  token    {}\n  expires  {} (in {})",
        from.collect::<String>(),
        lease.grant,
        lease.token,
        show::time(lease.expires_at),
        format_duration(lease.ttl)
    )
}
