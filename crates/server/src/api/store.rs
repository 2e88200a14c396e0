//! The protocol of tenure's own clients: what [`tenure::server_support::wire`] says, over any backend.
//!
//! A client decides nothing; it says what is to be decided. So a server and a program that opened
//! the store itself can share it, and both are held to the same rules.

use super::redact::GrantRedactor;
use crate::app::App;
use crate::caller::{Caller, Role};
use crate::clock::too_late;
use crate::http::limits::Limits;
use crate::problem::Problem;
use crate::routes::{Access, Routes, unknown_caller};
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::time::Duration;
use tenure::Error;
use tenure::core::BreakAsk;
use tenure::core::act::{
    Acquire, Act, CallOff, CallOffClaim, ChangeSections, ClaimTasks, DeleteTasks, DropWorker,
    FinishTask, FinishTasks, Leave, LeaveIdleSections, PutOutput, PutSection, PutWorker, Reap,
    Recover, Release, StartTask,
};
use tenure::core::rules::tasks::{AddAsk, AddNote, DescribeTry, EditAsk, HeartbeatAsk, ImportAsk};
use tenure::server_support::{Sent, wire};
use tenure::store::{self, Maintenance, Query, Signal, StoreError};

/// The routes.
pub fn routes(app: App) -> Routes {
    let (large, waits) = (Limits::Large, Limits::Waits);
    let clock = app.clock.clone();
    let tell_time = move |mut response: Response| {
        response.headers_mut().insert(wire::CLOCK, clock.header());
        std::future::ready(response)
    };
    Routes::new()
        // Each verb, each wait and each kind of maintenance has its own role.
        .route("/v1/store/act/{verb}", Access::Known, large, post(act))
        .route(wire::RENEW, Access::WORK, large, post(renew))
        .route(wire::RENEW_COVERED, Access::WORK, large, post(renew_covered))
        .route(wire::QUERY, Access::READ, large, post(query))
        .route(wire::WAIT, Access::Known, waits, post(wait))
        .route(wire::MAINTAIN, Access::Known, large, post(maintain))
        .route(wire::TIME, Access::Known, large, post(time))
        .route(wire::COLLECT, Access::ADMIN, large, post(collect))
        .route("/v1/store/{*other}", Access::Known, large, any(another_version))
        .layer(map_response(tell_time))
        .with_state(app)
}

/// A request, and who sent it.
struct Asked {
    app: App,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
}

impl Asked {
    fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let message = format!("invalid request body: {error}");
            Problem::new(StatusCode::BAD_REQUEST, "USAGE", message)
                .hint("Only tenure's own clients of the same version use this path.")
        })
    }

    fn header(&self, name: &str) -> Option<String> {
        // Labels may have any letters, which headers carry as bytes.
        let bytes = self.headers.get(name)?.as_bytes();
        String::from_utf8(bytes.to_vec()).ok()
    }

    /// The answer, without what the caller must not see.
    fn answer<T: Serialize>(&self, answer: Result<T, StoreError>) -> Result<Response, Problem> {
        // A caller that may only look holds nothing, under any label.
        let label = self.header(wire::LABEL).filter(|_| self.caller.role >= Role::Work);
        let label = label.filter(|label| self.caller.labels.admits(label));
        let knows = GrantRedactor::from_request(&self.body, label);
        let answer = serde_json::to_vec(&answer.map_err(failed)?);
        let answer = answer.and_then(|answer| knows.without_secrets(answer)).map_err(|error| {
            let message = format!("cannot write the response: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "ANSWER", message)
        })?;
        // A finish of a claim that another worker has by now.
        if answer.starts_with(b"{\"not_yours\"") {
            self.app.metrics.refused_token();
        }
        let kind = HeaderValue::from_static("application/json");
        Ok(([(CONTENT_TYPE, kind)], answer).into_response())
    }

    /// Decides an act, after what this server changes in it.
    async fn perform<A: Act>(&self, change: impl FnOnce(&mut A)) -> Result<Response, Problem> {
        self.caller.require(A::ROLE)?;
        let mut act: A = self.read()?;
        change(&mut act);
        let deadline = self.app.clock.deadline(&self.headers)?;
        let once = self.header(wire::REQUEST).map(|text| {
            wire::request_id_from_text(&text).ok_or_else(|| {
                let message = format!("the header {} has no request id", wire::REQUEST);
                Problem::new(StatusCode::BAD_REQUEST, "USAGE", message)
            })
        });
        let sent = Sent {
            once: once.transpose()?,
            is_again: self.headers.contains_key(wire::AGAIN),
            given_up: Some(deadline.given_up()),
        };
        let answer = self.app.client.backend().perform_sent(sent, &act).await;
        if deadline.is_over() && matches!(answer, Err(StoreError::Unavailable { .. })) {
            return Err(too_late());
        }
        self.answer(answer)
    }
}

