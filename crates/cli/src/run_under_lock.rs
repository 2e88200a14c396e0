//! Holds resources while a command runs; shared by `run` and `update`.

use crate::args;
use crate::child::{self, Child, ChildSpec, Ended, Signals, SpawnError};
use crate::context::{AGENT_VARIABLE, Context, GRANT_VARIABLE, KEEPS_VARIABLE};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::aside;
use crate::show;
use crate::telemetry;
use crate::wait_display::WaitDisplay;
use clap::Args;
use std::ffi::OsString;
use std::time::Duration;
use tenure::core::{GrantId, Mode, Resource};
use tenure::place::Reach;
use tenure::{Attempt, Client, Guard, ReleaseOutcome, Request, Wait};
use tenure_frontend::config::Key;
use tenure_frontend::duration::format_duration;
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view::spelling;
use tenure_server::log::TRACE;
use tracing::Instrument;

/// Options for holding while a command runs.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    patience: args::PatienceArgs,
    #[command(flatten)]
    reach: args::ReachArgs,
    /// Length of the lease; it is renewed automatically [default: locking.runTimeout, 30s]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
    /// What you hold it for, shown to others
    #[arg(long, value_name = "TEXT")]
    operation: Option<String>,
    /// A lease of yours that already covers this: the command runs under it
    #[arg(long, value_name = "GRANT")]
    grant: Option<GrantId>,
    /// Exit with this code instead of 6 if it is held
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

/// Acquires the resources for a command, waiting as long as the options allow.
pub(crate) async fn acquire(
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
        // The guard counts the lease as lost early, so that the command can be stopped before
        // another process may hold. With a grace period longer than a third of the lease, a command
        // that ignores SIGTERM may outlive the lease.
        .margin(args.grace(context).min(ttl / 3))
        .operation(operation);
    let request = with_own_holds(context, request);
    let request = args.grant.into_iter().fold(request, Request::under);

    let display = WaitDisplay::new(&context.output, resources, wait).for_mode(mode);
    let telling = display.clone();
    let waiting = tracing::info_span!(target: TRACE, "wait");
    telemetry::belongs_to(&waiting);
    let attempt = request.on_wait(move |waiting| telling.tell(waiting)).hold();
    let attempt = attempt.instrument(waiting).await;
    display.end(matches!(attempt, Ok(Attempt::Held(_))));
    match attempt? {
        Attempt::Held(guard) => {
            announce(context, &guard);
            Ok(guard)
        }
        Attempt::Busy(busy) => {
            let mut failure = Failure::locked_as(resources, mode, &busy);
            failure.exit = args.conflict_code.map_or(failure.exit, i32::from);
            Err(with_wait_hint(failure, wait))
        }
    }
}

/// A request for all of these resources or none.
pub(crate) fn request_for(client: &Client, resources: &[Resource], wait: Wait) -> Request {
    let mut resources = resources.iter();
    let first = resources.next().expect("clap requires at least one resource");
    resources.fold(client.request(first), Request::also).wait(wait)
}

/// Adds to the request what the caller already holds: the grants of enclosing commands, which cover
/// what is asked for, and the leases of its label or agent.
pub(crate) fn with_own_holds(context: &Context, request: Request) -> Request {
    let request = context.enclosing_grants().into_iter().fold(request, Request::under);
    match context.own_label() {
        Some(_) => request.while_holding_own_leases(),
        None => request,
    }
}

/// Adds a hint that names the wait limit.
pub(crate) fn with_wait_hint(failure: Failure, wait: Wait) -> Failure {
    match wait {
        Wait::UpTo(limit) => failure.hint(format!(
            "The wait limit was {}; change it with -w SECS or the setting locking.waitTimeout.",
            format_duration(limit)
        )),
        Wait::No | Wait::Forever => failure.hint("Wait for it with -w SECS, or run `tenure why`."),
    }
}

fn announce(context: &Context, guard: &Guard) {
    let lease = guard.lease();
    let names = show::names(&lease.resources);
    context.output.detail(&format!("Holding {names}, token {}", lease.token));
    if !lease.takeovers.is_empty() {
        // A reader that does not read must not keep the lock from being used, or given back.
        aside::begin();
    }
    for takeover in &lease.takeovers {
        let from = &takeover.from.hold;
        let (name, why) = (show::name(&from.want.resource), takeover.words());
        context.output.note(&format!("Took over {name} from {}: {why}", from.holder.label));
    }
    aside::settle();
}

