//! A finish that is said twice.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::act::FinishTask;
use tenure_core::rules::tasks::{EditAsk, Finish, FinishAsk, Finished, ManualChange};
use tenure_core::{GrantId, Proof, Status, Token};

#[test]
fn the_same_worker_may_say_the_same_again() {
    for (first, status) in
        [(complete(), Status::Completed), (fail(false), Status::Failed), (review(), Status::Review)]
    {
        let mut world = World::with(vec![plain("a")]);
        let claimed = world.claim("w", "a");
        assert!(matches!(
            world.finish("w", "a", first.clone()),
            Finished::Done { repeated: false, .. }
        ));
        assert_eq!(world.status("a"), status);
        assert_eq!(world.task("a").finished_by.as_deref(), Some("w"));
        let before = world.tasks.clone();
        let again = |proof: Proof, token: Option<Token>| FinishTask {
            ask: FinishAsk { task: id("a"), proof, token, runner: None, finish: first.clone() },
            section: None,
        };
        let (label, grant) = (Proof::Label("w".into()), Proof::Grant(claimed.grant));
        for (proof, token, counts) in [
            (label.clone(), None, true),
            (label.clone(), Some(claimed.token), true),
            (label, Some(Token(claimed.token.0 + 1)), false),
            (grant, None, true),
            (Proof::Label("v".into()), None, false),
            (Proof::Grant(GrantId::random()), None, false),
        ] {
            let answer = world.act(&again(proof.clone(), token));
            let repeated = matches!(answer, Finished::Done { repeated: true, .. });
            assert_eq!(repeated, counts, "{status} {token:?}: {answer:?}");
            assert_eq!(world.tasks, before);
        }
    }
}

#[test]
fn something_else_than_before_is_refused() {
    for (first, second) in
        [(complete(), fail(false)), (fail(false), complete()), (complete(), Finish::Release)]
    {
        let mut world = World::with(vec![plain("a")]);
        world.claim("w", "a");
        world.finish("w", "a", first);
        assert!(matches!(world.finish("w", "a", second), Finished::NotYours(_)));
    }
}

#[test]
fn who_finished_a_task_is_kept_until_it_is_to_be_done_again() {
    let mut world = World::with(vec![plain("a"), plain("b")]);
    let by_hand =
        |task: &str, verb: ManualChange| EditAsk { task: id(task), verb, by: "boss".into() };
    world.claim("w", "a");
    world.finish("w", "a", review());
    let rejected = ManualChange::Reject { feedback: "no".into() };
    let rejected = world.act(&by_hand("a", rejected)).unwrap();
    assert_eq!((rejected.finished_by, rejected.finished_claim), (None, None));
    world.claim("v", "a");
    world.finish("v", "a", review());
    let approved = world.act(&by_hand("a", ManualChange::Approve)).unwrap();
    assert_eq!(approved.finished_by.as_deref(), Some("v"));
    assert!(matches!(world.finish("v", "a", review()), Finished::Done { repeated: true, .. }));
    let cancelled = world.act(&by_hand("b", ManualChange::Cancel)).unwrap();
    assert_eq!(cancelled.finished_by.as_deref(), Some("boss"));
    let retried = world.act(&by_hand("b", ManualChange::Retry)).unwrap();
    assert_eq!(retried.finished_by, None);
}
