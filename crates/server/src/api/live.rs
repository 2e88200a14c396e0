//! What a page shows, live: a snapshot, and a stream of changes. Both only look: they never take a
//! writer's turn.

mod snapshot;
mod tail;

use crate::app::App;
use crate::caller::{Caller, Role};
use crate::http::limits::Limits;
use crate::problem::Problem;
use crate::routes::{Access, Routes};
use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::{Value, json};
use snapshot::PageState;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tail::{News, Recent, Tail};
use tenure::core::Revision;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa_axum::routes;

/// A comment this often tells proxies and pages that the stream is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The routes.
pub fn routes(app: App) -> Routes {
    Routes::new()
        .documented(Access::READ, Limits::Quick, routes!(get_snapshot))
        .documented(Access::READ, Limits::Waits, routes!(get_stream))
        .with_state(Live { tail: Tail::new(app.clone()), app })
}

#[derive(Clone)]
struct Live {
    app: App,
    tail: Tail,
}

/// Everything that is held, waited for, to be done and worked on, at one moment.
#[utoipa::path(
    get,
    path = "/v1/snapshot",
    tag = "live",
    operation_id = "snapshot",
    responses(
        (status = 200, description = "The present state", body = Value),
        (status = 400, description = "Invalid request", content_type = "application/problem+json", body = Value),
        (status = 401, description = "No token, or an invalid one", content_type = "application/problem+json", body = Value),
        (status = 403, description = "The token's role is too weak", content_type = "application/problem+json", body = Value),
        (status = 429, description = "Too many requests", content_type = "application/problem+json", body = Value),
        (status = 503, description = "The store cannot be read", content_type = "application/problem+json", body = Value),
    )
)]
async fn get_snapshot(State(live): State<Live>, caller: Caller) -> Result<Json<Value>, Problem> {
    let mut body = snapshot::take(&live.app).await?.body;
    body["role"] = json!(caller.role);
    Ok(Json(body))
}

#[derive(Deserialize)]
struct From {
    after: Option<String>,
}

/// Changes as they happen, as server-sent events: `snapshot` (as from `/v1/snapshot`), `tasks`
/// (those touched, and the ids of those deleted) and `events`, whose id is their revision. `gap` says
/// that events are missing between `after` and the `events` that follow, and `why`: `trimmed` (the
/// store does not keep events that are so old), `too_many` (only the newest are sent), or `unknown_id`
/// (the store has no event that is so new: it is another one, or was restored).
#[utoipa::path(
    get,
    path = "/v1/stream",
    tag = "live",
    operation_id = "stream",
    params(
        ("after" = Option<u64>, Query, description = "Also send events after this revision; at most the newest thousand"),
        ("Last-Event-ID" = Option<String>, Header, description = "As `after`, sent by browsers when they reconnect; takes precedence. Ignored if it is not a number"),
    ),
    responses(
        (status = 200, description = "An endless stream of messages", content_type = "text/event-stream", body = String),
        (status = 400, description = "Invalid request", content_type = "application/problem+json", body = Value),
        (status = 401, description = "No token, or an invalid one", content_type = "application/problem+json", body = Value),
        (status = 403, description = "The token's role is too weak", content_type = "application/problem+json", body = Value),
        (status = 429, description = "Too many requests", content_type = "application/problem+json", body = Value),
        (status = 503, description = "The store cannot be read", content_type = "application/problem+json", body = Value),
    )
)]
async fn get_stream(
    State(live): State<Live>,
    caller: Caller,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = after(&headers, from.after.as_deref())?;
    let news = live.tail.listen().await?;
    let mut watcher = Watcher { app: live.app, role: caller.role, news, told: Revision::default() };
    let first = watcher.begin(after).await?;
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(messages(watcher, first)).keep_alive(keep_alive).into_response();
    // Proxies that gather answers before they pass them on would hold back all of this one.
    let direct = axum::http::HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", direct);
    Ok(response)
}

/// From where on to tell.
fn after(headers: &HeaderMap, asked: Option<&str>) -> Result<Option<Revision>, Problem> {
    let header = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    if let Some(revision) = header.and_then(|text| text.parse().ok()) {
        return Ok(Some(Revision(revision)));
    }
    let Some(text) = asked else { return Ok(None) };
    let revision = text.parse().map_err(|_| {
        Problem::new(StatusCode::BAD_REQUEST, "USAGE", "`after` must be a revision, a number")
    })?;
    Ok(Some(Revision(revision)))
}

/// One who watches.
struct Watcher {
    app: App,
    role: Role,
    news: Receiver<Arc<News>>,
    /// Up to which change it has been told.
    told: Revision,
}

impl Watcher {
    /// The first messages: a snapshot, and what it missed if it was here before.
    async fn begin(&mut self, after: Option<Revision>) -> Result<VecDeque<Event>, tenure::Error> {
        let snapshot = snapshot::take(&self.app).await?;
        self.told = after.unwrap_or(snapshot.revision);
        let mut messages = VecDeque::from([self.snapshot_message(&snapshot.body.to_string())]);
        messages.extend(self.missed(&snapshot).await?);
        Ok(messages)
    }

    /// What happened since it was last told; of very much, the newest.
    async fn missed(&mut self, snapshot: &PageState) -> Result<Vec<Event>, tenure::Error> {
        let newest = snapshot.revision;
        let recent = Recent::resumed(&self.app.client, self.told, newest).await?;
        let events = &recent.events;
        let tasks = snapshot::touched(&self.app, events).await?;
        self.told = events.last().map_or(newest, |event| event.revision);
        let mut messages = Vec::new();
        messages.extend(recent.gap.map(|gap| message("gap", &gap.text())));
        messages.extend(tasks.map(|tasks| message("tasks", &tasks.to_string())));
        messages.extend(recent.text().map(|text| events_message(&text, self.told)));
        Ok(messages)
    }

    /// The next messages; none when the stream is at its end.
    async fn next(&mut self) -> Option<VecDeque<Event>> {
        match self.news.recv().await {
            Ok(news) => Some(self.relay(&news)),
            // Too slow: it looks for itself what it missed. If it cannot, it is to come back.
            Err(RecvError::Lagged(_)) => self.begin(Some(self.told)).await.ok(),
            Err(RecvError::Closed) => None,
        }
    }

    fn relay(&mut self, news: &News) -> VecDeque<Event> {
        let mut messages = VecDeque::new();
        if news.revision > self.told {
            self.told = news.revision;
            messages.extend(news.gap.as_deref().map(|text| message("gap", text)));
            messages.extend(news.tasks.as_deref().map(|text| message("tasks", text)));
            let events = news.events.as_deref();
            messages.extend(events.map(|text| events_message(text, news.revision)));
        }
        messages.push_back(self.snapshot_message(&news.snapshot));
        messages
    }

    /// What is sent to all is one text; only the role in it is the watcher's own.
    fn snapshot_message(&self, body: &str) -> Event {
        let rest = body.strip_prefix('{').unwrap_or(body);
        message("snapshot", &format!("{{\"role\":\"{}\",{rest}", self.role))
    }
}

fn message(name: &str, text: &str) -> Event {
    Event::default().event(name).data(text)
}

fn events_message(text: &str, revision: Revision) -> Event {
    message("events", text).id(revision.0.to_string())
}

fn messages(
    watcher: Watcher,
    first: VecDeque<Event>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold((watcher, first), |(mut watcher, mut waiting)| async move {
        while waiting.is_empty() {
            waiting = watcher.next().await?;
        }
        let message = waiting.pop_front()?;
        Some((Ok(message), (watcher, waiting)))
    })
}