/// The store's error, in a form from which a client can make it again.
fn failed(error: StoreError) -> Problem {
    let details = json!({ wire::STORE_ERROR: error });
    let mut problem = Problem::from(Error::Store(error));
    problem.details = details;
    problem
}

impl<S: Send + Sync> axum::extract::FromRequest<S> for Asked
where
    App: axum::extract::FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: axum::extract::Request, state: &S) -> Result<Asked, Response> {
        use axum::extract::FromRef;
        let caller = request.extensions().get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| unknown_caller().into_response())?;
        let app = App::from_ref(state).acting_for(&caller);
        let headers = request.headers().clone();
        let version = headers.get(wire::PROTOCOL).map(|value| value.to_str().unwrap_or("?"));
        if version != Some(wire::PROTOCOL_VERSION) {
            return Err(wrong_version(version).into_response());
        }
        let body =
            Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        Ok(Asked { app, caller, headers, body })
    }
}

type Answer = Result<Response, Problem>;

fn as_it_is<A>(_: &mut A) {}

async fn act(Path(verb): Path<String>, asked: Asked) -> Answer {
    match verb.as_str() {
        Acquire::VERB => asked.perform::<Acquire>(as_it_is).await,
        Leave::VERB => asked.perform::<Leave>(as_it_is).await,
        CallOff::VERB => asked.perform::<CallOff>(as_it_is).await,
        CallOffClaim::VERB => asked.perform::<CallOffClaim>(as_it_is).await,
        Release::VERB => asked.perform::<Release>(as_it_is).await,
        AddAsk::VERB => asked.perform::<AddAsk>(as_it_is).await,
        ImportAsk::VERB => asked.perform::<ImportAsk>(as_it_is).await,
        ClaimTasks::VERB => asked.perform::<ClaimTasks>(as_it_is).await,
        Recover::VERB => {
            // How often the tasks of all are given a chance is for the server's settings.
            let recoveries_max = asked.app.client.recoveries_max();
            asked.perform(|act: &mut Recover| act.recoveries_max = recoveries_max).await
        }
        LeaveIdleSections::VERB => asked.perform::<LeaveIdleSections>(as_it_is).await,
        FinishTask::VERB => asked.perform::<FinishTask>(as_it_is).await,
        HeartbeatAsk::VERB => asked.perform::<HeartbeatAsk>(as_it_is).await,
        FinishTasks::VERB => asked.perform::<FinishTasks>(as_it_is).await,
        StartTask::VERB => asked.perform::<StartTask>(as_it_is).await,
        AddNote::VERB => asked.perform::<AddNote>(as_it_is).await,
        PutOutput::VERB => asked.perform::<PutOutput>(as_it_is).await,
        PutWorker::VERB => asked.perform::<PutWorker>(as_it_is).await,
        DropWorker::VERB => asked.perform::<DropWorker>(as_it_is).await,
        DescribeTry::VERB => asked.perform::<DescribeTry>(as_it_is).await,
        EditAsk::VERB => asked.perform::<EditAsk>(as_it_is).await,
        BreakAsk::VERB => {
            let caller = asked.caller.clone();
            asked.perform(|ask: &mut BreakAsk| ask.by = caller.actor(Some(&ask.by))).await
        }
        Reap::VERB => asked.perform::<Reap>(as_it_is).await,
        DeleteTasks::VERB => asked.perform::<DeleteTasks>(as_it_is).await,
        PutSection::VERB => asked.perform::<PutSection>(as_it_is).await,
        ChangeSections::VERB => asked.perform::<ChangeSections>(as_it_is).await,
        _ => {
            let message = "unknown operation";
            Err(Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
                .hint("Use the same version of tenure on both sides."))
        }
    }
}

