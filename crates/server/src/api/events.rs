//! `/v1/events`: what happened, and what happens.

use super::Api;
use super::input::Params;
use super::schema;
use super::values::{Count, LastEvents, RevisionNumber, WaitMs};
use crate::http::limits::Limits;
use crate::problem::Problem;
use crate::routes::{Access, Routes};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use tenure::core::{self, Revision};
use tenure::{Client, Error};
use tenure_frontend::view::Event;
use tokio::time::Instant;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes<Api> {
    Routes::new().documented(Access::READ, Limits::Waits, routes!(events))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// Only what came after this revision.
    #[param(inline)]
    after: Option<RevisionNumber>,
    /// At most so many; 200 unless told otherwise.
    #[param(inline)]
    limit: Option<Count>,
    /// The newest so many instead of the oldest. `limit` then has no effect.
    #[param(inline)]
    last: Option<LastEvents>,
    /// If there is none, wait so long for one.
    #[param(inline)]
    wait_ms: Option<WaitMs>,
}

/// Events, oldest first.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "list_events", tag = "events", params(Asked),
    responses((status = 200, description = "Events", body = schema::Events)),
)]
async fn events(
    State(api): State<Api>,
    Params(asked): Params<Asked>,
) -> Result<Json<schema::Events>, Problem> {
    let after = Revision(asked.after.map_or(0, |after| after.0));
    let limit = asked.limit.map_or(200, |limit| limit.0) as u32;
    let deadline = Instant::now() + api.patience(asked.wait_ms);
    let look = async {
        let mut reached = after;
        loop {
            let events = match &asked.last {
                Some(last) => newest(api.client(), after, last.0 as u32).await?,
                None => api.client().events(after, limit).await?,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if !events.is_empty() || left.is_zero() {
                return Ok::<_, Error>(events);
            }
            // The revision may rise without new events.
            reached = api.client().changed(reached, left).await?;
        }
    };
    let events = api.unless_stopping(api.wait(asked.wait_ms), look).await?;
    let revision = events.last().map_or(after, |event| event.revision);
    let events = events.iter().map(Event::from).collect();
    Ok(Json(schema::Events { events, revision: revision.0 }))
}

/// The newest events of those after a revision, oldest first. Revisions have gaps, so that no first one
/// can be computed from the last one.
async fn newest(client: &Client, after: Revision, last: u32) -> Result<Vec<core::Event>, Error> {
    let mut events = client.newest_events(last).await?;
    events.retain(|event| event.revision > after);
    Ok(events)
}
