//! What the agent of a session holds besides what the session took itself: its shell commands and hooks
//! hold under the same label, which proves that it is the agent's.

use super::answer::Refused;
use super::session::Session;
use std::collections::HashSet;
use tenure::core::rules::tasks::{Finish, Finished};
use tenure::core::{GrantId, HoldSnapshot, Kind, Proof, Released, Resource, Task};
use tenure::store::Renewed;
use tenure::{Client, Error};
use tenure_frontend::refusal::Refusal;

/// All that an agent holds.
pub(super) struct AgentHolds {
    client: Client,
    label: String,
}

/// What was renewed of an agent's holds.
pub(super) struct RenewedHolds(Vec<(HoldSnapshot, Renewed)>);

impl RenewedHolds {
    /// Whether this is still held under this grant.
    pub(super) fn has(&self, grant: GrantId, resource: &Resource) -> bool {
        self.0.iter().any(|(seen, answer)| {
            *answer == Renewed::Renewed
                && seen.hold.want.resource == *resource
                && Proof::Grant(grant).recognises(seen)
        })
    }
}

impl AgentHolds {
    /// Those of the agent of this client, if it has one.
    pub(super) fn of(client: &Client) -> Option<AgentHolds> {
        let label = client.agent()?.label.clone();
        Some(AgentHolds { client: client.clone(), label })
    }

    /// What proves that something is the agent's.
    pub(super) fn proof(&self) -> Proof {
        Proof::Label(self.label.clone())
    }

    /// Renews all of it in one call to the store, and what the agent holds that started it: it lives
    /// while its subagent works.
    pub(super) async fn renew(&self) -> Result<RenewedHolds, Error> {
        if let Some(parent) = self.client.agent().and_then(|agent| agent.parent.clone()) {
            self.client.renew(&Proof::Label(parent), None, None).await?;
        }
        Ok(RenewedHolds(self.client.renew(&self.proof(), None, None).await?))
    }

    /// All of it that counts.
    pub(super) async fn list(&self) -> Result<Vec<HoldSnapshot>, Error> {
        let seen = self.client.look_everywhere().await?;
        let (proof, witness) = (self.proof(), self.client.witness());
        let counts = |seen: &HoldSnapshot| proof.recognises(seen) && !seen.gone(witness);
        Ok(seen.holds.into_iter().filter(counts).collect())
    }

    /// Releases these locks, or all that belong to no claimed task; returns which.
    pub(super) async fn release(
        &self,
        resources: Option<Vec<Resource>>,
    ) -> Result<Vec<Resource>, Error> {
        let resources = match resources {
            Some(some) => some,
            None => self.locks().await?,
        };
        if resources.is_empty() {
            return Ok(vec![]);
        }
        Ok(match self.client.release(self.proof(), Some(&resources)).await? {
            Released::Ended(holds) => {
                holds.into_iter().map(|seen| seen.hold.want.resource).collect()
            }
            Released::NotHeld(_) => vec![],
        })
    }

    /// What is held and belongs to no claimed task.
    async fn locks(&self) -> Result<Vec<Resource>, Error> {
        let holds = self.list().await?;
        let is_task = |seen: &&HoldSnapshot| seen.hold.want.resource.kind() == Kind::Task;
        let claims: HashSet<GrantId> =
            holds.iter().filter(is_task).map(|seen| seen.hold.grant).collect();
        let is_lock = |seen: &&HoldSnapshot| {
            matches!(seen.hold.want.resource.kind(), Kind::Lock | Kind::Path)
                && !claims.contains(&seen.hold.grant)
        };
        Ok(holds.iter().filter(is_lock).map(|seen| seen.hold.want.resource.clone()).collect())
    }

    /// Finishes a task that another face of the agent claimed.
    pub(super) async fn finish(
        &self,
        session: &Session,
        task: &Task,
        finish: Finish,
    ) -> Result<Task, Refused> {
        let (proof, runner) = (self.proof(), Some(session.runner()));
        match self.client.tasks().finish(&task.id, proof, None, runner, finish).await? {
            Finished::Done { task, .. } => Ok(task),
            Finished::NotYours(task) => Err(Refused::not_yours(&task)),
            Finished::ClaimLost { task, part } => Err(Refusal::claim_lost(&task, &part).into()),
            Finished::NotFound => Err(Error::NoSuchTask { text: task.id.to_string() }.into()),
        }
    }
}
