//! `/v1/events`: what happened, and what happens.

use super::Api;
use super::input::Params;
use super::schema;
use super::values::{
    Count, EventKinds, Label, LastEvents, Moment, ResourceName, RevisionNumber, TokenName, WaitMs,
};
use crate::http::limits::Limits;
use crate::problem::Problem;
use crate::routes::{Access, Routes};
use axum::Json;
use serde::Deserialize;
use tenure::Error;
use tenure::core::{EventFilter, Revision};
use tenure::store::{EventSearch, Prefer};
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
    /// Only what came before this revision, for paging backwards with `last`.
    #[param(inline)]
    before: Option<RevisionNumber>,
    /// Only of this resource; of a path, also of all paths that overlap it.
    #[param(inline)]
    resource: Option<ResourceName>,
    /// Only of these kinds, with commas between them.
    #[param(inline)]
    kind: Option<EventKinds>,
    /// Only about the holds, waits and tasks of this label, and what was broken by it.
    #[param(inline)]
    by: Option<Label>,
    /// Only of changes that came through the server token with this name; `local` is the user who
    /// runs the server.
    #[param(inline)]
    actor: Option<TokenName>,
    /// Only from this time on.
    #[param(inline)]
    since: Option<Moment>,
    /// Only before this time.
    #[param(inline)]
    until: Option<Moment>,
    /// If there is none, wait so long for one.
    #[param(inline)]
    wait_ms: Option<WaitMs>,
}

/// Events, oldest first.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "list_events", tag = "events", params(Asked),
    responses((status = 200, description = "Events", body = schema::Events)),
)]
async fn events(api: Api, Params(asked): Params<Asked>) -> Result<Json<schema::Events>, Problem> {
    let after = Revision(asked.after.map_or(0, |after| after.0));
    let limit = asked.limit.map_or(200, |limit| limit.0) as u32;
    let deadline = Instant::now() + api.patience(asked.wait_ms);
    let search = EventSearch {
        filter: EventFilter {
            resource: match &asked.resource {
                Some(name) => Some(api.logged(name).await?),
                None => None,
            },
            kinds: asked.kind.map(|kinds| kinds.0).unwrap_or_default(),
            label: asked.by.map(|label| label.0),
            actor: asked.actor.map(|name| name.0),
            since: asked.since.map(|time| time.0),
            until: asked.until.map(|time| time.0),
        },
        after,
        before: asked.before.map(|before| Revision(before.0)),
        prefer: if asked.last.is_some() { Prefer::Newest } else { Prefer::Oldest },
        limit: asked.last.as_ref().map_or(limit, |last| last.0 as u32),
    };
    let look = async {
        let mut reached = after;
        loop {
            let events = api.client().search_events(search.clone()).await?;
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
    let lacks = api.client().may_lack_events_after(after).await?;
    let events = events.iter().map(Event::from).collect();
    let gap_after = lacks.then_some(after.0);
    Ok(Json(schema::Events { events, revision: revision.0, gap_after }))
}
