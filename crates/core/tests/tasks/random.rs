//! Random histories of a few workers: whatever happens, a finish counts only while all parts of
//! its claim are held, and nothing stays held for nothing.

use crate::support::tasks::*;
use crate::support::{Dice, World};
use std::time::Duration;
use tenure_core::Status;
use tenure_core::rules::tasks::{ClaimAsk, Finish, Finished, Heartbeat};

/// Whether every part of the worker's claim is held under the claim's own grants and tokens, told
/// without the rules.
fn all_parts_are_there(world: &World, worker: &str, task: &str) -> bool {
    let task = world.task(task);
    let Some(claim) = task.claim.as_ref().filter(|claim| claim.by == worker) else { return false };
    let own = [(task.id.resource(), claim.grant, claim.token)];
    let parts = claim.parts.iter().map(|part| (part.resource.clone(), part.grant, part.token));
    let held = |(resource, grant, token): &(_, _, _)| {
        world.holds.iter().map(|stored| &stored.hold).any(|hold| {
            hold.want.resource == *resource && hold.grant == *grant && hold.token == *token
        })
    };
    own.into_iter().chain(parts).all(|part| held(&part))
}

#[test]
fn a_finish_counts_only_while_all_parts_are_held() {
    let (workers, tasks) = (["u", "v", "w"], ["a", "b", "c", "d"]);
    for seed in 1..=60 {
        let mut dice = Dice::new(seed);
        let mut shared = in_section("c");
        shared.files = vec!["a/**".into(), "x".into()];
        let mut new = vec![in_section("a"), in_section("b"), shared, plain("d")];
        new.iter_mut().for_each(|task| task.max_attempts = 1000);
        let mut world = World::with(new);
        world.recoveries_max = 1000;
        for step in 0..400 {
            let (worker, task) = (dice.pick(&workers), dice.pick(&tasks));
            let case = format!("seed {seed}, step {step}, {worker} {task}");
            match dice.below(9) {
                0 | 1 => {
                    let keeps = dice.below(2) == 0;
                    let ask = ClaimAsk {
                        runner: keeps.then(|| runner(worker)),
                        task: (dice.below(2) == 0).then(|| id(task)),
                        ..claim_ask(worker)
                    };
                    drop(world.try_claim(ask));
                }
                2 | 3 => {
                    let was_whole = all_parts_are_there(&world, worker, task);
                    let end = dice.pick(&[0, 1, 2]);
                    let end = match end {
                        0 => Finish::Release,
                        1 => Finish::Snooze { pause: Duration::from_millis(1) },
                        _ => Finish::Fail { reason: "x".into(), retry: true },
                    };
                    let done = matches!(world.finish(worker, task, end), Finished::Done { .. });
                    assert_eq!(done, was_whole, "{case}");
                }
                4 => {
                    let was_whole = all_parts_are_there(&world, worker, task);
                    let beat = matches!(world.heartbeat(worker, task), Heartbeat::Renewed { .. });
                    assert!(was_whole || !beat, "{case}");
                }
                5 => world.pass(dice.pick(&[TTL / 2, TTL, SECTION_TTL])),
                6 => {
                    let held = world.held();
                    if !held.is_empty() {
                        let name = held[dice.below(held.len())].clone();
                        world.break_first(&name);
                    }
                }
                7 => {
                    let name =
                        dice.pick(&["path:a/x", "path:x", "section:S", "task:a", "path:b/**"]);
                    world.take_and_release(name);
                }
                _ => {
                    world.recover();
                    nothing_is_held_for_nothing(&world, &case);
                }
            }
            at_most_one_has_the_section(&world, &case);
        }
        world.pass(SECTION_TTL * 2);
        world.recover();
        assert!(world.tasks.iter().all(|task| task.status == Status::Pending), "seed {seed}");
    }
}

/// After a recovery every task or file that is held belongs to a claim that stands.
fn nothing_is_held_for_nothing(world: &World, case: &str) {
    for hold in world.holds.iter().map(|stored| &stored.hold) {
        let name = hold.want.resource.to_string();
        if name.starts_with("section:") {
            // A runner may keep its section between tasks.
            continue;
        }
        let belongs = world.tasks.iter().any(|task| {
            let claim = task.claim.as_ref();
            claim.is_some_and(|claim| claim.grant == hold.grant && claim.token == hold.token)
        });
        assert!(belongs, "{case}: {name} is held for nothing");
    }
}

fn at_most_one_has_the_section(world: &World, case: &str) {
    let is_section = |name: &&String| *name == "section:S";
    let held = world.held();
    let section = held.iter().filter(is_section);
    assert!(section.count() <= 1, "{case}");
    let standing = |name: &&&str| {
        let task = world.task(name);
        let by = task.claim.as_ref().map(|claim| claim.by.clone());
        by.is_some_and(|by| all_parts_are_there(world, &by, name))
    };
    let in_it: Vec<&&str> = ["a", "b", "c"].iter().filter(standing).collect();
    let who: std::collections::BTreeSet<String> =
        in_it.iter().map(|name| world.task(name).claim.as_ref().unwrap().by.clone()).collect();
    assert!(who.len() <= 1, "{case}: {who:?} are in a section of one");
}
