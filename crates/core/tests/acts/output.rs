//! The output of a task's command is kept under its attempt, as long as its worker has the task.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::act::{FinishTask, PutOutput};
use tenure_core::record::output_key;
use tenure_core::{GrantId, RecordKind};

/// What is kept, as (key, text).
fn kept(world: &World) -> Vec<(String, String)> {
    assert!(world.records.iter().all(|one| one.kind == RecordKind::Output && one.ttl.is_none()));
    world.records.iter().map(|one| (one.key.clone(), one.text.clone())).collect()
}

fn put(world: &mut World, task: &str, attempt: u32, grant: GrantId, text: &str) -> bool {
    world.act(&PutOutput { task: id(task), attempt, grant, text: text.into() })
}

#[test]
fn only_the_worker_that_has_the_task_adds_to_its_output() {
    let mut world = World::with(vec![in_section("a"), plain("b")]);
    let grant = world.claim("w", "a").grant;
    let other = world.claim("v", "b").grant;
    assert!(put(&mut world, "a", 1, grant, "so far\n"));
    assert!(put(&mut world, "a", 1, grant, "so far\n\x1b[31mmore\x1b[0m\n"), "again");
    let expected = [(output_key(&id("a"), 1), "so far\nmore\n".to_owned())];
    assert_eq!(kept(&world), expected, "the last text, without what a terminal would obey");
    assert!(!put(&mut world, "a", 1, other, "not its task"));
    assert!(!put(&mut world, "a", 1, runner("w"), "the grant of the section alone"));
    world.pass(TTL);
    assert!(!put(&mut world, "a", 1, grant, "after the lease lapsed"));
    assert_eq!(kept(&world), expected);
}

#[test]
fn the_last_output_is_kept_with_the_finish_that_counts() {
    let mut world = World::with(vec![plain("a")]);
    let finish = |world: &mut World, worker: &str, output: &str| {
        let ask = finish_ask(worker, "a", fail(true));
        world.act(&FinishTask { ask, output: Some(output.into()) });
    };
    world.claim("w", "a");
    finish(&mut world, "v", "a stranger's");
    assert_eq!(kept(&world), []);
    finish(&mut world, "w", "first\n");
    finish(&mut world, "w", "said twice\n");
    world.pass(TTL * 60);
    world.claim("w", "a");
    finish(&mut world, "w", "second\n");
    let expected = [(1, "first\n"), (2, "second\n")]
        .map(|(attempt, text)| (output_key(&id("a"), attempt), text.to_owned()));
    assert_eq!(kept(&world), expected);
}
