//! Sessions of agents that connect over HTTP. Since its revision of 2026-07-28 the protocol has no
//! sessions: each request stands alone. An agent that holds something then gets a name for its
//! session, which it passes to the tools as an argument. In earlier revisions the protocol gives
//! each session an id.
//!
//! Either is the session's key. A server that does not know the key, because it started later,
//! looks for holds under it.

use super::Options;
use super::answer::Refused;
use super::open_sessions::OpenSessions;
use super::session::Session;
use super::session_grants::SessionGrants;
use crate::caller::Caller;
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams};
use rmcp::transport::streamable_http_server::session::{
    SessionState, SessionStore, SessionStoreError,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tenure::agent::Agent;
use tenure::core::{GrantId, Scope};
use tenure::{Binding, Client, Error};
use uuid::Uuid;

/// The most sessions that are remembered. Beyond that, new ones must wait until some have lapsed.
const SESSIONS_MAX: usize = 10_000;

struct Known {
    session: Arc<Session>,
    called_at: Instant,
}

/// The sessions that are passed as arguments.
pub(super) struct Sessions {
    client: Client,
    pub(super) options: Options,
    known: Mutex<HashMap<GrantId, Known>>,
    /// The protocol's own sessions.
    pub(super) open: OpenSessions,
}

impl Sessions {
    pub(super) fn new(client: Client, options: Options) -> Sessions {
        Sessions { client, options, known: Mutex::default(), open: OpenSessions::default() }
    }

    /// The client of the store.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// A new session, of this agent if it is known.
    pub(super) fn begin(
        &self,
        key: &str,
        caller: &Caller,
        agent: Option<Agent>,
    ) -> Result<Arc<Session>, Error> {
        let owner = caller.name.clone();
        let client = self.client().through(&caller.token());
        let client = match agent {
            Some(agent) => client.with_agent(agent)?,
            None => client,
        };
        let options = self.options.clone();
        Ok(Arc::new(Session::new(client, options, Binding::Elsewhere, key, owner)))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<GrantId, Known>> {
        self.known.lock()
    }

    /// The session with this name, if it is this caller's.
    pub(super) async fn find(
        &self,
        name: &str,
        caller: &Caller,
        agent: Option<Agent>,
    ) -> Result<Arc<Session>, Refused> {
        let gone = || {
            Refused::new(
                "NO_SESSION",
                "This session has ended; what it held was released",
                "Stop what you did under it, omit session, and start again.",
            )
        };
        let id: GrantId = name.parse().map_err(|_| gone())?;
        match self.known().get_mut(&id) {
            Some(known) if known.session.owner == caller.name => {
                known.called_at = Instant::now();
                return Ok(known.session.clone());
            }
            Some(_) => return Err(gone()),
            None => {}
        }
        let session = self.begin(&id.to_string(), caller, agent)?;
        if !session.take_up().await? {
            return Err(gone());
        }
        self.remember(id, &session)
    }

    /// Ends what is held under this id since before the server started.
    pub(super) async fn close(&self, id: &str, caller: &Caller) -> Result<(), Error> {
        let session = self.begin(id, caller, None)?;
        session.take_up().await?;
        session.end().await
    }

    /// A new session with a new name.
    pub(super) fn begin_named(
        &self,
        caller: &Caller,
        agent: Option<Agent>,
    ) -> Result<(GrantId, Arc<Session>), Error> {
        let id = GrantId::random();
        Ok((id, self.begin(&id.to_string(), caller, agent)?))
    }

    /// Remembers a session that holds something under its name. If another call has done so
    /// meanwhile, that session is returned.
    pub(super) fn remember(
        &self,
        id: GrantId,
        session: &Arc<Session>,
    ) -> Result<Arc<Session>, Refused> {
        let mut known = self.known();
        let longest = self.options.longest_ttl();
        // After this long without a call, nothing is held under them.
        known.retain(|_, known| known.called_at.elapsed() < longest);
        if known.len() >= SESSIONS_MAX {
            return Err(Refused::new(
                "TOO_MANY_SESSIONS",
                "Too many sessions hold something",
                "Wait a few minutes and call again.",
            ));
        }
        let new = || Known { session: session.clone(), called_at: Instant::now() };
        Ok(known.entry(id).or_insert_with(new).session.clone())
    }
}

/// Restores the protocol's own sessions after a restart. The gate in `open_sessions.rs` has admitted
/// the id.
#[async_trait]
impl SessionStore for Sessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        if id.parse::<Uuid>().is_err() {
            return Ok(None);
        }
        // Only the session's own server can tell its grants from others, and it shows none of them.
        let seen = self.client().backend().read(&Scope::Everything).await.map_err(Error::from)?;
        let held = seen.holds.iter().find(|seen| SessionGrants::is_of_key(id, seen.hold.grant));
        // The label of a hold, if there is one, tells what the program called itself.
        let label = held.map_or("agent", |seen| seen.hold.holder.label.as_str());
        let program = label.rsplit_once('/').map_or(label, |(name, _)| name);
        let program = Implementation::new(program, "");
        let hello = InitializeRequestParams::new(ClientCapabilities::default(), program);
        Ok(Some(SessionState::new(hello)))
    }

    async fn store(&self, _: &str, _: &SessionState) -> Result<(), SessionStoreError> {
        Ok(())
    }

    async fn delete(&self, _: &str) -> Result<(), SessionStoreError> {
        Ok(())
    }
}
