//! What a worker says of many tasks at once.

use super::finish::{FinishAsk, Finished, finish};
use crate::Witness;
use crate::decision::{Change, Decision, Write};
use crate::snapshot::{Pick, Scope, Snapshot, TaskScope};

/// What must be seen to decide: the tasks, those that wait for them, and what else their sections
/// have to offer.
pub fn finish_all_look(asks: &[FinishAsk]) -> Scope {
    let keeps_section = asks.iter().any(|ask| ask.runner.is_some());
    let pick = Pick { section: None, labels: vec![], depth: 1 };
    Scope::Tasks(TaskScope {
        ids: asks.iter().map(|ask| ask.task.clone()).collect(),
        dependents: true,
        in_progress: keeps_section,
        pick: keeps_section.then_some(pick),
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
            Decision::NeedAll => return (Decision::NeedAll, answers),
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
    seen.next += change.events.len() as u64;
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
                seen.waiters.retain(|seen| seen.waiter.ticket != waiter.ticket);
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
            | Write::Answer(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::{Hold, Want};
    use crate::rules::release::Proof;
    use crate::rules::tasks::{AddAsk, Finish, NewTask, add};
    use crate::snapshot::HoldSnapshot;
    use crate::task::{Claim, Status, Task, TaskId};
    use crate::{GrantId, Holder, NoWitness, Token, WallTime};
    use std::time::Duration;

    fn id(text: &str) -> TaskId {
        text.parse().unwrap()
    }

    fn grant(task: &TaskId) -> GrantId {
        GrantId::from_bits(task.as_str().bytes().map(u128::from).sum())
    }

    /// Tasks `a` and `b`, both claimed, and `c` that depends on both.
    fn seen() -> Snapshot {
        let new = |name: &str| NewTask::new(id(name), name);
        let c = NewTask { depends_on: vec![id("a"), id("b")], ..new("c") };
        let ask = AddAsk { tasks: vec![new("a"), new("b"), c], by: "me".into() };
        let (decision, _) = add(&Snapshot::empty(), &ask);
        let mut seen = Snapshot::empty();
        for write in decision.writes() {
            let Write::Task(task) = write else { panic!("{write:?}") };
            seen.tasks.push((**task).clone());
        }
        for task in &mut seen.tasks[..2] {
            let (grant, token) = (grant(&task.id), Token(task.age));
            task.status = Status::InProgress;
            task.claim = Some(Claim { by: "w".into(), grant, token, parts: vec![] });
            let hold = Hold {
                want: Want::exclusive(task.id.resource()),
                grant,
                token,
                holder: Holder::chosen("w").unwrap(),
                operation: None,
                ttl: Duration::from_secs(60),
                slot: None,
            };
            seen.holds.push(HoldSnapshot {
                left: hold.ttl,
                hold,
                held_for: Duration::ZERO,
                acquired_at: WallTime(0),
                renewed_at: WallTime(0),
                expires_at: WallTime(0),
                stale: None,
            });
        }
        seen
    }

    fn complete(task: &str) -> FinishAsk {
        let task = id(task);
        let proof = Proof::Grant(grant(&task));
        let finish = Finish::Complete { result: None };
        FinishAsk { task, proof, token: None, runner: None, finish }
    }

    /// How each task is written last.
    fn last<'a>(decision: &'a Decision, task: &str) -> Option<&'a Task> {
        decision.writes().iter().rev().find_map(|write| match write {
            Write::Task(written) if written.id == id(task) => Some(&**written),
            _ => None,
        })
    }

    #[test]
    fn one_that_waits_for_two_of_them_waits_for_neither() {
        let (decision, answers) = finish_all(&seen(), &[complete("a"), complete("b")], &NoWitness);
        assert!(answers.iter().all(|answer| matches!(answer, Finished::Done { .. })));
        assert_eq!(last(&decision, "a").unwrap().status, Status::Completed);
        assert_eq!(last(&decision, "b").unwrap().status, Status::Completed);
        assert_eq!(last(&decision, "c").unwrap().unmet, 0);
        let Decision::Write(change) = decision else { panic!("nothing is written") };
        assert!(change.durable);
        assert_eq!(change.events.len(), 2);
    }

    #[test]
    fn one_that_is_refused_does_not_stop_the_others() {
        let asks = [complete("c"), complete("none"), complete("a"), complete("a")];
        let (decision, answers) = finish_all(&seen(), &asks, &NoWitness);
        assert!(matches!(answers[0], Finished::NotYours(_)));
        assert_eq!(answers[1], Finished::NotFound);
        assert!(matches!(answers[2], Finished::Done { .. }));
        assert!(matches!(answers[3], Finished::Done { repeated: true, .. }), "the same again");
        assert!(last(&decision, "b").is_none());
        assert_eq!(last(&decision, "c").unwrap().unmet, 1);
    }

    #[test]
    fn nothing_asked_is_nothing_done() {
        assert_eq!(finish_all(&seen(), &[], &NoWitness), (Decision::Nothing, vec![]));
    }
}
