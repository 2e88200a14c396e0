//! What a worker says of its task: done, failed, to be looked at, put off, given back.

use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::handover::TryOutcome;
use crate::millis;
use crate::rules::draft::Draft;
use crate::rules::release::Proof;
use crate::rules::tasks::claim::{end_holds, end_kept_section};
use crate::rules::tasks::dependents_after;
use crate::rules::tasks::parts::{ClaimState, claim_state, kept_section};
use crate::snapshot::{HoldSnapshot, Scope, Snapshot, TaskScope};
use crate::task::{Claim, FinishedClaim, Status, Task, TaskId, Verb, after};
use crate::text::{PAYLOAD_MAX, REASON_MAX, TextError, check_text, shortened};
use crate::{GrantId, Resource, Token, WallTime, Witness};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first pause before a task is tried again; each further one is twice as long.
const BACK_OFF: Duration = Duration::from_secs(5);

/// The longest pause before a task is tried again.
const BACK_OFF_MAX: Duration = Duration::from_secs(10 * 60);

/// How a worker ends its work on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// Done.
    Complete {
        /// What came of it, as JSON.
        result: Option<String>,
    },
    /// Could not be done.
    Fail {
        /// Why.
        reason: String,
        /// Whether it may be tried again.
        retry: bool,
    },
    /// Done, and sent to review.
    Review {
        /// What came of it so far, as JSON.
        result: Option<String>,
    },
    /// Not now; this attempt does not count.
    Snooze {
        /// For how long.
        #[serde(rename = "pause_ms", with = "millis")]
        pause: Duration,
    },
    /// Given back untouched; this attempt does not count.
    Release,
}

impl Finish {
    /// The task is done, and there is nothing to say about it.
    pub fn completed() -> Finish {
        Finish::Complete { result: None }
    }

    /// The task is done, with this value as its result, as JSON.
    pub fn completed_with(result: &impl Serialize) -> Result<Finish, serde_json::Error> {
        Ok(Finish::Complete { result: Some(serde_json::to_string(result)?) })
    }

    /// The task could not be done, and must not be tried again.
    pub fn failed(reason: impl Into<String>) -> Finish {
        Finish::Fail { reason: reason.into(), retry: false }
    }

    /// The task could not be done, and may be tried again while attempts are left.
    pub fn failed_for_now(reason: impl Into<String>) -> Finish {
        Finish::Fail { reason: reason.into(), retry: true }
    }
}

/// A worker ends its work on a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FinishAsk {
    /// Which.
    pub task: TaskId,
    /// Shows that it is the worker's.
    pub proof: Proof,
    /// The token of the claim, where it is known.
    pub token: Option<Token>,
    /// Under which grant the worker keeps its section.
    pub runner: Option<GrantId>,
    /// How it ends.
    pub finish: Finish,
}

impl FinishAsk {
    /// Fails if the result is longer than a task can keep.
    pub fn check(&self) -> Result<(), TextError> {
        match &self.finish {
            Finish::Complete { result: Some(result) } | Finish::Review { result: Some(result) } => {
                check_text("result", result, PAYLOAD_MAX)
            }
            _ => Ok(()),
        }
    }

