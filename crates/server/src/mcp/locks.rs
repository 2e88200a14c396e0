//! The tools for locks: acquire, release, and see who holds them.

use super::answer::{Refused, terse};
use super::bounded_lists;
use super::call::{self, Call, Progress};
use super::session::Held;
use super::work;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tenure::core::rules::tasks::Finish;
use tenure::core::{Blocker, HoldSnapshot, Kind, Mode, Overview, Proof, Resource};
use tenure::{Binding, Busy, Error, Lease, LeaseAttempt, Request, Waiting};
use tenure_frontend::duration::format_duration;
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;
use tokio::sync::watch;

/// The most holds, and the most waiters, that are shown at once.
const SHOWN_MAX: usize = 100;

/// When to retry at the latest.
const RETRY_AFTER_SECONDS: u64 = 60;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcquireArguments {
    /// NAME, or path:GLOB for files, from the root; all or none of them
    resources: Vec<String>,
    /// "exclusive" (default), "shared", or "slot:N" for one of N
    mode: Option<String>,
    /// Wait at most this long (default 0)
    wait_seconds: Option<f64>,
    /// Lapses this long after your last call
    ttl_seconds: Option<f64>,
    /// What you hold it for, shown to others
    operation: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseArguments {
    /// Default: all your locks. task:ID returns a task unfinished
    resources: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhoHoldsArguments {
    /// Default: everything
    resources: Option<Vec<String>>,
}

pub(super) async fn acquire_lock(
    call: &Call,
    arguments: AcquireArguments,
) -> Result<Value, Refused> {
    let resources = call.wanted(&arguments.resources).await?;
    if let Some(other) = resources.iter().find(|one| matches!(one.kind(), Kind::Task)) {
        let message = format!("{other} is a task, not a lock");
        return Err(Refused::new("USAGE", message, "Claim tasks with claim_task."));
    }
    let limit = call::limit(arguments.wait_seconds)?;
    let ttl = match arguments.ttl_seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| Refused::usage("ttl_seconds must be a positive number"))?,
        None => call.session.options.lock_ttl,
    };
    let held = call.session.held().await;
    let grant = call.session.new_grant();
    let mode = mode(arguments.mode.as_deref())?;
    let mut request = request(call, &resources)?
        .mode(mode)
        .ttl(ttl)
        .wait(call::patience(limit))
        .with_new_grant(grant);
    if let Some(operation) = arguments.operation {
        request = request.operation(operation);
    }
    // What the session and the commands around it already hold covers what it asks for.
    let around = call.session.options.around.iter().copied();
    for grant in held.iter().map(|held| held.grant).chain(around) {
        request = request.under(grant);
    }
    let attempt = obtain(call, request, view::names(&resources), limit).await?;
    match attempt.filter(|_| !call.is_cancelled()) {
        Some(LeaseAttempt::Held(lease)) => {
            call.session.keep_lock(&lease).await?;
            // To note it may have taken longer than the lease.
            if !call.client.is_trusted(&lease) {
                if !lease.is_shared() {
                    call.client.release(Proof::Grant(lease.grant), Some(&lease.resources)).await?;
                }
                return Err(Error::TooLate.into());
            }
            Ok(lease_json(&lease))
        }
        Some(LeaseAttempt::Busy(busy)) if held.iter().any(|held| is_in_the_way(held, &busy)) => {
            Err(already_yours(&resources))
        }
        Some(LeaseAttempt::Busy(busy)) => Ok(busy_json(&resources, mode, &busy)),
        None => {
            // The wait has left the queue; what it obtained, or was about to, is released.
            call.client.release(Proof::Grant(grant), Some(&resources)).await?;
            Err(Refused::cancelled())
        }
    }
}

fn is_in_the_way(held: &Held, busy: &Busy) -> bool {
    let own = Proof::Grant(held.grant);
    busy.blockers
        .iter()
        .any(|blocker| matches!(blocker, Blocker::Hold(seen) if own.recognises(seen)))
}

fn already_yours(resources: &[Resource]) -> Refused {
    let message = format!("You already hold part of {}", view::names(resources));
    let next = "Release that first, then acquire all of it in one call.";
    Refused::new("ALREADY_YOURS", message, next)
}

fn request(call: &Call, resources: &[Resource]) -> Result<Request, Refused> {
    let [first, rest @ ..] = resources else {
        return Err(Refused::usage("name at least one resource"));
    };
    let mut request = call.client.request(first);
    for resource in rest {
        request = request.also(resource);
    }
    Ok(match call.session.tie {
        Binding::Elsewhere => request.elsewhere(),
        Binding::Nothing => request.detached(),
        Binding::ThisProcess | Binding::Process(_) => request,
    })
}

fn mode(text: Option<&str>) -> Result<Mode, Refused> {
    let unknown = |_| Refused::usage("mode is \"exclusive\", \"shared\" or \"slot:N\"");
    text.map_or(Ok(Mode::Exclusive), |text| text.parse().map_err(unknown))
}

/// Waits for it and reports progress; `None` if it was cancelled.
async fn obtain(
    call: &Call,
    request: Request,
    names: String,
    limit: Duration,
) -> Result<Option<LeaseAttempt>, Refused> {
    let (tell, told) = watch::channel(Progress::default());
    let request = request.on_wait(move |waiting| {
        tell.send_replace(Progress { waited: waiting.waited, words: words(&names, waiting) });
    });
    let mut obtaining: Pin<Box<dyn Future<Output = Result<LeaseAttempt, Error>> + Send>> =
        Box::pin(request.lease());
    Ok(call.wait(&mut obtaining, told, limit).await.transpose()?)
}

