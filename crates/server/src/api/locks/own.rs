//! Renewing and giving back what is the caller's.

use crate::api::input::{Body, usage};
use crate::api::values::{Grant, Label, LeaseMs, ResourceName, given, given_list};
use crate::api::{Api, proof, schema};
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use tenure::core::{HoldSnapshot, Proof, Released, Resource};
use tenure::store::Renewed;
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;
use utoipa::ToSchema;

/// What is to be renewed, proved by `grant` or by `as`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenewBody {
    /// The grant under which it is held.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    grant: Option<Grant>,
    /// The label under which it is held, where its holder chose it.
    #[serde(default, rename = "as", deserialize_with = "given")]
    #[schema(nullable = false)]
    label: Option<Label>,
    /// Which of it; all unless told otherwise.
    #[serde(default, deserialize_with = "given_list::<_, _, 1, 100>")]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    resources: Option<Vec<ResourceName>>,
    /// Length of the lease from now on; as before unless told otherwise.
    ttl_ms: Option<LeaseMs>,
}

/// Renews leases. A lease that has lapsed is not renewed: another holder may have the resource.
#[utoipa::path(
    post, path = "/v1/locks/renew", operation_id = "renew_locks", tag = "locks", request_body = RenewBody,
    responses(
        (status = 200, description = "All leases are renewed", body = schema::Renewed),
        (status = 404, description = "NOT_HELD: the label does not hold it; TASK_NOT_FOUND: no such task"),
        (status = 409, description = "LEASE_LOST: some of it is lost; see details"),
    ),
)]
pub(super) async fn renew(
    api: Api,
    Body(asked): Body<RenewBody>,
) -> Result<Json<schema::Renewed>, Problem> {
    let proof = proof(asked.grant.as_ref(), asked.label.as_ref())?;
    let named = api.resources(&asked.resources.unwrap_or_default()).await?;
    let some = (!named.is_empty()).then_some(named.as_slice());
    let ttl = asked.ttl_ms.map(LeaseMs::span);
    let answers = api.client().renew(&proof, some, ttl).await?;
    if answers.is_empty() {
        return Err(Refusal::nothing_held(&proof, &named).into());
    }
    let is_renewed = |answer: &&(HoldSnapshot, Renewed)| answer.1 == Renewed::Renewed;
    let renewed = answers.iter().filter(is_renewed).map(|(seen, _)| schema::RenewedLease {
        resource: seen.hold.want.resource.to_string(),
        token: seen.hold.token.0,
        ttl_ms: ttl.unwrap_or(seen.hold.ttl).as_millis() as u64,
    });
    let renewed: Vec<schema::RenewedLease> = renewed.collect();
    let kept: Vec<&Resource> =
        answers.iter().filter(is_renewed).map(|(seen, _)| &seen.hold.want.resource).collect();
    let found = answers.iter().map(|(seen, _)| &seen.hold.want.resource);
    match missing(named.iter().chain(found), &kept) {
        lost if lost.is_empty() => Ok(Json(schema::Renewed { renewed })),
        lost => Err(partly_lost(&lost, json!({ "renewed": renewed, "lost": names(&lost) }))),
    }
}

/// Those that are not among the others, each once.
fn missing<'a>(all: impl Iterator<Item = &'a Resource>, there: &[&Resource]) -> Vec<Resource> {
    let mut missing: Vec<Resource> = Vec::new();
    for resource in all {
        if !there.contains(&resource) && !missing.contains(resource) {
            missing.push(resource.clone());
        }
    }
    missing
}

fn names(resources: &[Resource]) -> Vec<String> {
    resources.iter().map(Resource::to_string).collect()
}

fn partly_lost(lost: &[Resource], details: Value) -> Problem {
    let message = format!("The lease on {} was lost", view::names(lost));
    Refusal::lost(message).details(details).into()
}

/// What is to be given back, proved by `grant` or by `as`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseBody {
    /// The grant under which it is held.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    grant: Option<Grant>,
    /// The label under which it is held, where its holder chose it; then `resources` are needed.
    #[serde(default, rename = "as", deserialize_with = "given")]
    #[schema(nullable = false)]
    label: Option<Label>,
    /// Which of it; all that the grant holds unless told otherwise.
    #[serde(default, deserialize_with = "given_list::<_, _, 1, 100>")]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    resources: Option<Vec<ResourceName>>,
}

/// Gives back what the caller holds. What others hold is never touched.
#[utoipa::path(
    post, path = "/v1/locks/release", operation_id = "release_locks", tag = "locks", request_body = ReleaseBody,
    responses(
        (status = 200, description = "It is released", body = schema::Released),
        (status = 404, description = "NOT_HELD: the label does not hold it; TASK_NOT_FOUND: no such task"),
        (status = 409, description = "LEASE_LOST: some of it was lost before; see details"),
    ),
)]
pub(super) async fn release(
    api: Api,
    Body(asked): Body<ReleaseBody>,
) -> Result<Json<schema::Released>, Problem> {
    let proof = proof(asked.grant.as_ref(), asked.label.as_ref())?;
    let named = api.resources(&asked.resources.unwrap_or_default()).await?;
    if named.is_empty() && matches!(proof, Proof::Label(_)) {
        return Err(usage("no resource to release").hint(
            "Name the resources: a label can hold several. With a grant, names are optional.",
        ));
    }
    let some = (!named.is_empty()).then_some(named.as_slice());
    let ended = match api.client().release(proof.clone(), some).await? {
        Released::Ended(ended) => ended,
        Released::NotHeld(others) => {
            return Err(match (others.first(), &proof) {
                (Some(other), Proof::Label(_)) => Refusal::not_yours(other).into(),
                _ => Refusal::nothing_held(&proof, &named).into(),
            });
        }
    };
    let released: Vec<&Resource> =
        ended.iter().filter(|seen| !seen.lapsed()).map(|seen| &seen.hold.want.resource).collect();
    let all = named.iter().chain(ended.iter().map(|seen| &seen.hold.want.resource));
    let lost = missing(all, &released);
    let released: Vec<String> = released.iter().map(ToString::to_string).collect();
    match lost.is_empty() {
        true => Ok(Json(schema::Released { released })),
        false => Err(partly_lost(&lost, json!({ "released": released, "lost": names(&lost) }))),
    }
}
