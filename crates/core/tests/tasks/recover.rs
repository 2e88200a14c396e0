//! Taking back tasks whose workers died, fell silent or lost a part of their claim.

use crate::support::tasks::*;
use crate::support::{World, ask, exclusive};
use std::time::Duration;
use tenure_core::rules::tasks::{ClaimAsk, Finish, NewTask};
use tenure_core::{Reason, Status};

#[test]
fn a_task_is_tried_as_often_as_it_allows() {
    // How often it may be tried, how often it may be taken back, how often it is handed out.
    for (max_attempts, recoveries_max, tries) in
        [(1, 3, 1), (2, 3, 2), (3, 3, 3), (9, 3, 3), (9, 1, 1), (1, 1, 1), (5, 9, 5)]
    {
        let mut world = World::with(vec![NewTask { max_attempts, ..plain("a") }]);
        world.recoveries_max = recoveries_max;
        let mut handed_out = 0;
        while world.status("a") == Status::Pending && handed_out < 20 {
            world.claim("w", "a");
            handed_out += 1;
            world.pass(TTL);
            assert_eq!(world.recover().len(), 1);
        }
        let case = format!("{max_attempts} {recoveries_max}");
        assert_eq!((world.status("a"), handed_out), (Status::Blocked, tries), "{case}");
        assert_eq!(world.task("a").attempts, handed_out, "{case}");
    }
}

#[test]
fn failures_and_silence_count_together() {
    let mut world = World::with(vec![NewTask { max_attempts: 2, ..plain("a") }]);
    world.claim("w", "a");
    world.finish("w", "a", Finish::Fail { reason: "x".into(), retry: true });
    world.pass(TTL * 60);
    world.claim("w", "a");
    world.pass(TTL);
    world.recover();
    assert_eq!(world.status("a"), Status::Blocked);
    let error = world.task("a").error.clone().unwrap();
    assert_eq!(error, "its worker w died or fell silent, and that was attempt 2 of 2");
}

#[test]
fn a_claim_says_how_its_task_became_free() {
    let dead = |worker: &str| ClaimAsk { holder: holder(worker, Some(7)), ..claim_ask(worker) };
    let reason = |world: &mut World| world.try_claim(claim_ask("v")).unwrap()[0].reason;
    // The former worker died or fell silent; its task is taken back, as by each client that claims.
    let mut world = World::with(vec![plain("a")]);
    assert_eq!(world.try_claim(dead("w")).unwrap()[0].reason, Reason::AcquiredNew);
    world.kill(7);
    assert_eq!(world.recover().len(), 1);
    assert_eq!(reason(&mut world), Reason::ClaimedDead);
    world.pass(TTL);
    assert_eq!(world.recover().len(), 1);
    assert_eq!(reason(&mut world), Reason::ClaimedExpired);
    world.finish("v", "a", Finish::Release);
    assert_eq!(reason(&mut world), Reason::AcquiredNew, "its last worker gave it back");
    // Another's file or section was in the way, and no longer counted.
    for held in ["path:a/x", "section:S"] {
        let mut world = World::with(vec![in_section("a")]);
        world.must_grant(&ask(9, &[exclusive(held)]));
        world.kill(9);
        assert_eq!(reason(&mut world), Reason::ClaimedDead, "{held}");
    }
}

#[test]
fn what_is_held_is_left_alone() {
    let mut world = World::with(vec![in_section("a"), plain("b")]);
    world.claim("w", "a");
    world.pass(TTL - Duration::from_millis(1));
    let before = (world.tasks.clone(), world.held());
    assert_eq!(world.recover(), []);
    assert_eq!((world.tasks.clone(), world.held()), before);
}

/// How a claim ends without a word of its worker.
#[derive(Clone, Copy, Debug)]
enum End {
    Lapses,
    Dies,
    TaskIsBroken,
    FileIsBroken,
    SectionIsBroken,
}

