//! Finishing many tasks at once.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::act::FinishTasks;
use tenure_core::rules::tasks::{Finish, FinishAsk, Finished, NewTask};
use tenure_core::{GrantId, Status};

fn asks(worker: &str, keeps: bool, tasks: &[(&str, Finish)]) -> FinishTasks {
    let ask = |(task, finish): &(&str, Finish)| FinishAsk {
        runner: keeps.then(|| runner(worker)),
        ..finish_ask(worker, task, finish.clone())
    };
    FinishTasks { asks: tasks.iter().map(ask).collect() }
}

fn claim_all(world: &mut World, tasks: &[&str]) {
    for task in tasks {
        world.claim("w", task);
    }
}

#[test]
fn many_at_once_come_to_the_same_as_one_after_the_other() {
    let snooze = Finish::Snooze { pause: TTL };
    let lists: Vec<Vec<(&str, Finish)>> = vec![
        vec![],
        vec![("a", complete())],
        vec![("a", complete()), ("b", complete()), ("c", complete())],
        vec![("c", fail(true)), ("a", Finish::Release), ("b", snooze)],
        vec![("a", complete()), ("none", complete()), ("b", review()), ("a", complete())],
        vec![("other", complete()), ("b", complete()), ("waits", complete()), ("a", fail(false))],
    ];
    for keeps in [true, false] {
        for list in &lists {
            let mut world = World::with(vec![
                in_section("a"),
                in_section("b"),
                plain("c"),
                after("waits", &["a", "b"]),
                NewTask { section: Some("S".into()), ..after("more", &["a", "b"]) },
                plain("other"),
            ]);
            claim_all(&mut world, &["a", "b", "c"]);
            world.claim("v", "other");
            let mut single = world.clone();
            let all = asks("w", keeps, list);
            let answers = world.act(&all);
            let expected: Vec<Finished> =
                all.asks.iter().map(|ask| single.finish_by(ask.clone())).collect();
            assert_eq!(answers, expected, "{list:?} {keeps}");
            assert_eq!(world.tasks, single.tasks, "{list:?} {keeps}");
            assert_eq!(world.held(), single.held(), "{list:?} {keeps}");
            let wrote =
                answers.iter().any(|one| matches!(one, Finished::Done { repeated: false, .. }));
            assert_eq!(world.last_was_durable, wrote, "{list:?} {keeps}");
            assert_eq!(world.events.len(), single.events.len(), "{list:?} {keeps}");
        }
    }
}

#[test]
fn one_that_waits_for_two_of_them_may_begin() {
    let mut world = World::with(vec![plain("a"), plain("b"), after("c", &["a", "b"])]);
    claim_all(&mut world, &["a", "b"]);
    let answers = world.act(&asks("w", false, &[("a", complete()), ("b", complete())]));
    assert!(answers.iter().all(|answer| matches!(answer, Finished::Done { repeated: false, .. })));
    assert_eq!(world.task("c").unmet, 0);
    assert_eq!(world.claim("w", "c").task.status, Status::InProgress);
}

#[test]
fn the_section_goes_with_the_last_of_them() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    claim_all(&mut world, &["a", "b"]);
    let answers = world.act(&asks("w", true, &[("a", complete()), ("b", complete())]));
    let gave_up: Vec<bool> = answers
        .iter()
        .map(|answer| matches!(answer, Finished::Done { gave_up_section: true, .. }))
        .collect();
    assert_eq!(gave_up, [false, true]);
    assert_eq!(world.held(), [""; 0]);
}

#[test]
fn the_section_stays_if_another_task_of_it_is_in_progress_or_ready() {
    for claims_more in [true, false] {
        let mut world = World::with(vec![in_section("a"), in_section("b"), in_section("c")]);
        claim_all(&mut world, &["a", "b"]);
        if claims_more {
            world.claim("w", "c");
        }
        let answers = world.act(&asks("w", true, &[("a", complete()), ("b", complete())]));
        assert!(
            !answers.iter().any(|one| matches!(one, Finished::Done { gave_up_section: true, .. }))
        );
        assert!(world.held().contains(&"section:S".to_owned()));
    }
}

#[test]
fn each_waiter_is_woken_once() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    claim_all(&mut world, &["a", "b"]);
    let waiting: Vec<GrantId> =
        ["path:a/x", "path:b/x", "path:**"].iter().map(|name| world.queue_for(name)).collect();
    world.act(&asks("w", true, &[("a", complete()), ("b", complete())]));
    let mut woken = world.last_woken.clone();
    woken.sort();
    let mut expected = waiting[..2].to_vec();
    expected.sort();
    assert_eq!(woken, expected);
}

#[test]
fn a_waiter_for_what_two_of_them_held_is_woken_when_both_are_done() {
    for (tasks, is_woken) in [(&["a", "b"][..], true), (&["a"], false), (&["b"], false)] {
        let mut world = World::with(vec![in_section("a"), in_section("b")]);
        claim_all(&mut world, &["a", "b"]);
        let waiting = world.queue_for("path:**");
        let list: Vec<_> = tasks.iter().map(|task| (*task, complete())).collect();
        world.act(&asks("w", true, &list));
        assert_eq!(world.last_woken.contains(&waiting), is_woken, "{tasks:?}");
    }
}

#[test]
fn each_section_of_a_runner_goes_by_itself() {
    let of = |name: &str, section: &str| NewTask { section: Some(section.into()), ..plain(name) };
    let mut world = World::with(vec![of("a", "S"), of("b", "T"), of("c", "T")]);
    claim_all(&mut world, &["a", "b", "c"]);
    let answers = world.act(&asks("w", true, &[("a", complete()), ("b", complete())]));
    let all_done = answers.iter().all(|one| matches!(one, Finished::Done { repeated: false, .. }));
    assert!(all_done, "{answers:?}");
    assert_eq!(world.held(), ["section:T", "task:c"]);
}

#[test]
fn a_place_that_no_longer_counts_ends_once() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    claim_all(&mut world, &["a", "b"]);
    world.queue_for("path:**");
    world.pass(SECTION_TTL);
    world.act(&asks("w", true, &[("a", complete()), ("b", complete())]));
    assert!(world.waiters.is_empty());
    assert!(world.held().is_empty());
}