/// The progress of a wait: who holds it, what for, and how many wait before.
fn words(names: &str, waiting: &Waiting) -> String {
    let holder = waiting.blockers.iter().find_map(|blocker| match blocker {
        Blocker::Hold(seen) => Some(seen),
        Blocker::Waiter(_) => None,
    });
    let mut words = format!("Waiting for {names}");
    if let Some(seen) = holder {
        words += &format!(": held by {}", seen.hold.holder.label);
        words += &format!(" for {}", format_duration(seen.held_for));
        if let Some(operation) = &seen.hold.operation {
            words += &format!(" ({:?})", view::one_line(operation));
        }
    }
    match waiting.ahead {
        Some(0) => words += "; you are next",
        Some(ahead) => words += &format!("; {ahead} ahead of you"),
        None => {}
    }
    words
}

fn lease_json(lease: &Lease) -> Value {
    let took_over = lease.takeovers.iter().map(|takeover| {
        let from = &takeover.from.hold;
        let resource = from.want.resource.to_string();
        json!({ "resource": resource, "holder": from.holder.label, "reason": takeover.words() })
    });
    let took_over: Vec<Value> = took_over.collect();
    let mut value = json!({
        "success": true,
        "resources": lease.resources.iter().map(Resource::to_string).collect::<Vec<_>>(),
        "token": lease.token,
        "reason": lease.reason.word(),
        "expires_at": view::time(lease.expires_at),
        "ttl_seconds": lease.ttl.as_secs_f64(),
        "waited_seconds": view::seconds(lease.waited),
    });
    if !took_over.is_empty() {
        value["took_over"] = json!(took_over);
    }
    value
}

/// A resource that another holder has is a result, not an error.
fn busy_json(resources: &[Resource], mode: Mode, busy: &Busy) -> Value {
    let seconds = busy.blockers.iter().map(|blocker| match blocker {
        Blocker::Hold(seen) => seen.left.as_secs(),
        Blocker::Waiter(_) => RETRY_AFTER_SECONDS,
    });
    let mut value = Refused::from(Refusal::locked_as(resources, mode, busy)).value();
    let soonest = seconds.min().unwrap_or(RETRY_AFTER_SECONDS);
    value["retry_after_seconds"] = json!(soonest.clamp(1, RETRY_AFTER_SECONDS));
    value
}

pub(super) async fn release_lock(
    call: &Call,
    arguments: ReleaseArguments,
) -> Result<Value, Refused> {
    let resources = match arguments.resources {
        Some(written) => Some(call.resources(&written).await?),
        None => None,
    };
    let (tasks, locks): (Vec<Resource>, Vec<Resource>) =
        resources.iter().flatten().cloned().partition(|resource| resource.kind() == Kind::Task);
    let mut released = Vec::new();
    for task in tasks {
        work::end(call, task.name(), Finish::Release).await?;
        released.push(task);
    }
    if resources.is_none() || !locks.is_empty() {
        let wanted = resources.is_some().then_some(locks.as_slice());
        released.extend(call.session.release_locks(wanted).await?);
    }
    let missing: Vec<Resource> =
        locks.into_iter().filter(|lock| !released.contains(lock)).collect();
    if !missing.is_empty() {
        let message = format!("You do not hold {}", view::names(&missing));
        return Err(Refused::new(
            "NOT_HELD",
            message,
            "There is nothing to release; who_holds shows the holder.",
        ));
    }
    let released: Vec<String> = released.iter().map(Resource::to_string).collect();
    Ok(json!({ "success": true, "released": released }))
}

pub(super) async fn who_holds(call: &Call, arguments: WhoHoldsArguments) -> Result<Value, Refused> {
    let seen = match arguments.resources {
        Some(written) => call.client.look(&call.resources(&written).await?).await?,
        None => call.client.look_everywhere().await?,
    };
    let held = call.session.held().await;
    let agent = call.client.agent().map(|agent| Proof::Label(agent.label.clone()));
    let witness = call.client.witness();
    let overview = Overview::of(&seen, witness);
    let waiting_for = |hold: &HoldSnapshot| overview.waiting_for(&hold.hold.want.resource).len();
    let holds: Vec<Value> = overview
        .held()
        .take(SHOWN_MAX)
        .map(|seen| {
            let mut value = bounded_lists::entry(terse(view::json(&view::Hold::new(
                seen,
                witness,
                waiting_for(seen),
            ))));
            let is_own = |held: &Held| Proof::Grant(held.grant).recognises(seen);
            let is_agents = agent.as_ref().is_some_and(|agent| agent.recognises(seen));
            value["yours"] = json!(is_agents || held.iter().any(is_own));
            value
        })
        .collect();
    let waiters: Vec<Value> = overview
        .waiters
        .iter()
        .enumerate()
        .take(SHOWN_MAX)
        .map(|(place, seen)| {
            bounded_lists::entry(terse(view::json(&view::Waiter::new(seen, place + 1))))
        })
        .collect();
    let counts = overview.counts();
    let (held, waiting) = (counts.held, counts.waiting);
    let mut value = json!({ "success": true, "holds": holds, "waiting": waiters });
    if held.max(waiting) > SHOWN_MAX {
        value["message"] =
            json!(format!("{held} held, {waiting} waiting; name some resources to see them."));
    }
    Ok(value)
}