fn environment(context: &Context, guard: &Guard) -> Result<Vec<(OsString, OsString)>, Failure> {
    let lease = guard.lease();
    // The command can pass them to tenure in the folder in which it starts.
    let folder = context.folder();
    let names = lease.resources.iter().map(|resource| spelling::name_in(&folder, resource));
    let names: Vec<String> = names.collect();
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

/// Runs a command under the guard, with the guard's environment, until `follow` returns. If the
/// lease is lost before that, the command is stopped and the call fails.
pub(crate) async fn run_under<T>(
    context: &Context,
    guard: Guard,
    mut spec: ChildSpec,
    grace: Duration,
    follow: impl AsyncFnOnce(&mut Child, &mut Signals) -> T,
) -> Result<(Guard, Child, T), Failure> {
    let command = tracing::info_span!(
        target: TRACE,
        "command",
        "process.executable.name" = program_name(&spec),
    );
    spec.environment = environment(context, &guard)?;
    spec.environment.extend(telemetry::trace_variable(&command));
    spec.foreground = true;
    let mut signals = Signals::listen().map_err(|error| {
        Failure::new(Exit::Error, "SIGNALS", format!("cannot listen for signals: {error}"))
    })?;
    let mut child = match child::spawn(spec, guard.trust(), grace) {
        Ok(child) => child,
        Err(error) => {
            let released = guard.release().await;
            if !matches!(error, SpawnError::TooLate { .. }) {
                released?;
            }
            return Err(error.into());
        }
    };
    let refused = until_refused(&guard, child.pid());
    let done = tokio::select! {
        // Checked first: a tenure that wakes up after the lease ended must not let its command go
        // on.
        biased;
        () = guard.lost() => None,
        () = refused => None,
        done = follow(&mut child, &mut signals) => Some(done),
    };
    drop(command);
    match done {
        Some(done) => Ok((guard, child, done)),
        None => Err(stop_after_loss(&guard, child, grace).await),
    }
}

/// The name of the program. Its arguments may have secrets in them.
fn program_name(spec: &ChildSpec) -> Option<String> {
    let program = std::path::Path::new(spec.command.first()?);
    Some(program.file_name()?.to_string_lossy().into_owned())
}

/// Releases the guard after the command ended.
pub(crate) async fn release(context: &Context, guard: Guard) -> Result<(), Failure> {
    match guard.release().await {
        Ok(ReleaseOutcome::Released) => {}
        Ok(ReleaseOutcome::Lost) => {
            return Err(lost("The lease was lost before the command ended"));
        }
        // The command is done; a lock that could not be released lapses by itself.
        Err(error) => context.output.note(&format!("Cannot release the lock: {error}")),
    }
    Ok(())
}

/// The exit code that passes on how the command ended. It must be the last call: if Ctrl-C killed
/// the command, this process dies of the same signal.
pub(crate) fn exit_code(child: Child, ended: Ended) -> i32 {
    if ended == Ended::Signal(INTERRUPT) {
        // A shell continues its script unless it sees that Ctrl-C killed this process too.
        child.die_of_same_signal();
    }
    ended.exit_code()
}

/// Binds the hold to the command's process group. It resolves only if the lease is lost already; a
/// failing store has until the lease ends, because the guard retries.
async fn until_refused(guard: &Guard, leader: u32) {
    if let Ok(true) | Err(_) = guard.bind_group(leader).await {
        std::future::pending::<()>().await;
    }
}

/// SIGINT, which Ctrl-C sends.
const INTERRUPT: i32 = 2;

async fn stop_after_loss(guard: &Guard, mut child: Child, grace: Duration) -> Failure {
    let stopped = child.stop(grace).await;
    let names = show::names(&guard.lease().resources);
    let mut failure = lost(&format!("The lease on {names} was lost; the command was stopped"));
    if !stopped.survivors.is_empty() {
        failure.more.push(format!("Processes that could not be stopped: {:?}", stopped.survivors));
    }
    failure
}

/// The failure for a lost lease. Another process may have held the resource while this one still
/// worked.
pub(crate) fn lost(message: &str) -> Failure {
    Refusal::lost(message).into()
}
