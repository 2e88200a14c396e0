//! Operators end the holds of others, and clean up.

use super::look::KindWord;
use crate::api::input::{Body, MaybeBody};
use crate::api::values::{Label, Reason, ResourceName, TokenNumber};
use crate::api::{Api, schema};
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use tenure::Broken;
use tenure::core::Token;
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view::Hold;
use utoipa::ToSchema;

/// Which hold is to end, and why. It is named by its token, so that a successor is left alone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BreakBody {
    /// What is held.
    resource: ResourceName,
    /// Under which token.
    token: TokenNumber,
    /// Why, for the audit log.
    reason: Reason,
    /// Who does it, for the audit log.
    #[serde(rename = "as")]
    label: Option<Label>,
}

/// Ends the hold of another holder, which loses its lease and learns of it. For `admin`.
#[utoipa::path(
    post, path = "/v1/locks/break", operation_id = "break_lock", tag = "locks", request_body = BreakBody,
    responses(
        (status = 200, description = "The hold that was ended", body = schema::Broken),
        (status = 404, description = "NOT_HELD: this hold has ended; TASK_NOT_FOUND: no such task"),
    ),
)]
pub(super) async fn break_hold(
    api: Api,
    caller: Caller,
    Body(asked): Body<BreakBody>,
) -> Result<Json<schema::Broken>, Problem> {
    let client = api.actor(&caller, asked.label.as_ref())?;
    let token = Token(asked.token.0);
    let resource = api.resource(&asked.resource).await?;
    let reason = asked.reason.0.trim();
    match client.break_hold(&resource, token, reason).await? {
        Broken::Ended(seen) => Ok(Json(schema::Broken {
            broken: Hold::new(&seen, client.witness(), 0),
            reason: reason.to_owned(),
            by: client.holder().label.clone(),
        })),
        Broken::Gone(_) => Err(Refusal::nothing_to_break(&resource, Some(token)).into()),
    }
}

/// What is to be cleaned up.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CleanupBody {
    /// Only this kind.
    kind: Option<KindWord>,
    /// Who does it, for the audit log.
    #[serde(rename = "as")]
    label: Option<Label>,
}

/// Removes holds that lapsed or whose holder is dead, and what crashed processes left behind. For
/// `admin`.
#[utoipa::path(
    post, path = "/v1/locks/cleanup", operation_id = "clean_up_locks", tag = "locks", request_body = Option<CleanupBody>,
    responses((status = 200, description = "What was removed", body = schema::Cleaned)),
)]
pub(super) async fn clean_up(
    api: Api,
    caller: Caller,
    MaybeBody(asked): MaybeBody<CleanupBody>,
) -> Result<Json<schema::Cleaned>, Problem> {
    let client = api.actor(&caller, asked.label.as_ref())?;
    let cleanup = client.clean_up(asked.kind.map(KindWord::kind)).await?;
    let removed = cleanup.holds.iter().map(|seen| Hold::new(seen, client.witness(), 0));
    let leftovers = cleanup.leftovers as u64;
    Ok(Json(schema::Cleaned { removed: removed.collect(), leftovers }))
}
