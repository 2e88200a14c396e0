//! How the claims of many tasks stand, for everything that shows tasks. It is the judgement by which
//! tasks are taken back and finishes are refused.

use super::parts::{ClaimState, HeldParts};
use crate::rules::SteadyWitness;
use crate::snapshot::{HoldSnapshot, Snapshot};
use crate::task::{Part, Status, Task, TaskId};
use crate::{Resource, Witness};
use std::collections::HashMap;

/// The claims of the tasks in a snapshot, judged once.
pub struct JudgedClaims<'a> {
    seen: &'a Snapshot,
    tasks: HashMap<&'a TaskId, &'a Task>,
    held: HeldParts<'a>,
    witness: SteadyWitness<'a>,
}

impl<'a> JudgedClaims<'a> {
    /// Judges the claims of the tasks that are shown. The snapshot must include the holds of all parts,
    /// as one of [`Scope::Tasks`](crate::Scope::Tasks) does.
    pub fn of(seen: &'a Snapshot, witness: &'a dyn Witness) -> JudgedClaims<'a> {
        JudgedClaims {
            seen,
            tasks: seen.tasks.iter().map(|task| (&task.id, task)).collect(),
            held: HeldParts::of(seen),
            witness: SteadyWitness::new(witness),
        }
    }

    /// How the claim of this task stands; `None` if the task has no claim. Also `None` if the snapshot
    /// shows another claim: then the task was read earlier, and the claim has ended properly since.
    pub fn state(&self, task: &Task) -> Option<ClaimState> {
        let shown = self.shown(task)?;
        match &shown.claim {
            Some(claim) => Some(self.held.state(shown, claim, &self.witness)),
            None if shown.status == Status::InProgress => {
                Some(ClaimState::Lost { part: task.id.resource() })
            }
            None => None,
        }
    }

    /// The hold of the task itself, or of another part of its claim.
    pub fn hold(&self, task: &Task, part: &Resource) -> Option<&'a HoldSnapshot> {
        let claim = self.shown(task)?.claim.as_ref()?;
        let (grant, token) = match *part == task.id.resource() {
            true => (claim.grant, claim.token),
            false => {
                let part = claim.parts.iter().find(|one| one.resource == *part)?;
                let Part { grant, token, .. } = part;
                (*grant, *token)
            }
        };
        let is_it =
            |seen: &&HoldSnapshot| seen.hold.want.resource == *part && seen.hold.token == token;
        self.seen.holds_of(grant).find(is_it)
    }

    /// The tasks in progress whose claim no longer stands, in the order in which they are shown.
    pub fn lost(&self) -> Vec<(&'a Task, ClaimState)> {
        let in_progress = self.seen.tasks.iter().filter(|task| task.status == Status::InProgress);
        let judged = in_progress.filter_map(|task| Some((task, self.state(task)?)));
        judged.filter(|(_, state)| *state != ClaimState::Held).collect()
    }

    /// The task as the snapshot shows it, if it has the same claim there.
    fn shown(&self, task: &Task) -> Option<&'a Task> {
        let token = |task: &Task| task.claim.as_ref().map(|claim| claim.token);
        self.tasks.get(&task.id).copied().filter(|shown| token(shown) == token(task))
    }
}
