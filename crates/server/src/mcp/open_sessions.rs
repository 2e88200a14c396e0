//! The protocol's own sessions over HTTP: each belongs to the token that opened it, a token has a
//! bounded number of them, and one that is not there is answered with 404, so that its agent opens
//! another.
//!
//! The id that an agent gets names the run of the server that gave it, and ends with a proof that it was given to
//! this token. So a session goes on after a restart, also one that holds nothing, and nothing about sessions is
//! stored; one of this run that is not open was closed.
//!
//! `DELETE /mcp` closes a session. It responds 200 when what the session held is released.

use super::server::SESSION_ID;
use super::session::Session;
use super::sessions::Sessions;
use crate::caller::{Caller, Role};
use crate::problem::Problem;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What JSON-RPC clients of this protocol know as "session not found".
const SESSION_NOT_FOUND: i32 = -32001;

/// How many closed sessions of earlier runs are remembered, so that none goes on.
const CLOSED_MAX: usize = 10_000;

/// The sessions that are open.
#[derive(Default)]
pub(super) struct OpenSessions(Mutex<OpenAndClosed>);

#[derive(Default)]
struct OpenAndClosed {
    /// By id.
    open: HashMap<String, OpenSession>,
    /// The ids of those that were closed last.
    closed: VecDeque<String>,
}

struct OpenSession {
    /// The name of the token that opened it, if there are tokens.
    owner: Option<String>,
    called_at: Instant,
    /// What it holds, after its first call of a tool.
    session: Option<Arc<Session>>,
}

impl OpenSessions {
    /// Whether this session is open; its time starts anew.
    fn has(&self, id: &str) -> bool {
        let mut state = self.0.lock();
        state.open.get_mut(id).map(|open| open.called_at = Instant::now()).is_some()
    }

    fn is_closed(&self, id: &str) -> bool {
        self.0.lock().closed.iter().any(|closed| closed == id)
    }

    fn add(&self, id: &str, owner: Option<&str>) {
        let new = OpenSession {
            owner: owner.map(str::to_owned),
            called_at: Instant::now(),
            session: None,
        };
        self.0.lock().open.entry(id.to_owned()).or_insert(new);
    }

    /// Remembers what a session holds.
    pub(super) fn hold(&self, id: &str, session: &Arc<Session>) {
        if let Some(open) = self.0.lock().open.get_mut(id) {
            open.session = Some(session.clone());
        }
    }

    fn remove(&self, id: &str) -> Option<Arc<Session>> {
        let mut state = self.0.lock();
        state.closed.push_front(id.to_owned());
        state.closed.truncate(CLOSED_MAX);
        state.open.remove(id)?.session
    }

    /// Those of an owner, the one that was not called for longest first.
    fn of(&self, owner: Option<&str>) -> Vec<(String, Option<Arc<Session>>)> {
        let state = self.0.lock();
        let mut own: Vec<_> =
            state.open.iter().filter(|(_, open)| open.owner.as_deref() == owner).collect();
        own.sort_by_key(|(_, open)| open.called_at);
        own.into_iter().map(|(id, open)| (id.clone(), open.session.clone())).collect()
    }

    /// Forgets those that were not called for so long: they hold nothing any more.
    fn forget_silent(&self, longest: Duration) {
        self.0.lock().open.retain(|_, open| open.called_at.elapsed() < longest);
    }
}

/// Decides which requests reach which session.
#[derive(Clone)]
pub(super) struct SessionGate {
    manager: Arc<LocalSessionManager>,
    sessions: Arc<Sessions>,
    /// Tells this run of the server from others.
    run: String,
}

impl SessionGate {
    pub(super) fn new(manager: Arc<LocalSessionManager>, sessions: Arc<Sessions>) -> SessionGate {
        let run = uuid::Uuid::new_v4().simple().to_string();
        SessionGate { manager, sessions, run }
    }

    /// Closes a session; what it held is released.
    async fn close(&self, id: &str, caller: &Caller) -> Result<(), tenure::Error> {
        let session = self.sessions.open.remove(id);
        // Closing one that is not in memory is no error.
        let _ = self.manager.close_session(&id.into()).await;
        match session {
            Some(session) => session.end().await,
            // It may have begun with an earlier server, and may have to be looked for.
            None if caller.role >= Role::Work => self.sessions.close(id, caller).await,
            None => Ok(()),
        }
    }

