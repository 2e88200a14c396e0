//! Claims tasks, waits for them if asked to, and explains why none is ready.

use super::ownership::hold_of;
use super::runner_grant;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_under_lock::{lost, with_wait_hint};
use crate::show::time;
use crate::wait_display::WaitDisplay;
use clap::Args;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tenure::core::rules::tasks::{Claimed, NoClaim};
use tenure::core::{GrantId, HoldSnapshot, Kind, Status, Task};
use tenure::{Binding, ClaimRequest, ClaimWaiting, Claims, Client};
use tenure_frontend::config::Key;
use tenure_frontend::refusal::Refusal as Refused;
use tenure_frontend::view::spelling;

/// Options of a claim: lease and waiting.
#[derive(Debug, Default, Args)]
pub(super) struct ClaimOptions {
    /// Do not wait: exit 6 if it is held
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "limit")]
    nonblock: bool,
    /// Wait at most this long, also for a task to become ready (fractions allowed; also 5m, forever)
    #[arg(short = 'w', long = "wait", value_name = "SECS", value_parser = crate::args::patience)]
    limit: Option<Duration>,
    /// Length of the lease [default: locking.taskTimeout 60m]
    #[arg(long, value_name = "DURATION", value_parser = crate::args::lease)]
    ttl: Option<Duration>,
    /// Bind the claim to this process: it ends when the process dies
    #[arg(long, value_name = "PID", value_parser = crate::args::numbers::pid)]
    pid: Option<u32>,
}

impl ClaimOptions {
    /// A claim that outlives this command. With a label the worker keeps its section from claim to
    /// claim; without one, nothing identifies the worker of the next claim.
    pub(super) fn request(&self, context: &Context) -> ClaimRequest {
        ClaimRequest {
            ttl: self.ttl.unwrap_or_else(|| context.settings.duration(Key::TaskTimeout)),
            section_ttl: context.settings.duration(Key::SectionTimeout),
            runner: context.own_label().map(runner_grant),
            tie: self.pid.map_or(Binding::Nothing, Binding::Process),
            under: context.enclosing_grants(),
            workspace: context.rescuer().workspace(),
            ..ClaimRequest::default()
        }
    }
}

impl ClaimOptions {
    /// Whether to wait for what cannot be claimed now.
    fn is_worth_waiting(&self, request: &ClaimRequest, hope: Hope) -> bool {
        match hope {
            Hope::Held => request.task.is_some() || self.limit.is_some(),
            Hope::NotYet => self.limit.is_some(),
            Hope::None => false,
        }
    }
}

/// Claims, waiting as long as the options allow. By default it waits for a named task that others
/// hold, but not for any task, nor for a task to become ready.
pub(super) async fn claim_or_wait(
    context: &Context,
    client: &Client,
    request: &ClaimRequest,
    how: &ClaimOptions,
) -> Result<Obtained, Failure> {
    let wait = context.wait(how.nonblock, how.limit);
    let display = WaitDisplay::for_tasks(&context.output, wait);
    let (last, waits_for_lock) = (RefCell::new(None), Cell::new(false));
    let go_on = |waiting: ClaimWaiting| {
        let (last, waits_for_lock, display) = (&last, &waits_for_lock, &display);
        async move {
            let refusal = explain(context, client, request, waiting.none).await?;
            let worth_waiting = how.is_worth_waiting(request, refusal.hope);
            if worth_waiting && !waiting.left.is_zero() {
                waits_for_lock.set(refusal.hope == Hope::Held);
                display.tell_of(&refusal.headline, &refusal.failure.message, &refusal.event());
            }
            last.replace(Some((refusal, waiting.left)));
            Ok::<_, Failure>(worth_waiting)
        }
    };
    let claim = client.tasks().request(request.clone()).wait(wait).leave_idle_sections();
    let none = match claim.take_while(go_on).await? {
        Claims::Claimed { mut tasks, asked_at } => {
            display.end(waits_for_lock.get());
            take_over(context, client, &mut tasks).await;
            return Ok(Obtained { tasks, asked_at, ttl: request.ttl, runner: request.runner });
        }
        Claims::None(none) => none,
    };
    let last = last.take().filter(|_| none != NoClaim::NotFound);
    let (refusal, left) = last.unwrap_or_else(|| (not_found(request), Duration::MAX));
    // The task that was waited for may be free by now, and still not be claimable.
    let is_released = waits_for_lock.get() && refusal.hope != Hope::Held && !left.is_zero();
    display.end(is_released);
    Err(match refusal.hope {
        Hope::Held if how.is_worth_waiting(request, refusal.hope) => {
            with_wait_hint(refusal.failure, wait)
        }
        Hope::Held if refusal.failure.hint.is_none() => {
            refusal.failure.hint("Wait for one with -w SECS.")
        }
        Hope::Held | Hope::NotYet | Hope::None => refusal.failure,
    })
}

/// Tasks that were claimed for the caller, who does not know of them yet.
pub(super) struct Obtained {
    pub(super) tasks: Vec<Claimed>,
    /// When they were asked for, on the client's clock.
    asked_at: Duration,
    ttl: Duration,
    runner: Option<GrantId>,
}

impl Obtained {
    /// Prints them, if the claim can be trusted at that moment. What cannot be printed is handed back:
    /// no worker would do it.
    pub(super) async fn hand_out(
        &self,
        context: &Context,
        client: &Client,
        data: Value,
        human: impl FnOnce() -> String,
    ) -> Result<i32, Failure> {
        let failure = match client.tasks().is_trusted(self.ttl, self.asked_at) {
            true => match context.output.try_done(data, human) {
                Ok(()) => return Ok(0),
                Err(error) => Failure::unprinted(&error),
            },
            false => lost("The claim was lost before it was used"),
        };
        client.tasks().call_off(&self.tasks, self.runner).await?;
        Err(failure)
    }
}

