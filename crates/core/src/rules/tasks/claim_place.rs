//! The place in a queue in which a claim waits for its task: served first come, first served, and refused where
//! the wait would never end.

use super::claim::{ClaimAsk, Claimed, NoClaim};
use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::hold::{Waiter, Want};
use crate::rules::acquire::{Ask, kept, waits_scope};
use crate::rules::cycle;
use crate::rules::draft::Draft;
use crate::snapshot::Snapshot;
use crate::task::Task;
use crate::{Evidence, Holder, Witness};
use serde::{Deserialize, Serialize};

/// What a request for a named task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWait {
    /// The task, and its files if they are held.
    pub wants: Vec<Want>,
    /// The title of the task.
    pub operation: String,
}

impl ClaimAsk {
    /// The place that is asked for, as a request for the same resources.
    pub(super) fn as_ask(&self) -> Option<Ask> {
        let (wait, grant) = (self.place_for.as_ref()?, self.place()?);
        Some(Ask {
            grant,
            wants: wait.wants.clone(),
            holder: self.holder.clone(),
            presence: self.presence.clone(),
            operation: Some(wait.operation.clone()),
            ttl: self.ttl,
            keeps: self.owner.grants.iter().copied().filter(|kept| *kept != grant).collect(),
            owner: self.owner.clone(),
            queue: self.queue,
        })
    }
}

/// Gives the asker a place in the queue, unless the wait would never end. The next claim finds out whether
/// the task became free meanwhile.
pub(super) fn enter_queue(
    seen: &Snapshot,
    ask: &Ask,
    witness: &dyn Witness,
) -> (Decision, Result<Vec<Claimed>, NoClaim>) {
    let none = NoClaim::NotReady { why: vec![] };
    if seen.waiters.iter().any(|seen| seen.waiter.grant == ask.grant) {
        return (Decision::Nothing, Err(none));
    }
    if !seen.whole && !seen.shows_waits {
        return (Decision::Need(waits_scope(ask)), Err(none));
    }
    let mut draft = Draft::new(seen, witness);
    if let Some(cycle) = cycle::closed_by(seen, ask, witness) {
        for want in ask.wants.iter().take(1) {
            draft.event(want, &ask.holder.label, None, EventKind::Deadlock);
        }
        return (draft.decide(None), Err(NoClaim::Deadlock(cycle)));
    }
    let waiter = Waiter {
        grant: ask.grant,
        ticket: seen.next,
        wants: ask.wants.clone(),
        holder: waiting_holder(&ask.holder, ask.presence.as_ref()),
        operation: ask.operation.clone(),
        keeps: kept(seen, ask),
        ttl: ask.queue.unwrap_or_default(),
    };
    enter(&mut draft, waiter);
    (draft.decide(Some(ask.grant)), Err(none))
}

fn waiting_holder(holder: &Holder, presence: Option<&Evidence>) -> Holder {
    match presence {
        Some(evidence) => holder.clone().with_evidence(evidence.clone()),
        None => holder.clone(),
    }
}

fn enter(draft: &mut Draft<'_>, waiter: Waiter) {
    for want in &waiter.wants {
        draft.event(want, &waiter.holder.label, None, EventKind::Waiting);
    }
    draft.write(Write::Wait(waiter));
}

/// Gives the asker a place in the queue for what it waits for, or keeps the place that it has. There is none
/// for a task whose section is held: the runner that keeps it goes on with the tasks in it. Answers with what
/// to queue for where it must first be ruled out that the wait never ends.
pub(super) fn queue_up(
    draft: &mut Draft<'_>,
    seen: &Snapshot,
    ask: &ClaimAsk,
    task: &Task,
    wants: Option<Vec<Want>>,
) -> Option<TaskWait> {
    let (grant, ttl) = (ask.place()?, ask.queue?);
    if let Some(place) = seen.waiters.iter().find(|seen| seen.waiter.grant == grant) {
        let holder = waiting_holder(&ask.holder, ask.presence.as_ref());
        let waiter = Waiter { holder, ttl, ..place.waiter.clone() };
        draft.write(Write::KeepPlace(waiter));
        return None;
    }
    let (wants, operation) = (wants?, task.title.clone());
    // An asker that owns nothing cannot be waited for.
    if !ask.owner.is_nobody() {
        return Some(TaskWait { wants, operation });
    }
    enter(
        draft,
        Waiter {
            grant,
            ticket: seen.next,
            wants,
            holder: waiting_holder(&ask.holder, ask.presence.as_ref()),
            operation: Some(operation),
            keeps: vec![],
            ttl,
        },
    );
    None
}