async fn renew(asked: Asked) -> Answer {
    let ask: wire::Renew = asked.read()?;
    asked.app.clock.deadline(&asked.headers)?;
    asked.answer(asked.app.client.backend().renew(&ask.renewals).await)
}

async fn renew_covered(asked: Asked) -> Answer {
    let ask: wire::RenewCovered = asked.read()?;
    asked.app.clock.deadline(&asked.headers)?;
    let ttl = ask.ttl_ms.map(Duration::from_millis);
    let backend = asked.app.client.backend();
    asked.answer(backend.renew_covered(&ask.proof, ask.resources.as_deref(), ttl).await)
}

async fn query(asked: Asked) -> Answer {
    let mut query: Query = asked.read()?;
    match &mut query {
        Query::Events(events) => events.limit = events.limit.min(wire::PAGE),
        Query::NewestEvents(newest) => newest.limit = newest.limit.min(wire::PAGE),
        Query::SearchEvents(search) => search.limit = search.limit.min(wire::PAGE),
        Query::Records(search) => {
            search.limit = search.limit.min(wire::records_at_once(search.range.kind));
        }
        Query::Tasks(filter) => filter.limit = filter.limit.min(wire::PAGE),
        Query::SurplusTasks(asked) => asked.limit = asked.limit.min(wire::PAGE),
        Query::Snapshot(_) | Query::TaskCounts => {}
    }
    let client = &asked.app.client;
    let mut answer = client.backend().query(query).await;
    if let Ok(store::Answer::Snapshot(snapshot)) = &mut answer {
        snapshot.mark_dead(client.witness());
    }
    asked.answer(answer)
}

/// A client that waits comes back to the next server, and goes on waiting there.
fn stopping() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "SHUTTING_DOWN", "the server is shutting down")
}

async fn wait(asked: Asked) -> Answer {
    let ask: wire::Wait = asked.read()?;
    if let Signal::Turn { .. } = ask.signal {
        asked.caller.require(Role::Work)?;
    }
    let patience = Duration::from_millis(ask.patience_ms.min(wire::PATIENCE_MAX_MS));
    let backend = asked.app.client.backend();
    tokio::select! {
        waited = backend.wait(ask.signal, patience) => asked.answer(waited),
        () = asked.app.stopped() => Err(stopping()),
    }
}

async fn maintain(asked: Asked) -> Answer {
    let work: Maintenance = asked.read()?;
    // To check and to count change nothing.
    if !matches!(work, Maintenance::Check | Maintenance::Leftovers) {
        asked.caller.require(Role::Admin)?;
    }
    asked.answer(asked.app.client.backend().maintain(work).await)
}

/// Removes history beyond what this server keeps: its own settings count, not the client's.
async fn collect(asked: Asked) -> Answer {
    let ask: wire::Collect = asked.read()?;
    asked.answer(asked.app.client.backend().collect(ask.dry_run).await)
}

/// What every answer tells: see [`crate::clock`].
async fn time(asked: Asked) -> Answer {
    asked.answer(Ok(()))
}

/// Answers clients of other versions, which ask in other places.
async fn another_version() -> Problem {
    wrong_version(None)
}

fn wrong_version(theirs: Option<&str>) -> Problem {
    let ours = wire::PROTOCOL_VERSION;
    let message = match theirs {
        Some(theirs) => format!(
            "this server speaks version {ours} of the protocol of tenure's clients, and the client version {theirs}"
        ),
        None => format!(
            "this server speaks version {ours} of the protocol of tenure's clients, and the client an older one"
        ),
    };
    Problem::new(StatusCode::NOT_FOUND, "PROTOCOL_VERSION", message)
        .hint("Use the same version of tenure on both sides.")
}