/// Keeps what interrupted workers of these tasks left.
async fn take_over(context: &Context, client: &Client, claimed: &mut [Claimed]) {
    let rescuer = context.rescuer();
    for one in claimed {
        let hand_over = rescuer.take_over(client, &one.task).await;
        hand_over.update(&mut one.task);
        if let Some(warning) = hand_over.warning {
            context.output.note(&warning);
        }
    }
}

/// Whether waiting could help.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hope {
    /// Another worker holds it and will release it.
    Held,
    /// Something else must happen first.
    NotYet,
    /// Waiting cannot help.
    None,
}

/// Why there is no task, and whether waiting could help.
struct Refusal {
    failure: Failure,
    headline: String,
    hope: Hope,
}

impl Refusal {
    fn event(&self) -> Value {
        let mut event = json!({ "event": "waiting", "message": self.failure.message });
        if let (Some(event), Value::Object(details)) =
            (event.as_object_mut(), &self.failure.details)
        {
            event.extend(details.clone());
        }
        event
    }
}

async fn explain(
    context: &Context,
    client: &Client,
    request: &ClaimRequest,
    none: NoClaim,
) -> Result<Refusal, Failure> {
    let named = match &request.task {
        Some(id) => client.tasks().get(id).await?,
        None => None,
    };
    Ok(match none {
        NoClaim::NotFound => not_found(request),
        NoClaim::NothingReady => {
            let left = client.tasks().left(request).await?;
            let failure = Refused::none_ready(request, &left).into();
            Refusal { failure, headline: "No task is ready.".to_owned(), hope: Hope::NotYet }
        }
        NoClaim::AllTaken { by: Some(by), .. } => held(context, &by, named.as_ref()),
        NoClaim::AllTaken { why, by: None, .. } => not_ready(named.as_ref(), why, Hope::NotYet),
        NoClaim::Queue(_) | NoClaim::Deadlock(_) => not_ready(named.as_ref(), vec![], Hope::NotYet),
        NoClaim::NotReady { why } => {
            let hold = match &named {
                Some(task) => hold_of(client, task).await?,
                None => None,
            };
            let ended = named.as_ref().is_some_and(|task| task.status.is_final());
            match hold {
                Some(hold) => held(context, &hold, named.as_ref()),
                None if ended => not_ready(named.as_ref(), why, Hope::None),
                None => not_ready(named.as_ref(), why, Hope::NotYet),
            }
        }
    })
}

fn not_found(request: &ClaimRequest) -> Refusal {
    let id = request.task.as_ref().map(ToString::to_string).unwrap_or_default();
    let error = tenure::Error::NoSuchTask { text: id };
    Refusal { failure: error.into(), headline: String::new(), hope: Hope::None }
}

fn not_ready(named: Option<&Task>, why: Vec<String>, hope: Hope) -> Refusal {
    let sentences: Vec<String> = why.iter().map(|text| spelling::sentence(text)).collect();
    let reasons = sentences.join("; ");
    let (what, headline) = match named {
        Some(task) => {
            let title = &task.title;
            (format!("Task {title:?} cannot be claimed"), format!("Task {title:?} is not ready."))
        }
        None => ("No task can be claimed".to_owned(), "No task is ready.".to_owned()),
    };
    let details = json!({
        "taskId": named.map(|task| task.id.as_str()),
        "status": named.map(|task| task.status.word()),
        "why": why,
    });
    let message = format!("{what}: {reasons}");
    let mut failure = Failure::new(Exit::Locked, "NOT_READY", message).details(details);
    failure.hint = match (hope, named.map(|task| task.status)) {
        (Hope::None, Some(Status::Completed)) | (_, None) => None,
        (Hope::None, _) | (_, Some(Status::Blocked)) => {
            Some("Make it pending again with `tenure tasks retry`.".to_owned())
        }
        (Hope::Held | Hope::NotYet, _) => Some("Wait for it with -w SECS.".to_owned()),
    };
    Refusal { failure, headline, hope }
}

/// Another worker holds it. The message names the worker and the expiry, never how to force it,
/// because agents read it too.
fn held(context: &Context, by: &HoldSnapshot, named: Option<&Task>) -> Refusal {
    let resource = &by.hold.want.resource;
    let holder = &by.hold.holder.label;
    let is_named = |task: &&Task| task.id.resource() == *resource;
    let title = named.filter(is_named).map_or(resource.name(), |task| &task.title);
    let (code, what) = match resource.kind() {
        Kind::Task => ("TASK_LOCKED", format!("Task {title:?}")),
        Kind::Section => ("SECTION_LOCKED", format!("Section {title:?}")),
        Kind::Lock | Kind::Path => ("LOCKED", spelling::name(resource)),
    };
    let expires = by.limit().map(time);
    let message = format!("{what} is locked by runner {holder}");
    let mut failure = Failure::new(Exit::Locked, code, message).details(json!({
        "taskId": named.map(|task| task.id.as_str()),
        "resource": resource.to_string(),
        "lockedBy": holder,
        "runnerId": holder,
        "expiresAt": expires,
    }));
    let expires = expires.unwrap_or_else(|| "no limit".to_owned());
    failure.more.push(format!("Lock expires at: {expires}"));
    let headline = format!("{what} is locked by another runner.");
    let mine = by.hold.holder.chosen && context.own_label() == Some(holder);
    if mine {
        // Waiting for oneself never ends.
        failure.hint =
            Some(format!("{holder} is your own label: finish or release that task first."));
    }
    Refusal { failure, headline, hope: if mine { Hope::None } else { Hope::Held } }
}
