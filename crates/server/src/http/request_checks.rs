//! The middleware of every request: gives it an id, checks host, caller, rate, size and time limit
//! in this order, and completes and logs the response.

use super::connection_limit::ConnectionSlot;
use super::hosts::Hosts;
use super::keyring::Keyring;
use super::limits::{self, Limits, Times};
use super::peer::Peer;
use super::rate::Rate;
use super::request_id::{REQUEST_ID, RequestId};
use super::tls::Tls;
use super::unread_body::BodyWatch;
use super::{auth, responses};
use crate::app::App;
use crate::caller::{Caller, Role};
use crate::log::{LOG, LoggedRequest, METRIC, TRACE};
use crate::problem::Code;
use crate::routes::{Declaration, Declarations, Routes};
use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::field::Empty;
use tracing::{Instrument, Level, Span};

/// How long waiting requests may take to respond when the server shuts down.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The state of the middleware.
pub(crate) struct RequestChecks {
    pub(crate) app: App,
    pub(crate) hosts: Hosts,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) rate: Rate,
    pub(crate) body_bytes_max: u64,
    pub(crate) times: Times,
}

/// The routes, each behind the checks of [`check_request`].
pub(crate) fn router(routes: Routes, checks: Arc<RequestChecks>) -> Router {
    let (router, declarations) = routes.into_parts();
    router
        // `check_request` limits bodies itself.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state((checks, Arc::new(declarations)), check_request))
}

/// Lets a request pass, or responds to it. All that is logged meanwhile names the request.
async fn check_request(
    State((checks, declarations)): State<(Arc<RequestChecks>, Arc<Declarations>)>,
    request: Request,
    next: Next,
) -> Response {
    let id = RequestId::of(request.headers());
    let span = tracing::info_span!(target: LOG, "request", request_id = %id);
    let declared = declarations.of(&request);
    let (request, body) = BodyWatch::of(request);
    let mut response = respond(&checks, declared, request, next).instrument(span).await;
    body.complete(&mut response);
    response.headers_mut().insert(REQUEST_ID, id.header());
    response
}

async fn respond(
    checks: &RequestChecks,
    declared: Declaration,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let in_progress = checks.app.metrics.request();
    let logged = LoggedRequest::of(&request);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let (response, name) = match checks.admit(request, declared) {
        Ok((request, caller)) => {
            let name = caller.name.clone();
            let span = checks.trace_span(&request, route.as_ref(), &caller);
            let answer = checks.answer(request, declared.limits, caller, next);
            let response = answer.instrument(span.clone()).await;
            span.record("http.response.status_code", response.status().as_u16());
            if response.status().is_server_error() {
                span.record("otel.status_code", "ERROR");
            }
            (response, name)
        }
        Err(refusal) => (*refusal, None),
    };
    let mut response = responses::as_problem(response).await;
    responses::protect(response.headers_mut());
    let (status, took) = (response.status(), begun.elapsed());
    let route = route.as_ref().map(MatchedPath::as_str);
    checks.app.metrics.answered(route, &method, status, took);
    tracing::event!(target: METRIC, Level::INFO, {
        histogram.http.server.request.duration = took.as_secs_f64(),
        http.request.method = %method,
        http.route = route.unwrap_or_default(),
        http.response.status_code = status.as_u16(),
    });
    drop(in_progress);
    if response.extensions().get::<Code>().is_some_and(|code| code.is_refused_token()) {
        checks.app.metrics.refused_token();
    }
    if let Some(logged) = logged {
        logged.answered(status, took, name.as_deref());
    }
    response
}

impl RequestChecks {
    /// Refuses what must not pass, and adds the caller to the request.
    fn admit(
        &self,
        mut request: Request,
        declared: Declaration,
    ) -> Result<(Request, Caller), Box<Response>> {
        let refuse = |problem: crate::problem::Problem| Box::new(problem.into_response());
        let peer = *request.extensions().get::<Peer>().unwrap_or(&Peer::Unix { user: None });
        let (method, uri) = (request.method(), request.uri());
        self.hosts.check(&peer, method, uri, request.headers()).map_err(refuse)?;
        let caller = auth::caller(&self.keyring, &peer, request.headers());
        self.rate.check(&peer, caller.as_ref().ok())?;
        let slot = request.extensions().get::<Arc<ConnectionSlot>>();
        let caller = match caller {
            Ok(_) if slot.is_some_and(|slot| !slot.mark_authenticated()) => {
                return Err(Box::new(responses::too_many_connections()));
            }
            Ok(caller) => caller,
            Err(_) if declared.is_open => Caller::new(None, Role::Read),
            Err(unknown) => return Err(Box::new(unknown.into_response())),
        };
        request.extensions_mut().insert(caller.clone());
        let request = limits::limit_body(
            request,
            declared.limits,
            self.body_bytes_max,
            self.times.body_silence,
        )
        .map_err(refuse)?;
        Ok((request, caller))
    }

    /// The span of a request that was let in. Only callers that are known choose its parent.
    fn trace_span(&self, request: &Request, route: Option<&MatchedPath>, caller: &Caller) -> Span {
        let route = route.map_or("none", MatchedPath::as_str);
        let span = tracing::info_span!(
            target: TRACE,
            "request",
            "otel.name" = %format_args!("{} {route}", request.method()),
            "otel.kind" = "server",
            "otel.status_code" = Empty,
            "http.request.method" = %request.method(),
            "http.route" = route,
            "http.response.status_code" = Empty,
            "tenure.token" = caller.name.as_deref(),
        );
        if let Some(adopt) = self.app.adopt_parent {
            adopt(&span, request.headers());
        }
        span
    }

    async fn answer(
        &self,
        request: Request,
        limits: Limits,
        caller: Caller,
        next: Next,
    ) -> Response {
        let stopped = async {
            match limits.may_wait() {
                true => self.app.stopped().await,
                false => std::future::pending().await,
            }
            tokio::time::sleep(LAST_WORDS).await;
        };
        let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
        let response = tokio::select! {
            answer = tokio::time::timeout(limits.time(&self.times), answer) => match answer {
                Ok(Ok(response)) => response,
                Ok(Err(_)) => return responses::internal_error().into_response(),
                Err(_) => return limits::too_slow().into_response(),
            },
            () = stopped => return responses::shutting_down(),
        };
        responses::bounded_stream(response, self.app.clone(), self.keyring.clone(), caller)
    }
}
