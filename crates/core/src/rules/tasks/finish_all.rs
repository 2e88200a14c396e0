//! What a worker says of many tasks at once.

use super::finish::{FinishAsk, Finished, finish};
use crate::Witness;
use crate::decision::{Change, Decision, Write};
use crate::snapshot::{Scope, Snapshot, TaskScope};

/// What must be seen to decide: the tasks, those that wait for them, and what else their sections
/// have to offer.
pub fn finish_all_look(asks: &[FinishAsk]) -> Scope {
    Scope::Tasks(TaskScope {
        ids: asks.iter().map(|ask| ask.task.clone()).collect(),
        dependents: true,
        beside: asks.iter().any(|ask| ask.runner.is_some()),
        ..TaskScope::default()
    })
}

/// Ends each of them as [`finish`] would, one after the other, in one change. One that is not the
/// worker's any more is refused by itself and does not stop the others. The answers are in the
/// order of what was asked.
pub fn finish_all(
    seen: &Snapshot,
    asks: &[FinishAsk],
    witness: &dyn Witness,
) -> (Decision, Vec<Finished>) {
    let mut now = seen.clone();
    let mut all = Change::default();
    let mut answers = Vec::with_capacity(asks.len());
    for ask in asks {
        let (decision, answer) = finish(&now, ask, witness);
        answers.push(answer);
        match decision {
            Decision::Nothing => {}
            need @ (Decision::NeedAll | Decision::Need(_)) => return (need, answers),
            Decision::Write(change) => {
                play(&mut now, &change);
                all.writes.extend(change.writes);
                all.events.extend(change.events);
                all.wake.extend(change.wake);
                all.durable |= change.durable;
            }
        }
    }
    all.wake.sort();
    all.wake.dedup();
    (all.decide(), answers)
}

/// Shows what a change leaves behind, as far as the next finish looks at it.
fn play(seen: &mut Snapshot, change: &Change) {
    for write in &change.writes {
        match write {
            Write::Task(after) => {
                if let Some(task) = seen.tasks.iter_mut().find(|task| task.id == after.id) {
                    *task = (**after).clone();
                }
            }
            Write::DropHold { resource, grant } => seen
                .holds
                .retain(|seen| seen.hold.grant != *grant || seen.hold.want.resource != *resource),
            Write::DropWait(waiter) => {
                seen.waiters.retain(|seen| seen.waiter.grant != waiter.grant);
            }
            // A finish makes none of these.
            Write::Hold(_)
            | Write::Extend { .. }
            | Write::Wait(_)
            | Write::KeepPlace(_)
            | Write::Woken(_)
            | Write::DropTask(_)
            | Write::Section(_)
            | Write::DropSection(_)
            | Write::PutRecord(_)
            | Write::DropRecords(_)
            | Write::Answer(_) => {}
        }
    }
}
