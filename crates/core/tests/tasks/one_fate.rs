//! One claim, one fate: when a part of it is lost, all of it is.

use crate::support::World;
use crate::support::tasks::*;
use std::time::Duration;
use tenure_core::Status;
use tenure_core::rules::tasks::{ClaimAsk, ClaimState, Finish, Finished, Heartbeat};
use tenure_core::rules::tasks::{belongs_to_lost_claim, why_not};

/// How a part is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// An operator ends it.
    Broken,
    /// It lapses, and another takes it for a moment.
    Taken,
}

const PARTS: [&str; 3] = ["task:a", "path:a/**", "section:S"];

/// A world in which `w` has `a` and lost a part of it.
fn lost(part: &str, loss: Loss, keeps_section: bool) -> World {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    let runner = keeps_section.then(|| runner("w"));
    let ask = ClaimAsk { task: Some(id("a")), runner, ..claim_ask("w") };
    world.try_claim(ask).unwrap();
    assert_eq!(world.state("a"), Some(ClaimState::Held));
    assert_eq!(world.held(), ["path:a/**", "section:S", "task:a"]);
    match loss {
        Loss::Broken => world.break_first(part),
        Loss::Taken => {
            world.pass(SECTION_TTL + TTL);
            assert!(world.take_and_release(part), "{part}");
        }
    }
    world
}

fn every_loss(test: impl Fn(World, &str)) {
    for part in PARTS {
        for loss in [Loss::Broken, Loss::Taken] {
            for keeps_section in [true, false] {
                test(lost(part, loss, keeps_section), &format!("{part} {loss:?} {keeps_section}"));
            }
        }
    }
}

#[test]
fn nothing_that_the_worker_says_counts_any_more() {
    let ends = [
        complete(),
        Finish::Fail { reason: "x".into(), retry: true },
        Finish::Fail { reason: "x".into(), retry: false },
        Finish::Review { result: None },
        Finish::Snooze { pause: Duration::from_secs(1) },
        Finish::Release,
    ];
    every_loss(|mut world, what| {
        let before = (world.tasks.clone(), world.held());
        for end in &ends {
            let answer = world.finish("w", "a", end.clone());
            let refused = matches!(answer, Finished::ClaimLost { .. } | Finished::NotYours(_));
            assert!(refused, "{what} {end:?}: {answer:?}");
        }
        let started = world.start("w", "a");
        assert!(!matches!(started, Finished::Done { .. }), "{what}: {started:?}");
        let beat = world.heartbeat("w", "a");
        assert!(!matches!(beat, Heartbeat::Renewed { .. }), "{what}: {beat:?}");
        assert_eq!((world.tasks.clone(), world.held()), before, "{what}: nothing changes");
    });
}

#[test]
fn the_rest_is_freed_and_the_task_taken_back() {
    every_loss(|mut world, what| {
        let taken_back = world.recover();
        assert_eq!(taken_back.len(), 1, "{what}");
        assert_eq!(world.held(), [""; 0], "{what}");
        let task = world.task("a");
        assert_eq!(
            (task.status, task.attempts, task.recoveries),
            (Status::Pending, 1, 1),
            "{what}"
        );
        assert!(task.error.as_ref().unwrap().contains('w'), "{what}");
        assert_eq!(world.recover(), [], "{what}: once");
        world.claim("v", "a");
        let late = world.finish("w", "a", complete());
        assert!(matches!(late, Finished::NotYours(_)), "{what}: {late:?}");
        let done = world.finish("v", "a", complete());
        assert!(matches!(done, Finished::Done { repeated: false, .. }), "{what}: {done:?}");
    });
}

#[test]
fn its_tokens_are_refused_and_its_state_is_told() {
    every_loss(|world, what| {
        let seen = world.seen();
        for hold in &seen.holds {
            let (resource, token) = (&hold.hold.want.resource, hold.hold.token);
            assert!(
                belongs_to_lost_claim(&seen, resource, token, &world.dead),
                "{what} {resource}"
            );
        }
        let why = why_not(&seen, world.task("a"), &world.dead);
        assert!(why[0].starts_with("its worker w lost"), "{what}: {why:?}");
    });
}

#[test]
fn a_lapsed_claim_counts_as_long_as_no_part_went_to_another() {
    for keeps_section in [true, false] {
        let mut world = World::with(vec![in_section("a")]);
        let runner = keeps_section.then(|| runner("w"));
        world.try_claim(ClaimAsk { task: Some(id("a")), runner, ..claim_ask("w") }).unwrap();
        world.pass(SECTION_TTL + TTL);
        assert!(matches!(world.state("a"), Some(ClaimState::Lapsed { .. })));
        assert!(matches!(world.heartbeat("w", "a"), Heartbeat::ClaimLost { .. }));
        assert!(matches!(world.start("w", "a"), Finished::Done { .. }));
        assert!(matches!(world.finish("w", "a", complete()), Finished::Done { .. }));
        assert_eq!(world.held(), [""; 0]);
    }
}

#[test]
fn a_lost_section_ends_all_claims_of_its_runner() {
    let mut world = World::with(vec![in_section("a"), in_section("b"), plain("c")]);
    for task in ["a", "b", "c"] {
        world.claim("w", task);
    }
    world.break_first("section:S");
    assert!(matches!(world.finish("w", "a", complete()), Finished::ClaimLost { .. }));
    assert_eq!(world.recover().len(), 2);
    assert_eq!(world.held(), ["task:c"]);
    assert!(matches!(world.finish("w", "c", complete()), Finished::Done { .. }));
}

#[test]
fn a_section_taken_again_by_its_runner_does_not_mend_a_claim() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    world.claim("w", "a");
    world.break_first("section:S");
    world.claim("w", "b");
    assert!(matches!(world.finish("w", "a", complete()), Finished::ClaimLost { .. }));
    assert_eq!(world.recover().len(), 1);
    assert!(matches!(world.finish("w", "b", complete()), Finished::Done { .. }));
}

#[test]
fn a_heartbeat_renews_all_parts_and_a_claim_renews_the_section() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    world.claim("w", "a");
    for _ in 0..30 {
        world.pass(TTL / 2);
        assert!(matches!(world.heartbeat("w", "a"), Heartbeat::Renewed { section: true, .. }));
    }
    assert_eq!(world.state("a"), Some(ClaimState::Held));
    world.finish("w", "a", complete());
    world.pass(SECTION_TTL - Duration::from_secs(1));
    world.claim("w", "b");
    world.pass(TTL - Duration::from_secs(1));
    assert_eq!(world.state("b"), Some(ClaimState::Held), "the section lasts as long as the task");
}

#[test]
fn a_task_in_progress_stays_in_its_section() {
    use tenure_core::rules::tasks::{EditAsk, EditError, ManualChange, TaskChange};
    let mut world = World::with(vec![in_section("a")]);
    let change = |section: &str| {
        let change = TaskChange { section: Some(section.into()), ..TaskChange::default() };
        EditAsk { task: id("a"), verb: ManualChange::Update(Box::new(change)), by: "me".into() }
    };
    world.claim("w", "a");
    assert!(matches!(world.act(&change("T")), Err(EditError::InProgress { .. })));
    assert!(world.act(&change("S")).is_ok());
    world.finish("w", "a", Finish::Release);
    assert_eq!(world.act(&change("T")).unwrap().section.as_deref(), Some("T"));
}
