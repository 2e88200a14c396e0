//! Holding while a command runs: what `run` and `update` share.

use crate::args;
use crate::child::{self, Child, ChildSpec, Ended, Signals};
use crate::context::{AGENT_VARIABLE, Context, GRANT_VARIABLE, KEEPS_VARIABLE};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::show;
use crate::waiting::WaitDisplay;
use clap::Args;
use std::ffi::OsString;
use std::time::Duration;
use tenure::core::{GrantId, Mode, Resource};
use tenure::place::Reach;
use tenure::{Attempt, Client, Guard, ReleaseOutcome, Request, Wait};
use tenure_frontend::config::Key;
use tenure_frontend::duration::format_duration;
use tenure_frontend::refusal::Refusal;

/// How to hold while a command runs.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    patience: args::PatienceArgs,
    #[command(flatten)]
    reach: args::ReachArgs,
    /// Length of the lease, renewed from a third of it [default: locking.runTimeout, 30s]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
    /// What for, shown to those who look or wait
    #[arg(long, value_name = "TEXT")]
    operation: Option<String>,
    /// A lease of yours that holds this already: the command runs under it
    #[arg(long, value_name = "GRANT")]
    grant: Option<GrantId>,
    /// Exit with this code instead of 6 if it is not obtained
    #[arg(short = 'E', long = "conflict-exit-code", value_name = "CODE", value_parser = args::numbers::exit_code)]
    conflict_code: Option<u8>,
    /// Time between SIGTERM and SIGKILL if the lease is lost [default: locking.grace, 5s]
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    grace: Option<Duration>,
}

impl HoldArgs {
    pub(crate) fn reach(&self) -> Reach {
        self.reach.reach()
    }

    pub(crate) fn grace(&self, context: &Context) -> Duration {
        self.grace.unwrap_or_else(|| context.settings.duration(Key::Grace))
    }
}

/// Takes the resources for a command, waiting as patiently as was asked.
pub(crate) async fn obtain(
    context: &Context,
    client: &Client,
    resources: &[Resource],
    mode: Mode,
    args: &HoldArgs,
    command: &str,
) -> Result<Guard, Failure> {
    let ttl = args.ttl.unwrap_or_else(|| context.settings.duration(Key::RunTimeout));
    let wait = context.wait(args.patience.nonblock, args.patience.limit);
    let operation = args.operation.clone().unwrap_or_else(|| show::one_line(command));
    let request = request_for(client, resources, wait)
        .mode(mode)
        .ttl(ttl)
        // Trust ends early, so that the command can be stopped before anybody else may hold. With a
        // grace longer than a third of the lease, one that ignores SIGTERM may outlive the lease.
        .margin(args.grace(context).min(ttl / 3))
        .operation(operation);
    let request = keeping(context, request);
    let request = args.grant.into_iter().fold(request, Request::under);

    let display = WaitDisplay::new(&context.output, resources, wait).for_mode(mode);
    let telling = display.clone();
    let attempt = request.on_wait(move |waiting| telling.tell(waiting)).hold().await;
    display.end(matches!(attempt, Ok(Attempt::Held(_))));
    match attempt? {
        Attempt::Held(guard) => {
            announce(context, &guard);
            Ok(guard)
        }
        Attempt::Busy(busy) => {
            let mut failure = Failure::locked_as(resources, mode, &busy);
            failure.exit = args.conflict_code.map_or(failure.exit, i32::from);
            Err(name_limit(failure, wait))
        }
    }
}

/// A request for these resources, all or nothing.
pub(crate) fn request_for(client: &Client, resources: &[Resource], wait: Wait) -> Request {
    let mut resources = resources.iter();
    let first = resources.next().expect("clap requires at least one resource");
    resources.fold(client.request(first), Request::also).wait(wait)
}

/// Says what the caller has: the grants of commands around this one, which cover what is asked for,
/// and the detached leases of a label that was chosen, which no process speaks for.
pub(crate) fn keeping(context: &Context, request: Request) -> Request {
    let request = context.grants_around().into_iter().fold(request, Request::under);
    match context.chosen_label() {
        Some(_) => request.while_holding_own_leases(),
        None => request,
    }
}

/// Whoever ran into a limit is told which one.
pub(crate) fn name_limit(failure: Failure, wait: Wait) -> Failure {
    match wait {
        Wait::UpTo(limit) => failure.hint(format!(
            "The limit was {}; change it with -w SECS or the setting locking.waitTimeout.",
            format_duration(limit)
        )),
        Wait::No | Wait::Forever => failure.hint("Wait for it with -w SECS, or see `tenure why`."),
    }
}

