//! A sign of life of a worker: the leases of all parts of its claim start anew, or none does.

use super::finish::own_hold;
use super::parts::{ClaimState, claim_state};
use crate::decision::{Change, Decision, Write};
use crate::millis;
use crate::rules::release::Proof;
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::{Claim, Task, TaskId};
use crate::{Kind, Resource, Token, Witness};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A worker says that it still works on a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeartbeatAsk {
    /// Which.
    pub task: TaskId,
    /// Shows that it is the worker's.
    pub proof: Proof,
    /// The token of the claim, where it is known.
    pub token: Option<Token>,
    /// Length of the lease from now on; as before without it.
    #[serde(rename = "ttl_ms", with = "millis::optional", default)]
    pub ttl: Option<Duration>,
}

impl HeartbeatAsk {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        Scope::Tasks(TaskScope { ids: vec![self.task.clone()], ..TaskScope::default() })
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heartbeat {
    /// The leases of the claim started anew.
    Renewed {
        /// The task.
        task: Task,
        /// How long its lease lasts from now.
        #[serde(rename = "ttl_ms", with = "millis")]
        ttl: Duration,
        /// Whether a section was renewed with it.
        section: bool,
    },
    /// There is no such task.
    NotFound,
    /// The worker does not have the task. Nothing was changed.
    NotYours(Task),
    /// The claim lost a part, or the lease of a part lapsed. Nothing was changed.
    ClaimLost {
        /// The task.
        task: Task,
        /// Which part.
        part: Resource,
    },
}

/// Starts the leases of all parts of a claim anew, if all of it is held.
pub fn heartbeat(
    seen: &Snapshot,
    ask: &HeartbeatAsk,
    witness: &dyn Witness,
) -> (Decision, Heartbeat) {
    let Some(task) = seen.task(&ask.task) else { return (Decision::Nothing, Heartbeat::NotFound) };
    let refuse = |answer: Heartbeat| (Decision::Nothing, answer);
    let state = claim_state(seen, task, witness);
    let own = own_hold(seen, task, &ask.proof, ask.token);
    let (claim, hold) = match (&task.claim, state, own) {
        (Some(claim), Some(ClaimState::Held), Some(hold)) => (claim, hold),
        (Some(_), Some(ClaimState::Lapsed { part } | ClaimState::Lost { part }), Some(_)) => {
            return refuse(Heartbeat::ClaimLost { task: task.clone().redacted(), part });
        }
        _ => return refuse(Heartbeat::NotYours(task.clone().redacted())),
    };
    let ttl = ask.ttl.unwrap_or(hold.hold.ttl);
    let writes = renewed(seen, task, claim, ttl);
    let section = claim.parts.iter().any(|part| part.resource.kind() == Kind::Section);
    let answer = Heartbeat::Renewed { task: task.clone().redacted(), ttl, section };
    (Change { writes, ..Change::default() }.decide(), answer)
}

/// The leases of all parts of a claim, started anew with this length.
pub(super) fn renewed(seen: &Snapshot, task: &Task, claim: &Claim, ttl: Duration) -> Vec<Write> {
    let own =
        Write::Extend { resource: task.id.resource(), grant: claim.grant, ttl, operation: None };
    let parts = claim.parts.iter().map(|part| {
        let kept = seen.holds_of(part.grant).find(|seen| seen.hold.want.resource == part.resource);
        // A section that is kept from task to task has a lease of its own, never a shorter one.
        let ttl = match kept {
            Some(kept) if part.grant != claim.grant => ttl.max(kept.hold.ttl),
            _ => ttl,
        };
        Write::Extend { resource: part.resource.clone(), grant: part.grant, ttl, operation: None }
    });
    std::iter::once(own).chain(parts).collect()
}
