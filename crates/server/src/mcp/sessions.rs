//! Sessions of agents that come over HTTP. Since its revision of 2026-07-28 the protocol has none:
//! each request stands alone. An agent that holds something is then given a name for its session,
//! which it passes to the tools as an argument.

use super::Options;
use super::answer::Refused;
use super::session::Session;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tenure::core::GrantId;
use tenure::{Client, Tie};

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
    pub(super) fn begin(&self, owner: Option<String>) -> Arc<Session> {
        let session =
            Session::new(self.client.clone(), self.options.clone(), Tie::Elsewhere, owner);
        Arc::new(session)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<GrantId, Known>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The session that goes by this name, if it is this caller's.
    pub(super) fn find(&self, name: &str, owner: &Option<String>) -> Result<Arc<Session>, Refused> {
        let mut known = self.known();
        let found = name.parse().ok().and_then(|id: GrantId| known.get_mut(&id));
        match found.filter(|known| known.session.owner == *owner) {
            Some(found) => {
                found.called_at = Instant::now();
                Ok(found.session.clone())
            }
            None => Err(Refused::new(
                "NO_SESSION",
                "There is no such session any more; what it held is given back",
                "Stop what you did under it, leave session out, and begin anew.",
            )),
        }
    }

    /// Remembers a session that holds something; says by which name it goes.
    pub(super) fn remember(&self, session: &Arc<Session>) -> Result<String, Refused> {
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
        let id = GrantId::random();
        known.insert(id, Known { session: session.clone(), called_at: Instant::now() });
        Ok(id.to_string())
    }
}
