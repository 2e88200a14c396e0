//! Undoing a claim whose answer is of no use any more.

use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::rules::draft::Draft;
use crate::snapshot::{HoldSnapshot, Snapshot};
use crate::task::{Status, Task, TaskId, Verb, after};
use crate::{GrantId, Hold, Witness};

/// Hands back what was claimed under these grants, as if it had never been handed out: the attempt
/// does not count and leaves no try, and a section that the runner took with one of these tasks is given up,
/// unless a later claim of the runner has come to use it.
pub fn call_off_claim(
    seen: &Snapshot,
    grants: &[GrantId],
    runner: Option<GrantId>,
    witness: &dyn Witness,
) -> (Decision, Vec<TaskId>) {
    let mut draft = Draft::new(seen, witness);
    let mut handed_back = Vec::new();
    for task in &seen.tasks {
        let Some(claim) = task.claim.as_ref().filter(|claim| grants.contains(&claim.grant)) else {
            continue;
        };
        let Some(status) = after(task.status, Verb::Release) else { continue };
        let resource = task.id.resource();
        let of_claim = |held: &&HoldSnapshot| {
            let hold = &held.hold;
            let of_section = Some(hold.grant) == runner
                && hold.token == claim.token
                && !is_used_by_another(seen, grants, hold);
            hold.grant == claim.grant || of_section
        };
        let holds: Vec<&HoldSnapshot> = draft.holds().filter(of_claim).collect();
        let mut ended_task = false;
        for hold in holds {
            let is_task = hold.hold.want.resource == resource;
            ended_task |= is_task;
            let kind = if is_task { EventKind::HandedBack } else { EventKind::Released };
            draft.drop_hold(hold, kind);
        }
        if !ended_task {
            draft.note(&resource, &claim.by, EventKind::HandedBack);
        }
        draft.write(Write::Task(Box::new(untouched(task, status))));
        handed_back.push(task.id.clone());
    }
    if !handed_back.is_empty() {
        draft.require_durable();
    }
    (draft.decide(None), handed_back)
}

/// Whether a claim under none of these grants has this hold as a part. Calling off may come late: the
/// runner may work on another task by then, in the section that it took with the first.
fn is_used_by_another(seen: &Snapshot, grants: &[GrantId], hold: &Hold) -> bool {
    let others = seen.tasks.iter().filter_map(|task| task.claim.as_ref());
    let mut others = others.filter(|claim| !grants.contains(&claim.grant));
    others.any(|claim| {
        claim.parts.iter().any(|part| {
            part.resource == hold.want.resource
                && part.grant == hold.grant
                && part.token == hold.token
        })
    })
}

fn untouched(task: &Task, status: Status) -> Task {
    let attempts = task.attempts.saturating_sub(1);
    let mut task =
        Task { status, attempts, claim: None, claimed_at: None, started_at: None, ..task.clone() };
    task.forget_open_try();
    task
}
