//! Sessions of agents that come over HTTP. Since its revision of 2026-07-28 the protocol has none:
//! each request stands alone. An agent that holds something is then given a name for its session,
//! which it passes to the tools as an argument. Before, a session goes by the id that the protocol
//! gives it.
//!
//! Either is the session's key. A server that does not know it, since it was started later, looks
//! what is held under it.

use super::Options;
use super::answer::Refused;
use super::session::Session;
use super::session_grants::Family;
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams};
use rmcp::transport::streamable_http_server::session::{
    SessionState, SessionStore, SessionStoreError,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tenure::core::{GrantId, Scope};
use tenure::{Binding, Client, Error};
use uuid::Uuid;

/// So many are remembered at once. Whoever comes then must wait until some have lapsed.
const SESSIONS_MAX: usize = 10_000;

struct Known {
    session: Arc<Session>,
    called_at: Instant,
}

/// The sessions that are passed as arguments.
pub(super) struct Sessions {
    client: Client,
    options: Options,
    known: Mutex<HashMap<GrantId, Known>>,
}

impl Sessions {
    pub(super) fn new(client: Client, options: Options) -> Sessions {
        Sessions { client, options, known: Mutex::default() }
    }

    /// The door to the store.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// A session that nobody knows yet.
    pub(super) fn begin(&self, key: &str, owner: Option<String>) -> Arc<Session> {
        let (client, options) = (self.client().clone(), self.options.clone());
        Arc::new(Session::new(client, options, Binding::Elsewhere, key, owner))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<GrantId, Known>> {
        self.known.lock()
    }

    /// The session that goes by this name, if it is this caller's.
    pub(super) async fn find(
        &self,
        name: &str,
        owner: &Option<String>,
    ) -> Result<Arc<Session>, Refused> {
        let gone = || {
            Refused::new(
                "NO_SESSION",
                "There is no such session any more; what it held is given back",
                "Stop what you did under it, leave session out, and begin anew.",
            )
        };
        let id: GrantId = name.parse().map_err(|_| gone())?;
        match self.known().get_mut(&id) {
            Some(known) if known.session.owner == *owner => {
                known.called_at = Instant::now();
                return Ok(known.session.clone());
            }
            Some(_) => return Err(gone()),
            None => {}
        }
        let session = self.begin(&id.to_string(), owner.clone());
        if !session.take_up().await? {
            return Err(gone());
        }
        self.remember(id, &session)
    }

    /// Ends what is held under this id since before the server was started; says whether there was
    /// anything.
    pub(super) async fn close(&self, id: &str, owner: Option<String>) -> Result<bool, Error> {
        if id.parse::<Uuid>().is_err() {
            return Ok(false);
        }
        let session = self.begin(id, owner);
        let has_held = session.take_up().await?;
        session.end().await?;
        Ok(has_held)
    }

    /// A new name for a session, and the session.
    pub(super) fn begin_named(&self, owner: Option<String>) -> (GrantId, Arc<Session>) {
        let id = GrantId::random();
        (id, self.begin(&id.to_string(), owner))
    }

    /// Remembers a session that holds something under its name. If another call has taken it up
    /// meanwhile, that one is returned.
    pub(super) fn remember(
        &self,
        id: GrantId,
        session: &Arc<Session>,
    ) -> Result<Arc<Session>, Refused> {
        let mut known = self.known();
        let longest = self.options.longest_ttl();
        // Without a call for so long, nothing is held under them any more.
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

/// What a restarted server knows of the protocol's own sessions. Any id may have been one's: whoever
/// made it up has a session in which nothing is held.
#[async_trait]
impl SessionStore for Sessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        if id.parse::<Uuid>().is_err() {
            return Ok(None);
        }
        // Only a session's own server tells its grants from others, and it shows none of them.
        let seen = self.client().backend().read(&Scope::Everything).await.map_err(Error::from)?;
        let held = seen.holds.iter().find(|seen| Family::is_of_key(id, seen.hold.grant));
        // What the program called itself is known by what it holds, if it holds anything.
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
