//! What belongs to a claim, and whether all of it is still held: one claim, one fate.

use crate::hold::Want;
use crate::rules::reap::{TakeoverReason, gone_reason};
use crate::snapshot::{HoldSnapshot, Scope, Snapshot, TaskScope};
use crate::task::{Claim, Status, Task};
use crate::{GrantId, Kind, Resource, Token, Witness};
use std::collections::HashMap;

/// How a claim stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// All of it is held.
    Held,
    /// All of it is still there, but the lease of a part lapsed or its holder is dead. The worker
    /// may finish the task as long as no part went to another.
    Lapsed {
        /// Which part.
        part: Resource,
    },
    /// A part ended: it was released, broken or taken over. The rest is worth nothing.
    Lost {
        /// Which part.
        part: Resource,
    },
}

/// How the claim of this task stands; none if the task has no claim. What is shown must include the
/// holds of all parts, as [`Scope::Tasks`] does.
pub fn claim_state(seen: &Snapshot, task: &Task, witness: &dyn Witness) -> Option<ClaimState> {
    let find = |resource: &Resource, grant: GrantId| {
        seen.holds_of(grant).find(|seen| seen.hold.want.resource == *resource)
    };
    Some(state_of(task, task.claim.as_ref()?, find, witness))
}

/// The hold by which the worker of this task has it.
pub fn hold_of<'a>(task: &Task, holds: &'a [HoldSnapshot]) -> Option<&'a HoldSnapshot> {
    let claim = task.claim.as_ref()?;
    let resource = task.id.resource();
    holds.iter().find(|seen| seen.hold.token == claim.token && seen.hold.want.resource == resource)
}

/// The holds of a look by resource and grant, to judge many claims.
pub(super) struct HeldParts<'a>(HashMap<(&'a Resource, GrantId), &'a HoldSnapshot>);

impl<'a> HeldParts<'a> {
    pub(super) fn of(seen: &'a Snapshot) -> HeldParts<'a> {
        let key = |seen: &'a HoldSnapshot| (&seen.hold.want.resource, seen.hold.grant);
        HeldParts(seen.holds.iter().map(|seen| (key(seen), seen)).collect())
    }

    pub(super) fn state(&self, task: &Task, claim: &Claim, witness: &dyn Witness) -> ClaimState {
        state_of(task, claim, |resource, grant| self.0.get(&(resource, grant)).copied(), witness)
    }

    /// Whether the holder of a part of the claim is proved dead.
    pub(super) fn died(&self, task: &Task, claim: &Claim, witness: &dyn Witness) -> bool {
        let own = task.id.resource();
        let parts = claim.parts.iter().map(|part| (&part.resource, part.grant));
        let mut held = [(&own, claim.grant)].into_iter().chain(parts);
        held.any(|part| {
            let hold = self.0.get(&part);
            hold.is_some_and(|hold| gone_reason(hold, witness) == Some(TakeoverReason::Died))
        })
    }
}

fn state_of<'a>(
    task: &Task,
    claim: &Claim,
    find: impl Fn(&Resource, GrantId) -> Option<&'a HoldSnapshot>,
    witness: &dyn Witness,
) -> ClaimState {
    let mut state = ClaimState::Held;
    let own = task.id.resource();
    let parts = claim.parts.iter().map(|part| (&part.resource, part.grant, part.token));
    for (resource, grant, token) in [(&own, claim.grant, claim.token)].into_iter().chain(parts) {
        match find(resource, grant).filter(|seen| seen.hold.token == token) {
            None => return ClaimState::Lost { part: resource.clone() },
            Some(hold) if gone_reason(hold, witness).is_some() => {
                state = ClaimState::Lapsed { part: resource.clone() };
            }
            Some(_) => {}
        }
    }
    state
}

/// The section that the worker keeps from task to task, if the claim has one: its resource, and the
/// grant under which it is kept.
pub(super) fn kept_section(claim: &Claim) -> Option<(&Resource, GrantId)> {
    let kept =
        |part: &&crate::Part| part.resource.kind() == Kind::Section && part.grant != claim.grant;
    claim.parts.iter().find(kept).map(|part| (&part.resource, part.grant))
}

/// Whether this claim keeps that section under that grant.
pub(super) fn keeps(claim: &Claim, section: &Resource, runner: GrantId) -> bool {
    kept_section(claim) == Some((section, runner))
}

/// What must be seen to judge a hold that may belong to a claim; none where it cannot.
pub fn claims_look(resource: &Resource) -> Option<Scope> {
    match resource.kind() {
        Kind::Lock => None,
        Kind::Task => {
            let ids = resource.name().parse().into_iter().collect();
            Some(Scope::Tasks(TaskScope { ids, ..TaskScope::default() }))
        }
        Kind::Section | Kind::Path => {
            Some(Scope::Tasks(TaskScope { in_progress: true, ..TaskScope::default() }))
        }
    }
}

/// Whether the hold of this resource under this token belongs to a claim of which a part is gone.
pub fn belongs_to_lost_claim(
    seen: &Snapshot,
    resource: &Resource,
    token: Token,
    witness: &dyn Witness,
) -> bool {
    let is_it = |task: &&Task| {
        task.claim.as_ref().is_some_and(|claim| {
            (claim.token == token && task.id.resource() == *resource)
                || claim.parts.iter().any(|part| part.token == token && part.resource == *resource)
        })
    };
    let claims = seen.tasks.iter().filter(|task| task.status == Status::InProgress).filter(is_it);
    let mut states = claims.filter_map(|task| claim_state(seen, task, witness));
    // A section that is kept may belong to several claims: one that stands is enough.
    let first = states.next();
    first.is_some_and(|first| first != ClaimState::Held && !states.any(|s| s == ClaimState::Held))
}

/// The wants of a claim as its parts, under one grant and token.
pub(super) fn parts_of(wants: &[Want], grant: GrantId, token: Token) -> Vec<crate::Part> {
    let part = |want: &Want| crate::Part { resource: want.resource.clone(), grant, token };
    wants.iter().map(part).collect()
}