    /// What must be seen to decide: the task, those that wait for it, and for a worker that keeps
    /// its section, what else the section has to offer.
    pub fn scope(&self) -> Scope {
        Scope::Tasks(TaskScope {
            ids: vec![self.task.clone()],
            dependents: true,
            beside: self.runner.is_some(),
            ..TaskScope::default()
        })
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finished {
    /// It counts.
    Done {
        /// The task as it is now.
        task: Task,
        /// Whether the runner's section was given up: there is nothing more to do in it.
        gave_up_section: bool,
        /// Whether the same worker had said the same before; then nothing was changed now.
        #[serde(default)]
        repeated: bool,
    },
    /// There is no such task.
    NotFound,
    /// The worker does not have it any more: it was taken back, and may be another's. Nothing was
    /// changed.
    NotYours(Task),
    /// A part of the claim ended or went to another, so the rest is worth nothing. Nothing was
    /// changed.
    ClaimLost {
        /// The task as it is.
        task: Task,
        /// Which part.
        part: Resource,
    },
}

/// Ends a worker's work, if it still has the task. The token is the fence: as long as no part of
/// the claim was taken, released or broken since, its finish counts even when its lease has just
/// lapsed.
pub fn finish(seen: &Snapshot, ask: &FinishAsk, witness: &dyn Witness) -> (Decision, Finished) {
    let Some(task) = seen.task(&ask.task) else { return (Decision::Nothing, Finished::NotFound) };
    if is_repeated(task, ask) {
        let task = task.clone().redacted();
        let done = Finished::Done { task, gave_up_section: false, repeated: true };
        return (Decision::Nothing, done);
    }
    let claim = match own_claim(seen, task, ask, witness) {
        Ok(claim) => claim,
        Err(refused) => return (Decision::Nothing, *refused),
    };
    let (verb, event) = verb_and_event(task, &ask.finish);
    let Some(status) = after(task.status, verb) else {
        return (Decision::Nothing, Finished::NotYours(task.clone().redacted()));
    };
    let mut draft = Draft::new(seen, witness);
    let after = finished(task, status, &ask.finish, seen.wall);
    end_holds(&mut draft, claim.grant, &task.id, &event);
    if status.satisfies() {
        for dependent in dependents_after(seen, &task.id, true) {
            draft.write(Write::Task(Box::new(dependent)));
        }
    }
    draft.write(Write::Task(Box::new(after.clone())));
    let gave_up_section = give_up_section(seen, &mut draft, ask, task, claim);
    draft.require_durable();
    (draft.decide(None), Finished::Done { task: after, gave_up_section, repeated: false })
}

/// The claim by which the worker has this task, if it still has all of it.
fn own_claim<'a>(
    seen: &Snapshot,
    task: &'a Task,
    ask: &FinishAsk,
    witness: &dyn Witness,
) -> Result<&'a Claim, Box<Finished>> {
    let own = own_hold(seen, task, &ask.proof, ask.token);
    let (Some(claim), Some(_)) = (&task.claim, own) else {
        return Err(Box::new(Finished::NotYours(task.clone().redacted())));
    };
    match claim_state(seen, task, witness) {
        Some(ClaimState::Lost { part }) => {
            Err(Box::new(Finished::ClaimLost { task: task.clone().redacted(), part }))
        }
        _ => Ok(claim),
    }
}

/// The hold by which the worker has this task, if it still has it.
pub(super) fn own_hold<'a>(
    seen: &'a Snapshot,
    task: &Task,
    proof: &Proof,
    token: Option<Token>,
) -> Option<&'a HoldSnapshot> {
    let claim = task.claim.as_ref()?;
    let resource = task.id.resource();
    seen.holds.iter().find(|seen| {
        seen.hold.want.resource == resource
            && seen.hold.grant == claim.grant
            && seen.hold.token == claim.token
            && proof.covers(seen)
            && token.is_none_or(|token| token == claim.token)
    })
}

/// Whether the same worker ended the same claim in the same way before.
fn is_repeated(task: &Task, ask: &FinishAsk) -> bool {
    let same_end = match ask.finish {
        Finish::Complete { .. } => task.status == Status::Completed,
        // It may have been approved since.
        Finish::Review { .. } => matches!(task.status, Status::Review | Status::Completed),
        Finish::Fail { .. } => task.status == Status::Failed,
        Finish::Snooze { .. } | Finish::Release => false,
    };
    let Some(claim) = task.finished_claim.as_ref().filter(|_| same_end) else { return false };
    let same_worker = match &ask.proof {
        Proof::Grant(grant) => *grant == claim.grant,
        Proof::Label(label) => task.finished_by.as_ref() == Some(label),
    };
    same_worker && ask.token.is_none_or(|token| token == claim.token)
}

fn verb_and_event(task: &Task, finish: &Finish) -> (Verb, EventKind) {
    match finish {
        Finish::Complete { .. } => (Verb::Complete, EventKind::Completed),
        Finish::Review { .. } => (Verb::Review, EventKind::SentToReview),
        Finish::Snooze { .. } => (Verb::Snooze, EventKind::Snoozed),
        Finish::Release => (Verb::Release, EventKind::HandedBack),
        Finish::Fail { reason, retry } => {
            let retry = *retry && task.attempts < task.max_attempts;
            let verb = if retry { Verb::FailRetry } else { Verb::FailFinally };
            let reason = shortened(reason, REASON_MAX).into_owned();
            (verb, EventKind::Failed { reason, retry })
        }
    }
}

