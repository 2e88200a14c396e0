//! Giving up sections in which nothing is left to do.

use crate::decision::Decision;
use crate::event::EventKind;
use crate::rules::draft::Draft;
use crate::rules::tasks::parts::keeps;
use crate::snapshot::{HoldSnapshot, Pick, Scope, Snapshot, TaskScope};
use crate::task::{Claim, Status, Task};
use crate::{GrantId, Kind, Resource, Witness};

/// What must be seen to decide: what the runner holds, what is being done, and whether each section
/// has more to offer.
pub fn idle_look(runner: GrantId) -> Scope {
    let pick = Pick { depth: 1, ..Pick::default() };
    let (grants, pick) = (vec![runner], Some(pick));
    Scope::Tasks(TaskScope { in_progress: true, grants, pick, ..TaskScope::default() })
}

/// Ends the runner's holds of sections that have nothing ready and nothing that it works on.
/// A finish does so by itself; this is for when others ended the last tasks.
pub fn leave_idle_sections(
    seen: &Snapshot,
    runner: GrantId,
    witness: &dyn Witness,
) -> (Decision, Vec<Resource>) {
    let mut draft = Draft::new(seen, witness);
    let mut left = Vec::new();
    for hold in seen.holds_of(runner).filter(|hold| is_idle(seen, hold)) {
        draft.drop_hold(hold, EventKind::Released);
        left.push(hold.hold.want.resource.clone());
    }
    (draft.decide(None), left)
}

fn is_idle(seen: &Snapshot, hold: &HoldSnapshot) -> bool {
    let resource = &hold.hold.want.resource;
    let in_it = |task: &&Task| task.section.as_deref() == Some(resource.name());
    let mine = |task: &Task| {
        let needs = |claim: &Claim| keeps(claim, resource, hold.hold.grant);
        task.status == Status::InProgress && task.claim.as_ref().is_some_and(needs)
    };
    let busy = |task: &Task| task.is_ready(seen.wall) || mine(task);
    resource.kind() == Kind::Section && !seen.tasks.iter().filter(in_it).any(busy)
}
