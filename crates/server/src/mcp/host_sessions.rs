//! The sessions of the agents that one `tenure mcp` serves. A program of agents may have several
//! sessions and subagents in one process: whom a call belongs to is what the program says in the call
//! itself. A call that says nothing belongs to the only session of the program, and where it has
//! several, to nobody but this conversation.

use super::Options;
use super::session::Session;
use parking_lot::Mutex;
use rmcp::model::RequestMetaObject;
use std::collections::HashMap;
use std::sync::Arc;
use tenure::agent::{Agent, AgentSource, Host};
use tenure::core::GrantId;
use tenure::{Binding, Client, Error};

/// The argument by which opencode's plugin says whom a call belongs to: its session, or that of its
/// parent and its own.
pub(super) const SESSION_ARGUMENT: &str = "tenure_session";

/// With more sessions than this, those that hold nothing are forgotten. Each subagent has one.
const SESSIONS_KEPT: usize = 64;

/// All sessions of one conversation, by the label of their agent; without one for calls that belong to
/// nobody.
pub(super) struct HostSessions {
    client: Client,
    options: Options,
    key: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<Option<String>, Arc<Session>>,
    /// Whom calls belong to that say nothing.
    unnamed: Option<Arc<Session>>,
    is_over: bool,
}

impl HostSessions {
    /// The sessions of the program around this process, whose agent is that of the client.
    pub(super) fn new(client: Client, options: Options) -> HostSessions {
        // The sessions of a process cannot be resumed after it ended.
        let key = GrantId::random().to_string();
        HostSessions { client, options, key, state: Mutex::default() }
    }

    /// The session that a call belongs to.
    pub(super) async fn of_call(
        &self,
        meta: &RequestMetaObject,
        argument: Option<&str>,
    ) -> Result<Arc<Session>, Error> {
        let known = self.options.sessions.as_ref();
        let named = known.and_then(|known| {
            let by_hook = || known.caller(Host::ClaudeCode, text(meta, "claudecode/toolUseId")?);
            of_argument(argument).or_else(|| of_meta(meta)).or_else(by_hook)
        });
        match named {
            Some(agent) => {
                if let Some(known) = known {
                    known.remember(&agent);
                }
                self.of(Some(agent))
            }
            None => self.of_unnamed().await,
        }
    }

    async fn of_unnamed(&self) -> Result<Arc<Session>, Error> {
        let base = self.client.agent();
        let now = base.and_then(|base| match &self.options.sessions {
            Some(known) => known.now(base),
            None => Some(base.clone()),
        });
        let before = self.state.lock().unnamed.clone();
        let is_other = |before: &Arc<Session>| now.is_some() && before.agent_label() != label(&now);
        if let Some(before) = before.filter(is_other) {
            let of_process = base.filter(|base| matches!(base.source, AgentSource::Program(_)));
            if [None, of_process.map(|base| &base.label)].contains(&before.agent_label()) {
                // What was taken before the session was known stays with those who took it.
                before.renew().await?;
                if !before.is_idle().await {
                    return Ok(before);
                }
            } else {
                // The program has begun another session, which does not know what that one held.
                self.forget(&before);
                before.end().await?;
            }
        }
        let session = self.of(now)?;
        self.state.lock().unnamed = Some(session.clone());
        Ok(session)
    }

    /// The session of this agent, or the one that belongs to nobody.
    fn of(&self, agent: Option<Agent>) -> Result<Arc<Session>, Error> {
        let mut state = self.state.lock();
        if let Some(session) = state.sessions.get(&label(&agent).cloned()) {
            return Ok(session.clone());
        }
        let session = Arc::new(self.begin(agent.clone())?);
        if state.is_over {
            session.call_off();
        }
        state.forget_idle();
        state.sessions.insert(agent.map(|agent| agent.label), session.clone());
        Ok(session)
    }

    fn begin(&self, agent: Option<Agent>) -> Result<Session, Error> {
        // What an agent holds ends with its program, which is not this process.
        let (client, tie) = match (agent, self.client.agent()) {
            (Some(agent), _) => {
                let process = agent.process.or(Some(std::process::id()));
                (self.client.with_agent(Agent { process, ..agent })?, Binding::Nothing)
            }
            (None, None) => (self.client.clone(), Binding::ThisProcess),
            (None, Some(_)) => (self.client.with_made_up_label(), Binding::ThisProcess),
        };
        let key = format!("{} {}", self.key, client.agent().map_or("", |agent| &agent.label));
        Ok(Session::new(client, self.options.clone(), tie, &key, None))
    }

    fn forget(&self, session: &Arc<Session>) {
        self.state.lock().sessions.retain(|_, other| !Arc::ptr_eq(other, session));
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.state.lock().sessions.values().cloned().collect()
    }

    /// Cancels all waits, because the program is gone.
    pub(super) fn call_off(&self) {
        self.state.lock().is_over = true;
        self.all().iter().for_each(|session| session.call_off());
    }

    /// Releases everything that is held, now and later.
    pub(super) async fn end(&self) -> Result<(), Error> {
        self.call_off();
        let mut result = Ok(());
        for session in self.all() {
            result = result.and(session.end().await);
        }
        result
    }

    /// What the agent of a session must be told if no hook of its program was heard of.
    pub(super) fn hooks_note(&self, session: &Session) -> Option<&str> {
        let note = self.options.without_hooks.as_deref()?;
        let was_heard = self.options.sessions.as_ref()?.was_heard(session.agent()?);
        (was_heard == Some(false)).then_some(note)
    }
}

impl State {
    fn forget_idle(&mut self) {
        if self.sessions.len() >= SESSIONS_KEPT {
            let unnamed = self.unnamed.clone();
            self.sessions.retain(|_, session| {
                unnamed.as_ref().is_some_and(|other| Arc::ptr_eq(other, session))
                    || Arc::strong_count(session) > 1
                    || !session.is_idle_now()
            });
        }
    }
}

fn label(agent: &Option<Agent>) -> Option<&String> {
    agent.as_ref().map(|agent| &agent.label)
}

fn text<'a>(meta: &'a RequestMetaObject, name: &str) -> Option<&'a str> {
    meta.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Codex names the session and the thread: in a subagent another than in the session itself.
fn of_meta(meta: &RequestMetaObject) -> Option<Agent> {
    let (session, thread) = (text(meta, "sessionId")?, text(meta, "threadId")?);
    Some(Agent::of_session(Host::Codex, session, Some(thread).filter(|thread| *thread != session)))
}

fn of_argument(argument: Option<&str>) -> Option<Agent> {
    let mut words = argument?.split_whitespace();
    Some(Agent::of_session(Host::Opencode, words.next()?, words.next()))
}