fn announce(context: &Context, guard: &Guard) {
    let lease = guard.lease();
    let names = show::names(&lease.resources);
    context.output.detail(&format!("Holding {names} under token {}", lease.token));
    for takeover in &lease.takeovers {
        let from = &takeover.from.hold;
        let why = match takeover.reason {
            tenure::core::TakeoverReason::Died => "is dead",
            tenure::core::TakeoverReason::Lapsed => "let its lease lapse",
        };
        let text = format!("Took over {}: {} {why}", from.want.resource, from.holder.label);
        context.output.note(&text);
    }
}

fn environment(context: &Context, guard: &Guard) -> Result<Vec<(OsString, OsString)>, Failure> {
    let lease = guard.lease();
    let names: Vec<String> = lease.resources.iter().map(Resource::to_string).collect();
    let mut keeps: Vec<GrantId> = context.kept_grants();
    keeps.push(lease.grant);
    let keeps: Vec<String> = keeps.iter().map(GrantId::to_string).collect();
    let slots: Vec<String> = lease.slots.iter().map(u32::to_string).collect();
    let slots = (!slots.is_empty()).then(|| ("TENURE_SLOT", slots.join("\n")));
    let agent = context.chosen_label().map(|label| (AGENT_VARIABLE, label.to_owned()));
    let variables = [
        ("TENURE_RESOURCE", names.join("\n")),
        ("TENURE_TOKEN", lease.token.to_string()),
        (GRANT_VARIABLE, lease.grant.to_string()),
        (KEEPS_VARIABLE, keeps.join(",")),
        ("TENURE_STORE", context.store_url()?.to_string()),
        ("TENURE_DEADLINE", show::time(lease.expires_at)),
    ];
    let variables = variables.into_iter().chain(slots).chain(agent);
    Ok(variables.map(|(name, value)| (name.into(), value.into())).collect())
}

/// Runs a command under the guard, in its environment, until `follow` says that it is done. If the
/// lease is lost before, the command is stopped, and that is the failure.
pub(crate) async fn run_under<T>(
    context: &Context,
    guard: Guard,
    mut spec: ChildSpec,
    grace: Duration,
    follow: impl AsyncFnOnce(&mut Child, &mut Signals) -> T,
) -> Result<(Guard, Child, T), Failure> {
    spec.environment = environment(context, &guard)?;
    spec.foreground = true;
    let mut signals = Signals::listen().map_err(|error| {
        Failure::new(Exit::Error, "SIGNALS", format!("signals cannot be watched: {error}"))
    })?;
    let mut child = match child::spawn(spec) {
        Ok(child) => child,
        Err(error) => {
            guard.release().await?;
            return Err(error.into());
        }
    };
    let refused = refused(&guard, child.pid());
    let done = tokio::select! {
        // First: a tenure that wakes up too late must not tell its command to go on as well.
        biased;
        () = guard.lost() => None,
        () = refused => None,
        done = follow(&mut child, &mut signals) => Some(done),
    };
    match done {
        Some(done) => Ok((guard, child, done)),
        None => Err(stop_after_loss(&guard, child, grace).await),
    }
}

/// Releases after the command's end.
pub(crate) async fn give_back(context: &Context, guard: Guard) -> Result<(), Failure> {
    match guard.release().await {
        Ok(ReleaseOutcome::Released) => {}
        Ok(ReleaseOutcome::Lost) => {
            return Err(lost("The lease was lost before the command ended"));
        }
        // The command is done; a lock that could not be given back lapses by itself.
        Err(error) => context.output.note(&format!("The lock could not be released: {error}")),
    }
    Ok(())
}

/// The code that passes on how the command ended. The last thing to do: one that died of Ctrl-C
/// takes tenure with it.
pub(crate) fn pass_on(child: Child, ended: Ended) -> i32 {
    if ended == Ended::Signal(INTERRUPT) {
        // A shell goes on with its script unless it sees that Ctrl-C killed us too.
        child.die_alike();
    }
    ended.exit_code()
}

/// Says that the command works under the hold too; returns only if the lease is lost already. A
/// store in trouble gets until the lease ends: the keeper goes on trying.
async fn refused(guard: &Guard, leader: u32) {
    if let Ok(true) | Err(_) = guard.bind_group(leader).await {
        std::future::pending::<()>().await;
    }
}

/// What Ctrl-C sends.
const INTERRUPT: i32 = 2;

async fn stop_after_loss(guard: &Guard, mut child: Child, grace: Duration) -> Failure {
    let stopped = child.stop(grace).await;
    let names = show::names(&guard.lease().resources);
    let mut failure = lost(&format!("The lease on {names} was lost; the command was stopped"));
    if !stopped.survivors.is_empty() {
        failure.more.push(format!("These processes could not be stopped: {:?}", stopped.survivors));
    }
    failure
}

/// The lease is gone: what was done under it may have been done beside another holder.
pub(crate) fn lost(message: &str) -> Failure {
    Refusal::lost(message).into()
}