    /// Counts a session in that is new here. If its owner has too many, the one that was silent for longest and
    /// holds nothing is closed; where all hold something, the new one is.
    async fn add(&self, id: &str, caller: &Caller) -> Result<(), Problem> {
        let (open, options) = (&self.sessions.open, &self.sessions.options);
        open.forget_silent(options.session_keep_alive());
        let owner = caller.name.as_deref();
        let mut others = open.of(owner).into_iter();
        open.add(id, owner);
        let mut surplus = (others.len() + 1).saturating_sub(options.sessions_max);
        while surplus > 0 {
            let Some((other, session)) = others.next() else {
                self.close(id, caller).await.map_err(Problem::from)?;
                let message =
                    format!("this token has {} sessions that hold something", options.sessions_max);
                return Err(Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "TOO_MANY_SESSIONS",
                    message,
                )
                .hint("Close some of them, or use another token."));
            };
            let is_idle = match &session {
                Some(session) => session.is_idle().await,
                None => true,
            };
            if is_idle {
                self.close(&other, caller).await.map_err(Problem::from)?;
                surplus -= 1;
            }
        }
        Ok(())
    }
}

/// Answers what is said to sessions that are not there, closes sessions, and counts new ones.
pub(super) async fn gate(
    State(gate): State<SessionGate>,
    request: Request,
    next: Next,
) -> Response {
    // Without a caller the tools refuse.
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return next.run(request).await;
    };
    let proof = Proof::of(&request, &caller);
    let is_delete = request.method() == Method::DELETE;
    let answer = match request.headers().get(SESSION_ID).cloned() {
        Some(shown) => match proof.checked(&shown) {
            Some(given) if !gate.may_go_on(&given) => Ok(no_session()),
            Some(given) if is_delete => gate.delete(&given.id, &caller).await,
            Some(given) => gate.go_on(&given.id, &caller, request, next).await,
            None => Ok(no_session()),
        },
        None if is_delete => Ok(no_session()),
        None => gate.begin(&proof, &caller, request, next).await,
    };
    answer.unwrap_or_else(IntoResponse::into_response)
}

/// What shows that a server gave an id to this caller: the caller sends its token with every request.
struct Proof([u8; 32]);

impl Proof {
    fn of(request: &Request, caller: &Caller) -> Proof {
        let token =
            request.headers().get(header::AUTHORIZATION).map_or(&[][..], |it| it.as_bytes());
        let mut digest = Sha256::new_with_prefix("tenure session id");
        for part in [token, caller.name.as_deref().unwrap_or_default().as_bytes()] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Proof(digest.finalize().into())
    }

    /// The id as its agent sees it, given by this run of the server.
    fn shown(&self, id: &str, run: &str) -> String {
        let given = format!("{id}.{run}");
        let digest = Sha256::new_with_prefix(self.0).chain_update(&given).finalize();
        let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{given}.{digits}")
    }

    /// The id, if this is what the caller was given.
    fn checked(&self, shown: &HeaderValue) -> Option<GivenId> {
        let shown = shown.to_str().ok()?;
        let (given, _) = shown.rsplit_once('.')?;
        let (id, run) = given.rsplit_once('.')?;
        (self.shown(id, run) == shown).then(|| GivenId { id: id.to_owned(), run: run.to_owned() })
    }
}

/// An id that a server gave.
struct GivenId {
    id: String,
    /// The run of the server that gave it.
    run: String,
}

impl SessionGate {
    /// Whether the session is open, or began with an earlier run of the server and was not closed since.
    fn may_go_on(&self, given: &GivenId) -> bool {
        let open = &self.sessions.open;
        open.has(&given.id) || (given.run != self.run && !open.is_closed(&given.id))
    }

    /// Passes on a request that may open a session, and counts that in.
    async fn begin(
        &self,
        proof: &Proof,
        caller: &Caller,
        request: Request,
        next: Next,
    ) -> Result<Response, Problem> {
        let mut response = next.run(request).await;
        let id = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
        if let Some(id) = id.map(str::to_owned) {
            self.add(&id, caller).await?;
            if let Ok(shown) = HeaderValue::try_from(proof.shown(&id, &self.run)) {
                response.headers_mut().insert(SESSION_ID, shown);
            }
        }
        Ok(response)
    }

    /// Passes on a request of a session, which may have begun with an earlier server.
    async fn go_on(
        &self,
        id: &str,
        caller: &Caller,
        mut request: Request,
        next: Next,
    ) -> Result<Response, Problem> {
        if !self.sessions.open.has(id) {
            self.add(id, caller).await?;
        }
        if let Ok(id) = HeaderValue::try_from(id) {
            request.headers_mut().insert(SESSION_ID, id);
        }
        Ok(next.run(request).await)
    }

    async fn delete(&self, id: &str, caller: &Caller) -> Result<Response, Problem> {
        self.close(id, caller).await?;
        Ok(StatusCode::OK.into_response())
    }
}

/// There is no such session, or it is another token's. Agents' programs know it by the number.
fn no_session() -> Response {
    let error = json!({ "code": SESSION_NOT_FOUND, "message": "Session not found" });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}
