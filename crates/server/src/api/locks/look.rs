//! Who holds, who waits, and whether a token still counts.

use crate::api::input::Params;
use crate::api::values::{ResourceName, TokenNumber, WaitMs};
use crate::api::{Api, schema};
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use tenure::core::{JudgedHold, Kind, Overview, Token, VerifyAnswer};
use tenure::{Client, Free};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view::{Hold, Lock, Waiter};
use utoipa::{IntoParams, ToSchema};

/// What a resource is.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum KindWord {
    Lock,
    Section,
    Task,
    Path,
}

impl KindWord {
    pub(super) fn kind(self) -> Kind {
        match self {
            KindWord::Lock => Kind::Lock,
            KindWord::Section => Kind::Section,
            KindWord::Task => Kind::Task,
            KindWord::Path => Kind::Path,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only this kind.
    #[param(inline)]
    kind: Option<KindWord>,
}

/// Everything that is held.
#[utoipa::path(
    get, path = "/v1/locks", operation_id = "list_locks", tag = "locks", params(ListParams),
    responses((status = 200, description = "What is held", body = schema::Locks)),
)]
pub(super) async fn locks(
    api: Api,
    Params(asked): Params<ListParams>,
) -> Result<Json<schema::Locks>, Problem> {
    let seen = api.client().look_everywhere().await?;
    let overview = Overview::of(&seen, api.client().witness());
    let wanted = |hold: &&JudgedHold<'_>| {
        asked.kind.is_none_or(|kind| hold.seen.hold.want.resource.kind() == kind.kind())
    };
    let holds = overview.holds.iter().filter(wanted);
    Ok(Json(schema::Locks {
        locks: holds.map(|hold| lock(api.client(), &overview, hold)).collect(),
        counts: overview.counts().into(),
        revision: seen.revision.0,
    }))
}

fn lock(client: &Client, overview: &Overview<'_>, hold: &JudgedHold<'_>) -> Lock {
    let waiters = overview.waiting_for(&hold.seen.hold.want.resource);
    let hold = Hold::new(hold.seen, client.witness(), waiters.len());
    Lock { hold, waiters: Waiter::all(waiters) }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ShowParams {
    /// Which resource.
    #[param(inline)]
    resource: ResourceName,
}

/// Who holds and who waits for a resource, and for what overlaps it.
#[utoipa::path(
    get, path = "/v1/locks/show", operation_id = "show_lock", tag = "locks", params(ShowParams),
    responses(
        (status = 200, description = "Who holds and who waits", body = schema::Shown),
        (status = 404, description = "TASK_NOT_FOUND: no such task"),
    ),
)]
pub(super) async fn show(
    api: Api,
    Params(asked): Params<ShowParams>,
) -> Result<Json<schema::Shown>, Problem> {
    let client = api.client();
    let resource = api.resource(&asked.resource).await?;
    let seen = client.look(std::slice::from_ref(&resource)).await?;
    let overview = Overview::of(&seen, client.witness());
    let waiting = overview.waiters.len();
    let holds = seen.holds.iter().map(|hold| Hold::new(hold, client.witness(), waiting));
    Ok(Json(schema::Shown {
        resource: resource.to_string(),
        free: overview.is_free(&resource),
        holds: holds.collect(),
        waiters: Waiter::all(overview.waiters.iter().copied()),
    }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct VerifyParams {
    /// Which resource.
    #[param(inline)]
    resource: ResourceName,
    /// The token that is to hold it.
    #[param(inline)]
    token: TokenNumber,
}

/// Whether a token still holds a resource, for the system that holds the real data.
#[utoipa::path(
    get, path = "/v1/locks/verify", operation_id = "verify_token", tag = "locks", params(VerifyParams),
    responses(
        (status = 200, description = "The token holds the resource", body = schema::Verified),
        (status = 404, description = "TASK_NOT_FOUND: no such task"),
        (status = 409, description = "TOKEN_REFUSED: it does not hold the resource"),
    ),
)]
pub(super) async fn verify(
    api: Api,
    Params(asked): Params<VerifyParams>,
) -> Result<Json<schema::Verified>, Problem> {
    let token = Token(asked.token.0);
    let resource = api.resource(&asked.resource).await?;
    match api.client().verify(&resource, token).await? {
        VerifyAnswer::Valid => {
            let resource = resource.to_string();
            Ok(Json(schema::Verified { resource, token: token.0, valid: true }))
        }
        VerifyAnswer::Refused { current } => {
            Err(Refusal::token_refused(&resource, token, current).into())
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitParams {
    /// Which resource.
    #[param(inline)]
    resource: ResourceName,
    /// How long to wait at most; not at all unless told otherwise.
    #[param(inline)]
    wait_ms: Option<WaitMs>,
}

/// Waits until a resource is free, without taking it. Another caller may take it the next moment.
#[utoipa::path(
    get, path = "/v1/locks/wait", operation_id = "wait_until_free", tag = "locks", params(WaitParams),
    responses(
        (status = 200, description = "It is free", body = schema::Free),
        (status = 404, description = "TASK_NOT_FOUND: no such task"),
        (status = 409, description = "It is still held: LOCKED, TASK_LOCKED or SECTION_LOCKED"),
    ),
)]
pub(super) async fn wait(
    api: Api,
    Params(asked): Params<WaitParams>,
) -> Result<Json<schema::Free>, Problem> {
    let resource = api.resource(&asked.resource).await?;
    let wait = api.wait(asked.wait_ms);
    let waiting = api.client().wait_until_free(&resource, wait);
    match api.unless_stopping(wait, waiting).await? {
        Free::Free => Ok(Json(schema::Free { resource: resource.to_string(), free: true })),
        Free::Busy(busy) => Err(Refusal::locked(&[resource], &busy).into()),
    }
}