#[test]
fn the_reason_is_told_and_all_that_was_held_ends() {
    for keeps in [true, false] {
        for (end, reason, events) in [
            (
                End::Lapses,
                "its worker w died or fell silent",
                ["lapsed task:a w", "lapsed path:a/** w", "lapsed section:S w"].as_slice(),
            ),
            (
                End::Dies,
                "its worker w died or fell silent",
                ["died task:a w", "died path:a/** w", "died section:S w"].as_slice(),
            ),
            (
                End::TaskIsBroken,
                "the claim of its worker w was ended",
                ["released path:a/** w", "released section:S w"].as_slice(),
            ),
            (
                End::FileIsBroken,
                "its worker w lost path:a/**",
                ["released task:a w", "released section:S w"].as_slice(),
            ),
            (
                End::SectionIsBroken,
                "its worker w lost section:S",
                ["released task:a w", "released path:a/** w"].as_slice(),
            ),
        ] {
            let mut world = World::with(vec![in_section("a"), plain("b")]);
            let (runner, holder) = (keeps.then(|| runner("w")), holder("w", Some(7)));
            let ask = ClaimAsk { task: Some(id("a")), runner, holder, ..claim_ask("w") };
            world.try_claim(ask).unwrap();
            world.start("w", "a");
            match end {
                End::Lapses => world.pass(SECTION_TTL),
                End::Dies => world.kill(7),
                End::TaskIsBroken => world.break_first("task:a"),
                End::FileIsBroken => world.break_first("path:a/**"),
                End::SectionIsBroken => world.break_first("section:S"),
            }
            let case = format!("{end:?} {keeps}");
            world.news();
            let recovered = world.recover();
            let [task] = recovered.as_slice() else { panic!("{case}: {recovered:?}") };
            assert_eq!(task, world.task("a"), "{case}");
            assert_eq!((task.status, task.attempts), (Status::Pending, 1), "{case}");
            assert_eq!((task.recoveries, task.error.as_deref()), (1, Some(reason)), "{case}");
            assert!(world.last_was_durable, "{case}");
            let mut news = world.news();
            news.sort();
            let mut expected: Vec<&str> = events.to_vec();
            expected.push("recovered task:a w");
            expected.sort_unstable();
            assert_eq!(news, expected, "{case}");
            assert_eq!(world.held(), [""; 0], "{case}");
        }
    }
}

#[test]
fn a_task_that_is_taken_back_too_often_is_set_aside() {
    let mut world = World::with(vec![NewTask { max_attempts: 9, ..plain("a") }]);
    world.recoveries_max = 2;
    for (status, error) in [
        (Status::Pending, "its worker w died or fell silent"),
        (Status::Blocked, "it was taken back 2 times; at last its worker w died or fell silent"),
    ] {
        world.claim("w", "a");
        world.pass(TTL);
        world.news();
        world.recover();
        let task = world.task("a");
        assert_eq!((task.status, task.error.as_deref()), (status, Some(error)));
        let word = if status == Status::Pending { "recovered" } else { "set_aside" };
        assert_eq!(world.news(), ["lapsed task:a w".to_owned(), format!("{word} task:a w")]);
    }
}

#[test]
fn a_task_in_progress_without_a_claim_is_taken_back() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let mut seen = world.seen();
    seen.tasks[0].claim = None;
    seen.holds.clear();
    let (decision, recovered) = tenure_core::rules::tasks::recover(&seen, 3, None, &world.dead);
    assert_eq!((recovered.len(), recovered[0].status), (1, Status::Pending));
    assert_eq!(decision.writes().len(), 1);
}

#[test]
fn the_section_of_several_claims_ends_with_the_last_of_them() {
    for (broken, held) in [
        (&["task:a"][..], &["path:b/**", "section:S", "task:b"][..]),
        (&["task:a", "path:b/**"], &[]),
        (&["section:S"], &[]),
    ] {
        let mut world = World::with(vec![in_section("a"), in_section("b"), plain("c")]);
        world.claim("w", "a");
        world.claim("w", "b");
        broken.iter().for_each(|name| world.break_first(name));
        world.recover();
        assert_eq!(world.held(), held, "{broken:?}");
    }
}

#[test]
fn waiters_are_woken_when_a_claim_is_taken_back() {
    let mut world = World::with(vec![in_section("a")]);
    world.claim("w", "a");
    let waiting = world.queue_for("path:a/x");
    world.pass(TTL);
    world.recover();
    assert_eq!(world.last_woken, [waiting]);
}
