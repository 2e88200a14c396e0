//! `DELETE /mcp`: closes a session of the protocol. It responds 200, or 404 if there is no such
//! session.

use super::server::SESSION_ID;
use super::sessions::Sessions;
use crate::caller::{Caller, Role};
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::sync::Arc;

/// The known sessions.
#[derive(Clone)]
pub(super) struct CloseSession {
    manager: Arc<LocalSessionManager>,
    sessions: Arc<Sessions>,
}

impl CloseSession {
    pub(super) fn new(manager: Arc<LocalSessionManager>, sessions: Arc<Sessions>) -> CloseSession {
        CloseSession { manager, sessions }
    }
}

/// Closes a session, and passes on all other requests.
pub(super) async fn close(
    State(closing): State<CloseSession>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::DELETE {
        return next.run(request).await;
    }
    let id = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
    let Some(id) = id.map(str::to_owned) else {
        return no_session("the request has no Mcp-Session-Id");
    };
    if matches!(closing.manager.has_session(&id.as_str().into()).await, Ok(true)) {
        let mut response = next.run(request).await;
        if response.status().is_success() {
            *response.status_mut() = StatusCode::OK;
        }
        return response;
    }
    // It may have started with an earlier server process.
    let caller = request.extensions().get::<Caller>().filter(|it| it.role >= Role::Work);
    let Some(caller) = caller else { return no_session("no such session") };
    match closing.sessions.close(&id, caller).await {
        Ok(true) => StatusCode::OK.into_response(),
        Ok(false) => no_session("no such session"),
        Err(error) => Problem::from(error).into_response(),
    }
}

fn no_session(message: &str) -> Response {
    Problem::new(StatusCode::NOT_FOUND, "NO_SESSION", message).into_response()
}
