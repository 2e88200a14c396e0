//! In which order tasks are handed out.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::rules::tasks::{ClaimAsk, NewTask, NoClaim};
use tenure_core::{GrantId, Section};

fn task(name: &str, section: &str, priority: u8, position: i64) -> NewTask {
    let section = (!section.is_empty()).then(|| section.to_owned());
    NewTask { section, priority, position, ..plain(name) }
}

fn any_number(name: &str, priority: u8, position: i64) -> Section {
    Section { max_runners: None, priority, position, ..Section::named(name) }
}

fn claimed(world: &mut World, count: usize) -> Vec<String> {
    let grants = (0..count).map(|_| GrantId::random()).collect();
    let claimed = world.try_claim(ClaimAsk { grants, ..claim_ask("w") }).unwrap();
    claimed.iter().map(|claimed| claimed.task.id.to_string()).collect()
}

#[test]
fn priority_then_the_section_then_position_then_age() {
    let mut world = World::with(vec![
        task("last", "Late", 50, -9),
        task("none", "", 50, 0),
        task("usual", "Usual", 50, 0),
        task("none-2", "", 50, -1),
        task("first", "Early", 50, 9),
        task("nearer", "Near", 50, 9),
        task("urgent", "Late", 10, 0),
    ]);
    world.sections = vec![
        any_number("Late", 90, 0),
        any_number("Early", 10, 0),
        any_number("Near", 50, -1),
        any_number("Usual", 50, 0),
    ];
    let order = claimed(&mut world, 7);
    assert_eq!(order, ["urgent", "first", "nearer", "none-2", "none", "usual", "last"]);
}

#[test]
fn the_section_that_the_runner_keeps_comes_first() {
    let mut world =
        World::with(vec![task("s1", "S", 50, 0), task("s2", "S", 99, 0), task("urgent", "", 0, 0)]);
    world.claim("w", "s1");
    world.finish("w", "s1", complete());
    assert_eq!(claimed(&mut world, 1), ["s2"]);
    assert_eq!(claimed(&mut world, 1), ["urgent"]);
}

/// Whichever of them a store shows first.
#[test]
fn all_sections_that_the_runner_keeps_come_first() {
    let mut world = World::with(vec![
        task("s1", "S", 50, 0),
        task("r1", "R", 50, 0),
        task("r2", "R", 90, 0),
        task("s2", "S", 99, 0),
        task("urgent", "", 0, 0),
    ]);
    world.claim("w", "s1");
    world.claim("w", "r1");
    assert_eq!(claimed(&mut world, 3), ["r2", "s2", "urgent"]);
}

#[test]
fn a_named_task_says_what_it_waits_for() {
    let after = NewTask { depends_on: vec![id("a")], ..plain("b") };
    let mut world = World::with(vec![plain("a"), after]);
    let ask = ClaimAsk { task: Some(id("b")), ..claim_ask("w") };
    let Err(NoClaim::NotReady { why }) = world.try_claim(ask.clone()) else { panic!("it waits") };
    assert_eq!(why, ["it waits for a (\"a\"), which is pending"]);
    world.claim("v", "a");
    let Err(NoClaim::NotReady { why }) = world.try_claim(ask) else { panic!("it waits") };
    assert_eq!(why, ["it waits for a (\"a\"), which is in_progress"]);
}
