//! Taking back tasks whose worker died, fell silent or lost a part of its claim.

use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::handover::TryOutcome;
use crate::rules::draft::Draft;
use crate::rules::reap::{TakeoverReason, gone_reason};
use crate::rules::tasks::claim::end_kept_section;
use crate::rules::tasks::parts::{ClaimState, HeldParts};
use crate::snapshot::Snapshot;
use crate::task::{Claim, Status, Task, Verb, after};
use crate::{BreakAsk, GrantId, Witness};
use std::collections::HashSet;

/// Takes back every shown task whose claim no longer stands: the task is pending again with its
/// attempt counted, or set aside when that happened `recoveries_max` times or was its last attempt.
/// All that is left of the claim ends, and so does the section that its worker kept, unless the
/// worker has another task there.
///
/// `broken` is what an operator has just broken: the try whose claim had it as a part ends with
/// that reason.
pub fn recover(
    seen: &Snapshot,
    recoveries_max: u32,
    broken: Option<&BreakAsk>,
    witness: &dyn Witness,
) -> (Decision, Vec<Task>) {
    let mut draft = Draft::new(seen, witness);
    let held = HeldParts::of(seen);
    let mut ended: Vec<(&Task, Why)> = Vec::new();
    for task in seen.tasks.iter().filter(|task| task.status == Status::InProgress) {
        let state = task.claim.as_ref().map(|claim| held.state(task, claim, draft.witness()));
        match state {
            Some(ClaimState::Held) => {}
            Some(ClaimState::Lapsed { .. }) => {
                let claim = task.claim.as_ref();
                let died = claim.is_some_and(|claim| held.died(task, claim, draft.witness()));
                ended.push((task, if died { Why::Died } else { Why::Silent }));
            }
            None => ended.push((task, Why::Unclaimed)),
            Some(ClaimState::Lost { part }) => {
                let why = if part == task.id.resource() { Why::Ended } else { Why::Lost(part) };
                ended.push((task, why));
            }
        }
    }
    if ended.is_empty() {
        return (Decision::Nothing, vec![]);
    }
    let ids: HashSet<_> = ended.iter().map(|(task, _)| &task.id).collect();
    for (task, _) in &ended {
        let Some(claim) = &task.claim else { continue };
        end_parts(&mut draft, claim.grant);
        end_kept_section(seen, &mut draft, claim, &|id| ids.contains(id));
    }
    let recovered =
        ended.iter().map(|(task, why)| take_back(&mut draft, task, why, recoveries_max, broken));
    let recovered = recovered.collect();
    draft.require_durable();
    (draft.decide(None), recovered)
}

/// Why a claim no longer stands.
enum Why {
    /// Its worker's process died.
    Died,
    /// Its lease lapsed.
    Silent,
    /// The task is in progress without a claim.
    Unclaimed,
    /// The hold of the task itself was ended.
    Ended,
    /// Another part ended or went to another.
    Lost(crate::Resource),
}

impl Why {
    fn words(&self, by: &str) -> String {
        match self {
            Why::Died | Why::Silent | Why::Unclaimed => {
                format!("its worker {by} died or fell silent")
            }
            Why::Ended => format!("the claim of its worker {by} was ended"),
            Why::Lost(part) => format!("its worker {by} lost {part}"),
        }
    }

    /// How the try of this task ends, and what there is to say about it.
    fn outcome(&self, task: &Task, broken: Option<&BreakAsk>) -> (TryOutcome, Option<String>) {
        let broken = broken.filter(|broken| is_part(task, broken));
        match (self, broken) {
            (Why::Died, _) => (TryOutcome::Died, None),
            (Why::Silent | Why::Unclaimed, _) => (TryOutcome::Lapsed, None),
            (Why::Ended | Why::Lost(_), Some(BreakAsk { resource, by, reason, .. })) => {
                (TryOutcome::Broken, Some(format!("{resource} was broken by {by}: {reason}")))
            }
            // Released or removed without the worker's word on the task.
            (Why::Ended, None) => (TryOutcome::Lost, None),
            (Why::Lost(part), None) => (TryOutcome::Lost, Some(format!("{part} was lost"))),
        }
    }
}

/// Whether what was broken is a part of the claim of this task.
fn is_part(task: &Task, broken: &BreakAsk) -> bool {
    let BreakAsk { resource, token, .. } = broken;
    task.claim.as_ref().is_some_and(|claim| {
        (claim.token == *token && task.id.resource() == *resource)
            || claim.parts.iter().any(|part| part.token == *token && part.resource == *resource)
    })
}

/// Ends what is held with the task, whether or not that lapsed too.
fn end_parts(draft: &mut Draft<'_>, grant: GrantId) {
    let holds: Vec<_> = draft.holds().filter(|seen| seen.hold.grant == grant).collect();
    for hold in holds {
        let reason = gone_reason(hold, draft.witness());
        draft.drop_hold(hold, reason.map_or(EventKind::Released, TakeoverReason::event));
    }
}

fn take_back(
    draft: &mut Draft<'_>,
    task: &Task,
    why: &Why,
    recoveries_max: u32,
    broken: Option<&BreakAsk>,
) -> Task {
    let recoveries = task.recoveries + 1;
    let by = task.claim.as_ref().map(|claim: &Claim| claim.by.clone()).unwrap_or_default();
    let words = why.words(&by);
    let (attempts, most) = (task.attempts, task.max_attempts);
    let set_aside = if recoveries >= recoveries_max {
        Some(format!("it was taken back {recoveries} times; at last {words}"))
    } else if attempts >= most {
        Some(format!("{words}, and that was attempt {attempts} of {most}"))
    } else {
        None
    };
    let (verb, kind) = match set_aside {
        Some(_) => (Verb::SetAside, EventKind::SetAside),
        None => (Verb::Recover, EventKind::Recovered),
    };
    let status = after(task.status, verb).unwrap_or(Status::Blocked);
    let error = Some(set_aside.unwrap_or(words));
    let mut task = Task { status, recoveries, error, ..task.clone() };
    let (outcome, detail) = why.outcome(&task, broken);
    task.end_try(outcome, detail.as_deref(), draft.wall());
    task.claim = None;
    draft.note(&task.id.resource(), &by, kind);
    draft.write(Write::Task(Box::new(task.clone())));
    task
}
