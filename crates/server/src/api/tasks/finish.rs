//! What a worker says of its task: begun, still at it, done, failed, to be looked at, put off, given
//! back.

use super::{get, shown};
use crate::api::input::Body;
use crate::api::values::{Grant, Label, LeaseMs, PauseMs, Reason, TaskName, TokenNumber, given};
use crate::api::{Api, proof, schema};
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, Finished, Heartbeat};
use tenure::core::{Proof, TaskId, Token};
use tenure::{Client, Error};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;
use utoipa::ToSchema;

/// Declares the body of a verb: what shows that the task is the caller's, and what else it says.
macro_rules! own_body {
    ($(#[$about:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            /// The grant of the claim.
            #[serde(default, deserialize_with = "given")]
            #[schema(nullable = false)]
            grant: Option<Grant>,
            /// The label of the claim, where the claimer chose it.
            #[serde(default, rename = "as", deserialize_with = "given")]
            #[schema(nullable = false)]
            label: Option<Label>,
            /// The token of the claim: refused if the task was claimed again since.
            token: Option<TokenNumber>,
            /// The grant under which the caller keeps its section.
            runner: Option<Grant>,
            $($(#[$attribute])* $field: $type,)*
        }

        impl $name {
            fn own(&self) -> Result<Own, Problem> {
                Ok(Own {
                    proof: proof(self.grant.as_ref(), self.label.as_ref())?,
                    token: self.token.map(|token| Token(token.0)),
                    runner: self.runner.as_ref().map(|runner| runner.0),
                })
            }
        }
    };
}

/// What the caller shows for a task.
struct Own {
    proof: Proof,
    token: Option<Token>,
    runner: Option<tenure::core::GrantId>,
}

own_body! {
    /// Whose task it is, proved by `grant` or by `as`.
    OwnBody {}
}

own_body! {
    /// Whose task it is, and for how long from now.
    HeartbeatBody {
        /// Length of the lease from now on; as before unless told otherwise.
        ttl_ms: Option<LeaseMs>,
    }
}

own_body! {
    /// Whose task it is, and what came of it.
    ResultBody {
        /// What came of it: any JSON.
        #[serde(default)]
        #[schema(value_type = Option<Value>)]
        result: Value,
    }
}

own_body! {
    /// Whose task it is, and why it could not be done.
    FailBody {
        /// Why.
        reason: Option<Reason>,
        /// Whether it may be tried again, as often as the task allows; true unless told otherwise.
        retry: Option<bool>,
    }
}

own_body! {
    /// Whose task it is, and for how long it is put off.
    SnoozeBody {
        /// For how long.
        pause_ms: PauseMs,
    }
}

/// Notes that the worker began.
#[utoipa::path(
    post, path = "/v1/tasks/{id}/start", operation_id = "start_task", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    request_body = OwnBody,
    responses(
        (status = 200, description = "The task", body = schema::OneTask),
        schema::OwnTaskRefused,
    ),
)]
pub(super) async fn start(
    api: Api,
    TaskName(id): TaskName,
    Body(asked): Body<OwnBody>,
) -> Result<Json<schema::OneTask>, Problem> {
    let own = asked.own()?;
    let client = api.client();
    let task = get(client, &id).await?;
    if let (Some(token), Some(claim)) = (own.token, &task.claim)
        && claim.token != token
    {
        return Err(Refusal::late(&task, own.token).into());
    }
    let task = match client.tasks().start(&id, own.proof).await? {
        Finished::Done { task, .. } => task,
        Finished::NotYours(task) => return Err(Refusal::late(&task, own.token).into()),
        Finished::ClaimLost { task, part } => {
            return Err(Refusal::claim_lost(&task, &part).into());
        }
        Finished::NotFound => return Err(not_found(&id)),
    };
    Ok(Json(schema::OneTask { task: shown(client, &task).await? }))
}

fn not_found(id: &TaskId) -> Problem {
    Error::NoSuchTask { text: id.to_string() }.into()
}

