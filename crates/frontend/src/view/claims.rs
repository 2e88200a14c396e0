//! Claims of tasks, judged: until when each lasts, and why it no longer counts.

use super::{Task, stale_reason};
use tenure::core::rules::tasks::{ClaimState, JudgedClaims};
use tenure::core::{self, HoldSnapshot, Snapshot, Witness};

/// The claims of the tasks in a snapshot.
pub struct Claims<'a> {
    judged: JudgedClaims<'a>,
    witness: &'a dyn Witness,
}

impl<'a> Claims<'a> {
    /// Judges the claims of the tasks that the snapshot shows with their holds.
    pub fn of(seen: &'a Snapshot, witness: &'a dyn Witness) -> Claims<'a> {
        Claims { judged: JudgedClaims::of(seen, witness), witness }
    }

    /// The hold by which the worker of this task has it.
    pub fn hold(&self, task: &core::Task) -> Option<&'a HoldSnapshot> {
        self.judged.hold(task, &task.id.resource())
    }

    /// Why the claim of this task no longer counts; `None` if it does, and for a task without a claim.
    pub fn stale_reason(&self, task: &core::Task) -> Option<String> {
        self.reason(task, self.judged.state(task)?)
    }

    /// The task as JSON.
    pub fn task(&self, task: &core::Task) -> Task {
        let expires_at = self.hold(task).and_then(HoldSnapshot::limit);
        Task { stale_reason: self.stale_reason(task), ..Task::new(task, expires_at) }
    }

    /// The tasks in progress whose claim no longer counts, each with the reason.
    pub fn lost(&self) -> Vec<(&'a core::Task, String)> {
        let lost = self.judged.lost().into_iter();
        lost.filter_map(|(task, state)| Some((task, self.reason(task, state)?))).collect()
    }

    fn reason(&self, task: &core::Task, state: ClaimState) -> Option<String> {
        let of_hold = |seen: &HoldSnapshot| stale_reason(seen, self.witness);
        match state {
            ClaimState::Held => None,
            ClaimState::Lost { part } if part == task.id.resource() => {
                Some("claim lost".to_owned())
            }
            ClaimState::Lost { part } => Some(format!("claim lost: {part} is no longer held")),
            ClaimState::Lapsed { part } => {
                // Usually all parts lapse together: then the lease of the task itself is named.
                let own = self.hold(task).and_then(of_hold);
                own.or_else(|| {
                    let reason = of_hold(self.judged.hold(task, &part)?)?;
                    Some(format!("{part}: {reason}"))
                })
            }
        }
    }
}
