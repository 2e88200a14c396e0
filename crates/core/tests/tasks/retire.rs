//! Removing finished tasks that are beyond what is kept.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::rules::tasks::{ManualChange, RetireAsk};
use tenure_core::{EndedTask, Status, WallTime};

fn complete_all(world: &mut World, names: &[&str]) {
    for name in names {
        world.claim("w", name);
        world.finish_well("w", name, complete());
    }
}

fn ended(world: &World, name: &str) -> EndedTask {
    world.task(name).ended().unwrap_or_else(|| panic!("{name} is not at its end"))
}

fn retire(world: &mut World, names: &[&str]) -> Vec<String> {
    let tasks = names.iter().map(|name| ended(world, name)).collect();
    retire_as_found(world, tasks)
}

fn retire_as_found(world: &mut World, tasks: Vec<EndedTask>) -> Vec<String> {
    let removed = world.act(&RetireAsk { tasks, by: "retention".into() });
    removed.iter().map(ToString::to_string).collect()
}

fn left(world: &World) -> Vec<&str> {
    world.tasks.iter().map(|task| task.id.as_str()).collect()
}

#[test]
fn finished_tasks_go_with_an_event_each() {
    let mut world = World::with(vec![plain("a"), plain("b"), plain("c"), plain("d")]);
    complete_all(&mut world, &["a"]);
    world.edit("b", ManualChange::Cancel).unwrap();
    world.edit("c", ManualChange::Skip).unwrap();
    world.news();
    assert_eq!(retire(&mut world, &["a", "b", "c"]), ["a", "b", "c"]);
    let told = ["deleted task:a retention", "deleted task:b retention", "deleted task:c retention"];
    assert_eq!(world.news(), told);
    assert_eq!(left(&world), ["d"]);
}

/// What was listed may have changed before it is removed.
#[test]
fn only_what_is_as_it_was_found_goes() {
    let mut world = World::with(vec![plain("again"), plain("retried"), plain("gone"), plain("x")]);
    for name in ["again", "retried"] {
        world.edit(name, ManualChange::Cancel).unwrap();
    }
    complete_all(&mut world, &["gone"]);
    let found = ["again", "retried", "gone"].map(|name| ended(&world, name)).to_vec();
    world.pass(TTL);
    for name in ["again", "retried"] {
        world.edit(name, ManualChange::Retry).unwrap();
    }
    world.edit("again", ManualChange::Cancel).unwrap();
    assert_eq!(retire_as_found(&mut world, found[2..].to_vec()), ["gone"]);
    assert_eq!(retire_as_found(&mut world, found), Vec::<String>::new());
    let never = EndedTask { id: id("x"), at: WallTime(0) };
    assert_eq!(retire_as_found(&mut world, vec![never]), Vec::<String>::new());
    assert_eq!(left(&world), ["again", "retried", "x"]);
}

#[test]
fn what_an_unfinished_task_depends_on_stays() {
    let names = ["a", "b", "c", "d"];
    let chain = vec![plain("a"), after("b", &["a"]), after("c", &["b"]), after("d", &["c"])];
    let mut world = World::with(chain.clone());
    complete_all(&mut world, &["a", "b"]);
    // `c` is pending: it needs `b`. `b` is completed for good, so `a` is not needed any more.
    assert_eq!(retire(&mut world, &["a", "b"]), ["a"]);
    complete_all(&mut world, &["c", "d"]);
    assert_eq!(retire(&mut world, &["b", "c", "d"]), ["b", "c", "d"]);
    // `c` is cancelled, but `d` needs it, so that it may be retried and then needs `b` again.
    let mut world = World::with(chain);
    complete_all(&mut world, &["a", "b"]);
    world.edit("c", ManualChange::Cancel).unwrap();
    assert_eq!(retire(&mut world, &["b", "c"]), Vec::<String>::new());
    assert_eq!(left(&world), names);
    world.edit("d", ManualChange::Cancel).unwrap();
    // One turn after the other: `d` first, which nothing needs.
    assert_eq!(retire(&mut world, &["b", "c", "d"]), ["d"]);
    assert_eq!(retire(&mut world, &["b", "c"]), ["c"]);
    assert_eq!(retire(&mut world, &["a", "b"]), ["a", "b"]);
    assert_eq!(left(&world), Vec::<&str>::new());
}

/// A failed task waits for a person, who may retry it.
#[test]
fn what_a_failed_task_depends_on_stays() {
    let mut world = World::with(vec![plain("a"), after("b", &["a"])]);
    complete_all(&mut world, &["a"]);
    world.claim("w", "b");
    world.finish_well("w", "b", fail(false));
    assert_eq!(world.status("b"), Status::Failed);
    assert_eq!(retire(&mut world, &["a"]), Vec::<String>::new());
    world.edit("b", ManualChange::Retry).unwrap();
    complete_all(&mut world, &["b"]);
    assert_eq!(retire(&mut world, &["a"]), ["a"]);
}
