//! Taking back tasks whose worker died or fell silent.

use crate::Witness;
use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::rules::draft::Draft;
use crate::rules::reap::gone_reason;
use crate::seen::Seen;
use crate::task::{Status, Task, Verb, after};

/// Takes back every shown task that somebody had and no longer has: it is pending again with its
/// attempt counted, or set aside when that happened `recoveries_max` times.
pub fn recover(seen: &Seen, recoveries_max: u32, witness: &dyn Witness) -> (Decision, Vec<Task>) {
    let mut draft = Draft::new(seen, witness);
    let mut recovered = Vec::new();
    for task in seen.tasks.iter().filter(|task| task.status == Status::InProgress) {
        let resource = task.id.resource();
        let grant = task.claim.as_ref().map(|claim| claim.grant);
        let hold = seen
            .holds
            .iter()
            .find(|seen| Some(seen.hold.grant) == grant && seen.hold.want.resource == resource);
        if hold.is_some_and(|hold| gone_reason(hold, witness).is_none()) {
            continue;
        }
        let holds: Vec<_> = draft.holds().filter(|seen| Some(seen.hold.grant) == grant).collect();
        for hold in holds {
            // Files and a section held with the task end with it, whether or not they lapsed too.
            let reason = gone_reason(hold, witness);
            draft.drop_hold(hold, reason.map_or(EventKind::Released, |reason| reason.event()));
        }
        recovered.push(take_back(&mut draft, task, recoveries_max));
    }
    if !recovered.is_empty() {
        draft.require_durable();
    }
    (draft.decide(None), recovered)
}

fn take_back(draft: &mut Draft<'_>, task: &Task, recoveries_max: u32) -> Task {
    let recoveries = task.recoveries + 1;
    let too_often = recoveries >= recoveries_max;
    let verb = if too_often { Verb::SetAside } else { Verb::Recover };
    let by = task.claim.as_ref().map(|claim| claim.by.clone()).unwrap_or_default();
    let error = match too_often {
        true => format!("its workers died or fell silent {recoveries} times; the last was {by}"),
        false => format!("its worker {by} died or fell silent"),
    };
    let status = after(task.status, verb).unwrap_or(Status::Blocked);
    let task = Task { status, recoveries, claim: None, error: Some(error), ..task.clone() };
    let kind = if too_often { EventKind::SetAside } else { EventKind::Recovered };
    draft.note(&task.id.resource(), &by, kind);
    draft.write(Write::Task(Box::new(task.clone())));
    task
}
