//! The middleware of every request: checks host, caller, rate, size and time limit in this order,
//! and completes the response.

use super::connection_limit::ConnectionSlot;
use super::hosts::Hosts;
use super::keyring::Keyring;
use super::limits::{self, Limits};
use super::peer::Peer;
use super::rate::Rate;
use super::tls::Tls;
use super::{Note, auth, responses};
use crate::app::App;
use crate::caller::{Caller, Role};
use crate::problem::Code;
use crate::routes::{Declaration, Declarations, Routes};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    pub(crate) log: Option<Note>,
}

/// The routes, each behind the checks of [`check_request`].
pub(crate) fn router(routes: Routes, checks: Arc<RequestChecks>) -> Router {
    let (router, declarations) = routes.into_parts();
    router
        // `check_request` limits bodies itself.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state((checks, Arc::new(declarations)), check_request))
}

/// Lets a request pass, or responds to it.
async fn check_request(
    State((checks, declarations)): State<(Arc<RequestChecks>, Arc<Declarations>)>,
    request: Request,
    next: Next,
) -> Response {
    let declared = declarations.of(&request);
    let begun = Instant::now();
    let (method, path) = match checks.log {
        Some(_) => (request.method().clone(), request.uri().path().to_owned()),
        None => (Method::GET, String::new()),
    };
    let (response, name) = match checks.admit(request, declared) {
        Ok((request, caller)) => {
            let name = caller.name.clone();
            (checks.answer(request, declared.limits, caller, next).await, name)
        }
        Err(refusal) => (*refusal, None),
    };
    let mut response = responses::as_problem(response).await;
    responses::protect(response.headers_mut());
    checks.app.metrics.answered(response.status());
    if response.extensions().get::<Code>().is_some_and(|code| code.is_refused_token()) {
        checks.app.metrics.refused_token();
    }
    if let Some(log) = &checks.log {
        let (status, name) = (response.status().as_u16(), name.as_deref().unwrap_or("-"));
        let ms = begun.elapsed().as_secs_f64() * 1000.0;
        log(&format!("{method} {} {status} {ms:.1}ms {name}", loggable(&path)));
    }
    response
}

/// A path for a log: short, and on one line.
fn loggable(path: &str) -> String {
    path.chars().filter(|c| c.is_ascii_graphic()).take(200).collect()
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
            Err(_) if declared.is_open => Caller { name: None, role: Role::Read },
            Err(unknown) => return Err(Box::new(unknown.into_response())),
        };
        request.extensions_mut().insert(caller.clone());
        let request =
            limits::limit_body(request, declared.limits, self.body_bytes_max).map_err(refuse)?;
        Ok((request, caller))
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
            answer = tokio::time::timeout(limits.time(), answer) => match answer {
                Ok(Ok(response)) => response,
                Ok(Err(_)) => return responses::internal_error().into_response(),
                Err(_) => return limits::too_slow().into_response(),
            },
            () = stopped => return responses::shutting_down(),
        };
        responses::bounded_stream(response, self.app.clone(), self.keyring.clone(), caller)
    }
}