/// Starts the lease of a claim anew, and that of its section.
#[utoipa::path(
    post, path = "/v1/tasks/{id}/heartbeat", operation_id = "heartbeat_task", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    request_body = HeartbeatBody,
    responses(
        (status = 200, description = "The lease is renewed", body = schema::Heartbeat),
        schema::OwnTaskRefused,
    ),
)]
pub(super) async fn heartbeat(
    api: Api,
    TaskName(id): TaskName,
    Body(asked): Body<HeartbeatBody>,
) -> Result<Json<schema::Heartbeat>, Problem> {
    let own = asked.own()?;
    let client = api.client();
    let ttl = asked.ttl_ms.map(LeaseMs::span);
    let (task, ttl, section) =
        match client.tasks().heartbeat(&id, own.proof, own.token, ttl).await? {
            Heartbeat::Renewed { task, ttl, section } => (task, ttl, section),
            Heartbeat::NotYours(task) => return Err(Refusal::late(&task, own.token).into()),
            Heartbeat::ClaimLost { task, part } => {
                return Err(Refusal::claim_lost(&task, &part).into());
            }
            Heartbeat::NotFound => return Err(not_found(&id)),
        };
    Ok(Json(schema::Heartbeat {
        task: shown(client, &task).await?,
        ttl_ms: ttl.as_millis() as u64,
        section_renewed: section,
    }))
}

async fn end(
    client: &Client,
    id: &TaskId,
    own: Own,
    finish: Finish,
) -> Result<Json<schema::FinishedTask>, Problem> {
    let Own { proof, token, runner } = own;
    match client.tasks().finish(id, proof, token, runner, finish).await? {
        Finished::Done { task, gave_up_section, repeated } => {
            let task = view::Task::new(&task, None);
            Ok(Json(schema::FinishedTask { task, gave_up_section, repeated }))
        }
        Finished::NotYours(task) => Err(Refusal::late(&task, token).into()),
        Finished::ClaimLost { task, part } => Err(Refusal::claim_lost(&task, &part).into()),
        Finished::NotFound => Err(not_found(id)),
    }
}

fn result(value: Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// Declares a verb that ends a worker's work.
macro_rules! ending {
    ($(#[$about:meta])* $name:ident, $id:literal, $path:literal, $body:ident, $asked:ident => $finish:expr) => {
        $(#[$about])*
        #[utoipa::path(
            post, path = $path, operation_id = $id, tag = "tasks",
            params(("id" = inline(TaskName), Path, description = "Which task")),
            request_body = $body,
            responses(
                (status = 200, description = "The task as it is now", body = schema::FinishedTask),
                schema::OwnTaskRefused,
            ),
        )]
        pub(super) async fn $name(
            api: Api,
            TaskName(id): TaskName,
            Body($asked): Body<$body>,
        ) -> Result<Json<schema::FinishedTask>, Problem> {
            let own = $asked.own()?;
            end(api.client(), &id, own, $finish).await
        }
    };
}

ending! {
    /// Says that a task is done.
    complete, "complete_task", "/v1/tasks/{id}/complete", ResultBody,
    asked => Finish::Complete { result: result(asked.result) }
}

ending! {
    /// Sends a task that is done to review.
    review, "review_task", "/v1/tasks/{id}/review", ResultBody,
    asked => Finish::Review { result: result(asked.result) }
}

ending! {
    /// Says that a task could not be done. It is tried again after a pause, as often as it allows.
    fail, "fail_task", "/v1/tasks/{id}/fail", FailBody,
    asked => Finish::Fail {
        reason: asked.reason.map_or_else(|| "no reason given".to_owned(), String::from),
        retry: asked.retry.unwrap_or(true),
    }
}

ending! {
    /// Puts a task off; this attempt does not count.
    snooze, "snooze_task", "/v1/tasks/{id}/snooze", SnoozeBody,
    asked => Finish::Snooze { pause: Duration::from_millis(asked.pause_ms.0) }
}

ending! {
    /// Gives a task back untouched; this attempt does not count.
    release, "release_task", "/v1/tasks/{id}/release", OwnBody,
    asked => Finish::Release
}
