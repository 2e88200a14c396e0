//! On whose behalf a hook acts, and what that agent holds.

use super::event::{Event, What};
use crate::context::Context;
use crate::failure::Failure;
use tenure::Client;
use tenure::agent::Agent;
use tenure::core::{GrantId, HoldSnapshot, Owner, Proof};
use tenure::place::StoreLocation;
use tenure_frontend::config::Key;

/// The agent that a hook acts for.
pub(super) struct Caller {
    pub(super) agent: Agent,
    /// Grants of the commands around the agent: an agent may run under `tenure run` or `tenure
    /// work`.
    grants: Vec<GrantId>,
}

impl Caller {
    /// The agent of an event: under the label that was chosen, else that of its session. `None` if
    /// the event names no session. The session is recorded, for commands and tools of the agent that
    /// are not told it.
    pub(super) fn of(event: &Event, context: &Context) -> Option<Caller> {
        let subagent = event.subagent.as_deref();
        let agent = match context.chosen_label() {
            Some(label) => Agent::chosen(label),
            None => Agent::of_session(event.host, event.session.as_deref()?, subagent),
        };
        let is_recorded = context.settings.text(Key::Identity) != Some("off");
        if let Some(sessions) = context.known_sessions().filter(|_| is_recorded) {
            match event.what {
                What::SessionEnd => sessions.forget(&agent),
                What::SessionStart => sessions.begin(&agent),
                _ => sessions.remember(&agent),
            }
            if let Some(call) = &event.call {
                sessions.remember_call(event.host, call, &agent);
            }
            if let Some(root) = context.place().ok().and_then(StoreLocation::root) {
                sessions.heard(event.host, &agent, root);
            }
        }
        Some(Caller { agent, grants: context.enclosing_grants() })
    }

    /// A client that holds under the agent's label. `None` if there is no store yet and none is
    /// to be made.
    pub(super) async fn client(
        &self,
        context: &Context,
        may_create: bool,
    ) -> Result<Option<Client>, Failure> {
        context.client_of(&self.agent, may_create).await
    }

    /// Whether a request of this agent may go under that hold.
    pub(super) fn is_covered_by(&self, seen: &HoldSnapshot) -> bool {
        let parent = self.agent.parent.clone();
        let owner = Owner { parent, ..Owner::of_label(&self.agent.label) };
        owner.owns_or_inherits(&seen.hold) || self.is_around(seen)
    }

    /// Whether the agent itself has this hold, or a command around it. What is around a subagent is
    /// around its siblings too.
    pub(super) fn has(&self, seen: &HoldSnapshot) -> bool {
        self.owns(seen) || (self.agent.parent.is_none() && self.is_around(seen))
    }

    /// Whether this is the hold of a command around the agent.
    fn is_around(&self, seen: &HoldSnapshot) -> bool {
        self.grants.iter().any(|grant| Proof::Grant(*grant).recognises(seen))
    }

    /// Whether this is a lease that belongs to the agent itself.
    pub(super) fn owns(&self, seen: &HoldSnapshot) -> bool {
        Owner::of_label(&self.agent.label).owns(&seen.hold)
    }

    /// The grants of the commands around the agent, which cover what it asks for.
    pub(super) fn grants(&self) -> &[GrantId] {
        &self.grants
    }

    /// Renews what the agent holds in the store of this context, if there is one.
    pub(super) async fn sign_of_life(&self, context: &Context) -> Result<(), Failure> {
        match self.client(context, false).await? {
            Some(client) => self.renew(&client).await,
            None => Ok(()),
        }
    }

    /// Renews all that the agent holds, and what the agent holds that started it: it lives while
    /// its subagent works.
    pub(super) async fn renew(&self, client: &Client) -> Result<(), Failure> {
        let labels = [Some(&self.agent.label), self.agent.parent.as_ref()];
        for label in labels.into_iter().flatten() {
            client.renew(&Proof::Label(label.clone()), None, None).await?;
        }
        Ok(())
    }
}
