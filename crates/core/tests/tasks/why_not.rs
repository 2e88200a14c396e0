//! What is said of a task that cannot be taken now.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::rules::tasks::{ClaimAsk, EVERYTHING, ManualChange, NewTask, why_not};
use tenure_core::{Section, Status};

/// What happens, and what is said of `a` then.
type Case = (&'static str, fn(&mut World), &'static [&'static str]);

const CASES: [Case; 22] = [
    ("nothing", |_| {}, &[]),
    (
        "it is worked on",
        |world| drop(world.claim("w", "a")),
        &["it is being worked on by w", "section:S is held by w"],
    ),
    (
        "its worker died",
        |world| {
            let ask = ClaimAsk { holder: holder("w", Some(7)), ..claim_ask("w") };
            world.try_claim(ClaimAsk { task: Some(id("a")), ..ask }).unwrap();
            world.kill(7);
        },
        &["its worker w died or let the lease of section:S lapse"],
    ),
    (
        "its worker fell silent",
        |world| {
            world.claim("w", "a");
            world.pass(TTL);
        },
        &["its worker w died or let the lease of path:a/** lapse", "section:S is held by w"],
    ),
    (
        "its worker lost a part",
        |world| {
            world.claim("w", "a");
            world.break_first("section:S");
        },
        &["its worker w lost section:S, and it has not been taken back yet"],
    ),
    (
        "its worker is not known",
        |world| {
            world.claim("w", "a");
            world.tasks[0].claim = None;
            world.holds.clear();
        },
        &["it is being worked on by an unknown worker"],
    ),
    (
        "it is done",
        |world| {
            world.claim("w", "a");
            world.finish_well("w", "a", complete());
        },
        &["it is completed"],
    ),
    ("it is cancelled", |world| drop(world.edit("a", ManualChange::Cancel)), &["it is cancelled"]),
    (
        "it is set aside",
        |world| {
            world.recoveries_max = 1;
            world.claim("w", "a");
            world.pass(SECTION_TTL);
            world.recover();
        },
        &["it is blocked: it was taken back 1 times; at last its worker w died or fell silent"],
    ),
    (
        "it failed",
        |world| {
            world.claim("w", "a");
            world.finish_well("w", "a", fail(false));
        },
        &["it is failed"],
    ),
    ("it is put off", |world| drop(world.edit("a", put_off(world))), &["its time has not come"]),
    (
        "it was put off long enough",
        |world| {
            let change = put_off(world);
            world.edit("a", change).unwrap();
            world.pass(TTL);
        },
        &[],
    ),
    ("its section is paused", |world| world.pause("S", true), &["section S is paused"]),
    ("another section is paused", |world| world.pause("T", true), &[]),
    ("all is paused", |world| world.pause(EVERYTHING, true), &["section S is paused"]),
    (
        "its section is taken",
        |world| {
            world.take("section:S");
        },
        &["section:S is held by other"],
    ),
    (
        "another section is taken",
        |world| {
            world.take("section:T");
        },
        &[],
    ),
    (
        "a file is taken",
        |world| {
            world.take("path:a/x");
        },
        &["path:a/x is held by other"],
    ),
    (
        "another file is taken",
        |world| {
            world.take("path:b/x");
        },
        &[],
    ),
    (
        "the task is taken",
        |world| {
            world.take("task:a");
        },
        &["task:a is held by other"],
    ),
    (
        "a lease lapsed",
        |world| {
            world.take("path:a/x");
            world.take("section:S");
            world.pass(TTL);
        },
        &[],
    ),
    (
        "all at once",
        |world| {
            world.take("path:a/x");
            world.take("section:S");
            world.pause("S", true);
            let change = put_off(world);
            world.edit("a", change).unwrap();
        },
        &[
            "its time has not come",
            "section S is paused",
            "section:S is held by other",
            "path:a/x is held by other",
        ],
    ),
];

#[test]
fn each_reason_is_a_sentence() {
    for (what, happens, expected) in CASES {
        let mut world = World::with(vec![in_section("a")]);
        happens(&mut world);
        let why = why_not(&world.seen(), world.task("a"), &world.dead);
        assert_eq!(why, expected, "{what}");
    }
}

#[test]
fn each_task_that_it_waits_for_is_named() {
    let mut world = World::with(vec![
        plain("done"),
        NewTask { status: Status::Skipped, ..plain("skipped") },
        NewTask { status: Status::Failed, title: "Try".into(), ..plain("failed") },
        plain("pending"),
        after("a", &["done", "skipped", "failed", "pending"]),
    ]);
    world.claim("w", "done");
    world.finish_well("w", "done", complete());
    let mut seen = world.seen();
    let why = why_not(&seen, world.task("a"), &world.dead);
    let failed = "it waits for failed (\"Try\"), which is failed";
    let pending = "it waits for pending (\"pending\"), which is pending";
    assert_eq!(why, [failed, pending]);
    seen.tasks.retain(|task| task.id != id("pending"));
    let why = why_not(&seen, world.task("a"), &world.dead);
    assert_eq!(why, [failed, "it waits for pending, which is not there"]);
}

#[test]
fn a_task_without_a_section_waits_for_what_is_paused_as_a_whole() {
    let mut world = World::with(vec![plain("a")]);
    world.pause("S", true);
    assert_eq!(why_not(&world.seen(), world.task("a"), &world.dead), [""; 0]);
    world.pause(EVERYTHING, true);
    let why = why_not(&world.seen(), world.task("a"), &world.dead);
    assert_eq!(why, ["everything is paused"]);
}

#[test]
fn a_section_with_room_is_not_in_the_way() {
    for (max_runners, expected) in
        [(Some(2), &[][..]), (Some(1), &["section:S is held by w"][..]), (None, &[])]
    {
        let section = Section { max_runners, ..Section::named("S") };
        let mut world = World::with_sections(vec![in_section("a"), in_section("b")], vec![section]);
        world.claim("w", "b");
        let why = why_not(&world.seen(), world.task("a"), &world.dead);
        assert_eq!(why, expected, "{max_runners:?}");
    }
}
