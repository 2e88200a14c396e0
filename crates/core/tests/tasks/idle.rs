//! Giving up sections in which nothing is left to do.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::act::{Acquire, LeaveIdleSections};
use tenure_core::rules::tasks::{ManualChange, NewTask};
use tenure_core::{Ask, Section, Status, WallTime};

fn leave(world: &mut World) -> Vec<String> {
    let left = world.act(&LeaveIdleSections { runner: runner("w") });
    left.iter().map(ToString::to_string).collect()
}

/// A world in which `w` keeps the section `S` and has no task, with these others.
fn keeping(others: Vec<NewTask>) -> World {
    let ready = NewTask { priority: 99, ..in_section("ready") };
    let tasks = [in_section("a"), ready].into_iter().chain(others).collect();
    let mut world = World::with(tasks);
    world.claim("w", "a");
    world.finish_well("w", "a", complete());
    assert_eq!(world.held(), ["section:S"], "there is more to do in it");
    world.edit("ready", ManualChange::Cancel).unwrap();
    world
}

#[test]
fn a_section_is_kept_while_something_in_it_is_ready_or_its_runners() {
    let of = |section: &str, task: NewTask| NewTask { section: Some(section.into()), ..task };
    let later = NewTask { not_before: Some(WallTime(i64::MAX)), ..plain("b") };
    let in_review = NewTask { status: Status::Review, ..plain("b") };
    for (what, others, is_kept) in [
        ("nothing", vec![], false),
        ("a ready task", vec![of("S", plain("b"))], true),
        ("a ready task elsewhere", vec![of("T", plain("b"))], false),
        ("a ready task of no section", vec![plain("b")], false),
        ("a later task", vec![of("S", later)], false),
        ("a task in review", vec![of("S", in_review)], false),
        ("a task that waits", vec![plain("c"), of("S", after("b", &["c"]))], false),
    ] {
        let mut world = keeping(others);
        let expected: &[&str] = if is_kept { &[] } else { &["section:S"] };
        assert_eq!(leave(&mut world), expected, "{what}");
        assert_eq!(world.held().is_empty(), !is_kept, "{what}");
        assert_eq!(leave(&mut world), [""; 0], "{what}: once");
    }
}

#[test]
fn the_runners_own_task_keeps_its_section_and_anothers_does_not() {
    let sections = || vec![Section { max_runners: Some(2), ..Section::named("S") }];
    for (worker, is_kept) in [("w", true), ("v", false)] {
        let tasks = vec![in_section("a"), in_section("b")];
        let mut world = World::with_sections(tasks, sections());
        world.claim("w", "a");
        world.finish_well("w", "a", complete());
        assert_eq!(world.held(), ["section:S"]);
        world.claim(worker, "b");
        assert_eq!(leave(&mut world).is_empty(), is_kept, "{worker}");
        let runners = world.held().iter().filter(|name| *name == "section:S").count();
        assert_eq!(runners, 1, "{worker}");
    }
}

#[test]
fn only_sections_of_this_runner_are_given_up() {
    let mut world = keeping(vec![]);
    world.take("section:T");
    // Something else under the same grant.
    let ask = Ask { grant: runner("w"), ..other_ask("path:S") };
    world.act(&Acquire { ask, ticket: None, whole_queues: false });
    assert_eq!(leave(&mut world), ["section:S"]);
    assert_eq!(world.held(), ["path:S", "section:T"]);
}

#[test]
fn the_next_in_line_is_woken() {
    let mut world = keeping(vec![]);
    let waiting = world.queue_for("section:S");
    world.news();
    leave(&mut world);
    assert_eq!(world.last_woken, [waiting]);
    assert_eq!(world.news(), ["released section:S w"]);
}