fn finished(task: &Task, status: Status, finish: &Finish, wall: WallTime) -> Task {
    let mut task = Task { status, ..task.clone() };
    let (outcome, error) = outcome(finish);
    task.end_try(outcome, error, wall);
    let claim = task.claim.take();
    match finish {
        Finish::Complete { result } | Finish::Review { result } => {
            task.result = result.clone();
            task.error = None;
        }
        Finish::Fail { reason, .. } => {
            task.error = Some(shortened(reason, REASON_MAX).into_owned());
            if status == Status::Pending {
                task.not_before = Some(later(wall, back_off(task.attempts)));
            }
        }
        Finish::Snooze { pause } => {
            task.attempts = task.attempts.saturating_sub(1);
            task.not_before = Some(later(wall, *pause));
        }
        Finish::Release => task.attempts = task.attempts.saturating_sub(1),
    }
    // It came to an end by a worker that lived to tell.
    task.recoveries = 0;
    task.finished_at = status.is_final().then_some(wall);
    if status.is_final() || status == Status::Review {
        task.finished_by = claim.as_ref().map(|claim| claim.by.clone());
        task.finished_claim =
            claim.map(|claim| FinishedClaim { grant: claim.grant, token: claim.token });
    }
    task
}

/// How the try of a worker ends that says this, and why.
fn outcome(finish: &Finish) -> (TryOutcome, Option<&str>) {
    match finish {
        Finish::Complete { .. } => (TryOutcome::Completed, None),
        Finish::Fail { reason, .. } => (TryOutcome::Failed, Some(reason)),
        Finish::Review { .. } => (TryOutcome::Review, None),
        Finish::Snooze { .. } => (TryOutcome::Snoozed, None),
        Finish::Release => (TryOutcome::Released, None),
    }
}

pub(super) fn later(wall: WallTime, pause: Duration) -> WallTime {
    WallTime(wall.0.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)))
}

/// The pause before the next attempt, after so many.
pub(super) fn back_off(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    (BACK_OFF * 2_u32.pow(doublings)).min(BACK_OFF_MAX)
}

/// A runner keeps its section while there is something to do in it, then gives it up. It gives it
/// up too when it hands back the last task that it has there.
fn give_up_section(
    seen: &Snapshot,
    draft: &mut Draft<'_>,
    ask: &FinishAsk,
    task: &Task,
    claim: &Claim,
) -> bool {
    // Only a runner that says so knows what else its section has to offer.
    let Some((section, _)) = kept_section(claim).filter(|(_, kept)| ask.runner == Some(*kept))
    else {
        return false;
    };
    let more = seen.tasks.iter().any(|other| {
        other.id != task.id
            && other.section.as_deref() == Some(section.name())
            && (other.is_ready(seen.wall) || is_freed_by(other, task, &ask.finish))
    });
    if more && ask.finish != Finish::Release {
        return false;
    }
    end_kept_section(seen, draft, claim, &|id| *id == task.id)
}

/// Whether `other` only waited for `task`, which is now done.
fn is_freed_by(other: &Task, task: &Task, finish: &Finish) -> bool {
    matches!(finish, Finish::Complete { .. })
        && other.status == Status::Pending
        && other.unmet == 1
        && other.depends_on.contains(&task.id)
}

/// Notes that the worker began.
pub fn start(seen: &Snapshot, ask: &FinishAsk, witness: &dyn Witness) -> (Decision, Finished) {
    let Some(task) = seen.task(&ask.task) else { return (Decision::Nothing, Finished::NotFound) };
    if let Err(refused) = own_claim(seen, task, ask, witness) {
        return (Decision::Nothing, *refused);
    }
    let task = Task { started_at: Some(seen.wall), ..task.clone() };
    let mut draft = Draft::new(seen, witness);
    draft.write(Write::Task(Box::new(task.clone())));
    draft.require_durable();
    (draft.decide(None), Finished::Done { task, gave_up_section: false, repeated: false })
}
