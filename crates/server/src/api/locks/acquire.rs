//! Taking a lease, waiting for it if that is asked.

use crate::api::input::Body;
use crate::api::values::{Grant, Label, LeaseMs, ModeWord, Operation, ResourceName, WaitMs, list};
use crate::api::{Api, LEASE_DEFAULT, schema};
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use serde_json::json;
use tenure::core::{Blocker, Mode, Resource};
use tenure::{Busy, Client, Lease, LeaseAttempt, PLACE_LEASE, Request, Wait};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;
use utoipa::ToSchema;

/// What is asked for, all or nothing.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcquireBody {
    /// What to hold.
    #[serde(deserialize_with = "list::<_, _, 1, 100>")]
    #[schema(min_items = 1, max_items = 100)]
    resources: Vec<ResourceName>,
    /// How; exclusive unless told otherwise.
    mode: Option<ModeWord>,
    /// Length of the lease; a minute unless told otherwise.
    ttl_ms: Option<LeaseMs>,
    /// How long to wait for it; not at all unless told otherwise.
    wait_ms: Option<WaitMs>,
    /// What for, for people who look or wait.
    operation: Option<Operation>,
    /// A label of the caller's choice, which then proves ownership too. Without it only the grant
    /// does.
    #[serde(rename = "as")]
    label: Option<Label>,
    /// A grant of the caller's choice. Ask again with it: what it holds is renewed, and the place
    /// in the queue that it has is kept for 15 seconds from one request to the next.
    grant: Option<Grant>,
    /// Grants that the caller keeps while it waits, so that a wait that would never end is refused.
    #[serde(default, deserialize_with = "list::<_, _, 0, 100>")]
    #[schema(max_items = 100)]
    keeps: Vec<Grant>,
}

/// Takes a lease on one or more resources, all or nothing.
///
/// With `wait_ms` the answer comes as soon as it is held, or when that time is over. To wait for longer,
/// send a `grant` of your own and ask again with it at once: your place in the queue is kept in between.
#[utoipa::path(
    post, path = "/v1/locks/acquire", operation_id = "acquire_locks", tag = "locks", request_body = AcquireBody,
    responses(
        (status = 200, description = "It is held", body = schema::Acquired),
        (status = 404, description = "TASK_NOT_FOUND: no such task"),
        (status = 409, description = "LOCKED, TASK_LOCKED, SECTION_LOCKED or DEADLOCK"),
    ),
)]
pub(super) async fn acquire(
    api: Api,
    caller: Caller,
    Body(asked): Body<AcquireBody>,
) -> Result<Json<schema::Acquired>, Problem> {
    let client = api.holder(&caller, asked.label.as_ref())?;
    let mode = asked.mode.as_ref().map_or(Mode::Exclusive, |mode| mode.0);
    let wait = api.wait(asked.wait_ms);
    let wanted = api.wanted(&asked.resources).await?;
    let request = request(&client, &asked, &wanted, mode, wait);
    match api.unless_stopping(wait, request.lease()).await? {
        LeaseAttempt::Held(lease) => Ok(Json(acquired(&lease, mode))),
        LeaseAttempt::Busy(busy) => {
            let is_kept = asked.grant.is_some() && wait != Wait::No;
            Err(refused(&wanted, mode, &busy, is_kept))
        }
    }
}

fn request(
    client: &Client,
    asked: &AcquireBody,
    wanted: &[Resource],
    mode: Mode,
    wait: Wait,
) -> Request {
    let mut names = wanted.iter();
    let first = names.next().expect("a list without items was refused when it was read");
    let mut request = client.request(first);
    for name in names {
        request = request.also(name);
    }
    request = request.mode(mode).wait(wait).elsewhere();
    let usual = client.dialect().defaults().detached_lease.unwrap_or(LEASE_DEFAULT);
    request = request.ttl(asked.ttl_ms.map_or(usual, LeaseMs::span));
    if let Some(Operation(operation)) = &asked.operation {
        request = request.operation(operation);
    }
    if let Some(Grant(grant)) = asked.grant {
        request = request.with_grant(grant).keep_place();
    }
    for Grant(grant) in &asked.keeps {
        request = request.while_holding(*grant);
    }
    request
}

/// Says who is in the way, and which place in the queue is kept if the caller asks again.
fn refused(wanted: &[Resource], mode: Mode, busy: &Busy, is_kept: bool) -> Problem {
    let mut refusal = Refusal::locked_as(wanted, mode, busy);
    refusal.hint = Some("Wait for it with wait_ms.".to_owned());
    if is_kept {
        refusal.hint =
            Some("Repeat the request at once with the same grant to keep your place.".to_owned());
        if !refusal.details.is_object() {
            refusal.details = json!({});
        }
        let ahead = busy.blockers.iter().filter(|blocker| matches!(blocker, Blocker::Waiter(_)));
        refusal.details["place"] = json!(ahead.count() + 1);
        refusal.details["placeKeptMs"] = json!(PLACE_LEASE.as_millis() as u64);
    }
    refusal.into()
}

fn acquired(lease: &Lease, mode: Mode) -> schema::Acquired {
    let took_over = lease.takeovers.iter().map(|takeover| schema::TookOver {
        resource: takeover.from.hold.want.resource.to_string(),
        holder: takeover.from.hold.holder.label.clone(),
        token: takeover.from.hold.token.0,
        reason: takeover.words(),
    });
    schema::Acquired {
        grant: lease.grant.to_string(),
        token: lease.token.0,
        holder: lease.holder.label.clone(),
        resources: lease.resources.iter().map(Resource::to_string).collect(),
        mode: mode.to_string(),
        slots: lease.slots.clone(),
        acquired_at: view::time(lease.acquired_at),
        expires_at: view::time(lease.expires_at),
        ttl_ms: lease.ttl.as_millis() as u64,
        reason: lease.reason.word().to_owned(),
        waited_ms: lease.waited.as_millis() as u64,
        took_over: took_over.collect(),
    }
}
