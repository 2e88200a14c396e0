//! Giving up sections in which nothing is left to do.

use crate::decision::Decision;
use crate::event::EventKind;
use crate::rules::draft::Draft;
use crate::rules::tasks::parts::keeps;
use crate::snapshot::{HoldSnapshot, Pick, Scope, Snapshot, TaskScope};
use crate::task::{Claim, Status, Task};
use crate::{GrantId, Kind, Resource, Witness};

/// What must be seen to decide: what is being done, and whether each section has more to offer.
pub fn idle_look() -> Scope {
    let pick = Pick { section: None, labels: vec![], depth: 1 };
    Scope::Tasks(TaskScope { in_progress: true, pick: Some(pick), ..TaskScope::default() })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;
    use crate::hold::{Hold, Want};
    use crate::rules::tasks::{AddAsk, NewTask, add};
    use crate::{Holder, NoWitness, Token, WallTime, Write};
    use std::time::Duration;

    const RUNNER: u128 = 7;

    fn task(section: &str, status: Status) -> Task {
        let task = NewTask {
            section: Some(section.to_owned()),
            ..NewTask::new("t".parse().unwrap(), "T")
        };
        let ask = AddAsk { tasks: vec![task], by: "alice".to_owned() };
        let (decision, _) = add(&Snapshot::empty(), &ask);
        let Some(Write::Task(task)) = decision.writes().first() else { panic!("nothing written") };
        let claim = (status == Status::InProgress).then(|| Claim {
            by: "alice".to_owned(),
            grant: GrantId::from_bits(1),
            token: Token(1),
            parts: vec![Part {
                resource: Resource::new(Kind::Section, section).unwrap(),
                grant: GrantId::from_bits(RUNNER),
                token: Token(1),
            }],
        });
        Task { status, claim, ..(**task).clone() }
    }

    fn left(task: Task) -> Vec<Resource> {
        let hold = Hold {
            want: Want::exclusive(Resource::new(Kind::Section, "Backend").unwrap()),
            grant: GrantId::from_bits(RUNNER),
            token: Token(1),
            holder: Holder::chosen("alice").unwrap(),
            operation: None,
            ttl: Duration::from_secs(60),
            slot: None,
        };
        let hold = HoldSnapshot {
            hold,
            left: Duration::from_secs(60),
            held_for: Duration::ZERO,
            acquired_at: WallTime(0),
            renewed_at: WallTime(0),
            expires_at: WallTime(60_000),
            stale: None,
        };
        let seen = Snapshot { holds: vec![hold], tasks: vec![task], ..Snapshot::empty() };
        let (decision, left) = leave_idle_sections(&seen, GrantId::from_bits(RUNNER), &NoWitness);
        assert_eq!(decision.writes().is_empty(), left.is_empty());
        left
    }

    #[test]
    fn a_section_is_kept_while_there_is_something_to_do_in_it() {
        assert!(left(task("Backend", Status::Pending)).is_empty());
        assert!(left(task("Backend", Status::InProgress)).is_empty());
        assert_eq!(left(task("Backend", Status::Cancelled)).len(), 1);
        assert_eq!(left(task("Frontend", Status::Pending)).len(), 1);
    }
}
