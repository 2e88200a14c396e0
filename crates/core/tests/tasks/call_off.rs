//! Undoing a claim whose answer is of no use any more.

use crate::support::tasks::*;
use crate::support::{World, grant_id};
use tenure_core::act::CallOffClaim;
use tenure_core::rules::tasks::{self, ClaimAsk, Finished, NewTask};
use tenure_core::{Section, Status, TaskId, Token, Write};

fn claim(world: &mut World, task: &str, grant: u32, keeps: bool) {
    let (grants, runner) = (vec![grant_id(grant)], keeps.then(|| runner("w")));
    world.try_claim(ClaimAsk { task: Some(id(task)), grants, runner, ..claim_ask("w") }).unwrap();
}

fn call_off(world: &mut World, grants: &[u32], keeps: bool) -> Vec<TaskId> {
    let grants = grants.iter().map(|grant| grant_id(*grant)).collect();
    world.act(&CallOffClaim { grants, runner: keeps.then(|| runner("w")) })
}

#[test]
fn it_is_as_if_the_task_had_never_been_handed_out() {
    for keeps in [true, false] {
        let mut world = World::with(vec![in_section("a"), plain("b")]);
        let before = world.task("a").clone();
        claim(&mut world, "a", 1, keeps);
        world.start("w", "a");
        world.news();
        let waiting = world.queue_for("path:a/x");
        assert_eq!(call_off(&mut world, &[1], keeps), [id("a")]);
        assert_eq!(world.task("a"), &before, "{keeps}");
        assert_eq!(world.held(), [""; 0], "{keeps}");
        assert_eq!(world.last_woken, [waiting]);
        assert!(world.last_was_durable);
        let mut news = world.news();
        news.sort();
        let expected = [
            "handed_back task:a w",
            "released path:a/** w",
            "released section:S w",
            "waiting path:a/x other",
        ];
        assert_eq!(news, expected, "{keeps}");
        assert!(matches!(world.finish("w", "a", complete()), Finished::NotYours(_)));
        assert_eq!(call_off(&mut world, &[1], keeps), [], "once");
        assert!(!world.last_was_durable);
    }
}

#[test]
fn a_section_that_the_runner_had_before_stays() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    claim(&mut world, "a", 1, true);
    claim(&mut world, "b", 2, true);
    assert_eq!(call_off(&mut world, &[2], true), [id("b")]);
    assert_eq!(world.held(), ["path:a/**", "section:S", "task:a"]);
    world.finish_well("w", "a", complete());
}

/// The answer to a claim is lost, its runner takes another task in the section that came with the
/// first, and only then the first claim is called off.
#[test]
fn a_section_that_a_later_claim_uses_stays() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    claim(&mut world, "a", 1, true);
    claim(&mut world, "b", 2, true);
    assert_eq!(call_off(&mut world, &[1], true), [id("a")]);
    assert_eq!(world.held(), ["path:b/**", "section:S", "task:b"]);
    world.finish_well("w", "b", complete());
}

#[test]
fn only_what_was_claimed_under_these_grants_goes_back() {
    let mut world = World::with(vec![plain("a"), plain("b"), plain("c"), plain("done")]);
    for (task, grant) in [("a", 1), ("b", 2), ("c", 3), ("done", 4)] {
        claim(&mut world, task, grant, true);
    }
    world.finish_well("w", "done", complete());
    assert_eq!(call_off(&mut world, &[4, 3, 9, 1], true), [id("a"), id("c")]);
    let status = ["a", "b", "c", "done"].map(|task| world.status(task));
    let (pending, claimed) = (Status::Pending, Status::InProgress);
    assert_eq!(status, [pending, claimed, pending, Status::Completed]);
    assert_eq!(world.held(), ["task:b"]);
}

#[test]
fn attempts_and_recoveries_of_before_still_count() {
    let mut world = World::with(vec![plain("a")]);
    claim(&mut world, "a", 1, true);
    world.pass(TTL);
    world.recover();
    claim(&mut world, "a", 2, true);
    call_off(&mut world, &[2], true);
    let task = world.task("a");
    assert_eq!((task.attempts, task.recoveries), (1, 1));
    assert_eq!((task.claimed_at, task.started_at), (None, None));
}

#[test]
fn it_is_told_even_if_the_hold_of_the_task_was_broken() {
    let mut world = World::with(vec![in_section("a")]);
    claim(&mut world, "a", 1, true);
    world.break_first("task:a");
    world.news();
    call_off(&mut world, &[1], true);
    assert!(world.news().contains(&"handed_back task:a w".to_owned()));
    assert_eq!(world.held(), [""; 0]);
}

#[test]
fn a_section_that_another_runner_keeps_stays() {
    let sections = vec![Section { max_runners: Some(2), ..Section::named("S") }];
    let tasks = vec![in_section("a"), in_section("b"), in_section("c")];
    let mut world = World::with_sections(tasks, sections);
    world.claim("v", "a");
    world.finish_well("v", "a", complete());
    assert_eq!(world.held(), ["section:S"], "for what is left to do there");
    claim(&mut world, "b", 1, true);
    assert_eq!(call_off(&mut world, &[1], true), [id("b")]);
    assert_eq!(world.held(), ["section:S"]);
    assert_eq!(world.holds[0].hold.grant, runner("v"));
}

/// Claims that have nothing in common may get the same number in some stores.
#[test]
fn a_claim_of_something_else_with_the_same_token_uses_nothing_of_this_one() {
    let other = NewTask { section: Some("T".into()), ..in_section("b") };
    let mut world = World::with(vec![in_section("a"), other]);
    claim(&mut world, "a", 1, true);
    claim(&mut world, "b", 2, true);
    let (mut seen, token) = (world.seen(), Token(7));
    seen.holds.iter_mut().for_each(|seen| seen.hold.token = token);
    for claim in seen.tasks.iter_mut().filter_map(|task| task.claim.as_mut()) {
        claim.token = token;
        claim.parts.iter_mut().for_each(|part| part.token = token);
    }
    let grants = [grant_id(1)];
    let (decision, tasks) = tasks::call_off_claim(&seen, &grants, Some(runner("w")), &world.dead);
    assert_eq!(tasks, [id("a")]);
    let dropped = decision.writes().iter().filter_map(|write| match write {
        Write::DropHold { resource, .. } => Some(resource.to_string()),
        _ => None,
    });
    let mut dropped: Vec<String> = dropped.collect();
    dropped.sort();
    assert_eq!(dropped, ["path:a/**", "section:S", "task:a"]);
}
