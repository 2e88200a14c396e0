//! Waiting for a named task: in which order, and not for ever.

use crate::support::tasks::*;
use crate::support::{AskExt, World, ask, exclusive, grant_id};
use crate::tasks::claim::touching;
use std::time::Duration;
use tenure_core::rules::tasks::{ClaimAsk, Finish, NoClaim};
use tenure_core::{Ask, Holder, Outcome, Owner, WaiterSnapshot};

/// Workers that wait for a named task are served in the order in which they came.
#[test]
fn waiters_for_a_named_task_are_served_first_come_first_served() {
    let queue = Some(Duration::from_secs(15));
    let wait = |worker: &str| ClaimAsk { task: Some(id("a")), queue, ..claim_ask(worker) };
    let mut world = World::with(vec![in_section("a"), plain("b")]);
    world.claim("w", "a");
    let (first, second) = (wait("first"), wait("second"));
    for ask in [&first, &second] {
        assert!(matches!(world.try_claim(ask.clone()), Err(NoClaim::NotReady { .. })));
    }
    let tickets = |world: &World| -> Vec<(String, u64)> {
        let seen = world.seen();
        let one = |seen: &WaiterSnapshot| (seen.waiter.holder.label.clone(), seen.waiter.ticket);
        seen.waiters.iter().map(one).collect()
    };
    let places = tickets(&world);
    assert_eq!(
        places.iter().map(|place| place.0.as_str()).collect::<Vec<_>>(),
        ["first", "second"]
    );
    world.try_claim(first.clone()).unwrap_err();
    assert_eq!(tickets(&world), places, "asking again keeps the place");
    world.finish_well("w", "a", Finish::Release);
    assert_eq!(world.last_woken, [first.grants[0]]);
    let overtaken = world.try_claim(second.clone());
    assert!(matches!(overtaken, Err(NoClaim::AllTaken { .. })), "{overtaken:?}");
    let newcomer = world.try_claim(ClaimAsk { task: Some(id("a")), ..claim_ask("late") });
    assert!(matches!(newcomer, Err(NoClaim::AllTaken { .. })), "{newcomer:?}");
    let claimed = world.try_claim(first).unwrap();
    assert_eq!(claimed[0].task.id, id("a"));
    assert_eq!(tickets(&world), places[1..], "a place that became a claim is over");
    world.finish_well("first", "a", Finish::Release);
    world.try_claim(second).unwrap();
    assert_eq!(tickets(&world), []);
}

#[test]
fn a_task_that_nobody_holds_has_no_queue() {
    let queue = Some(Duration::from_secs(15));
    let mut world = World::with(vec![plain("a"), after("b", &["a"])]);
    let ask = ClaimAsk { task: Some(id("b")), queue, ..claim_ask("w") };
    assert!(matches!(world.try_claim(ask), Err(NoClaim::NotReady { .. })));
    assert!(world.seen().waiters.is_empty());
}

/// The worker of a task waits for a lock of the asker, and the asker for the task: whichever comes second is
/// refused.
#[test]
fn a_wait_for_a_task_whose_worker_waits_for_the_asker_is_refused() {
    let queue = Some(Duration::from_secs(15));
    let deploy = [exclusive("deploy")];
    // By its grant, as a command under `tenure run`; by its label, as an agent.
    for by_label in [false, true] {
        let holder = Holder::chosen("asker").unwrap();
        let owner = match by_label {
            true => Owner::of_label("asker"),
            false => Owner { grants: vec![grant_id(50)], ..Owner::default() },
        };
        for task_first in [false, true] {
            let mut world =
                World::with(vec![touching("a", &["src/**"]), touching("b", &["src/x"])]);
            let claimed = world.claim_alone("w", "a");
            world.acquire(&Ask { holder: holder.clone(), ..ask(50, &deploy) });
            let worker = Ask { keeps: vec![claimed.grant], ..ask(51, &deploy).queued() };
            let asks = |task: &str| ClaimAsk {
                task: Some(id(task)),
                queue,
                holder: holder.clone(),
                owner: owner.clone(),
                ..claim_ask("asker")
            };
            // The task itself, and one whose files the other has.
            for task in ["a", "b"] {
                let mut world = world.clone();
                if task_first {
                    let waits = world.try_claim(asks(task));
                    assert!(
                        matches!(waits, Err(NoClaim::NotReady { .. } | NoClaim::AllTaken { .. })),
                        "{waits:?}"
                    );
                    assert_eq!(world.seen().waiters.len(), 1, "{task}");
                    let outcome = world.acquire(&worker);
                    assert!(matches!(outcome, Outcome::Deadlock(_)), "{task}: {outcome:?}");
                } else {
                    let outcome = world.acquire(&worker);
                    assert!(matches!(outcome, Outcome::Waiting { .. }), "{outcome:?}");
                    let waits = world.try_claim(asks(task));
                    assert!(matches!(waits, Err(NoClaim::Deadlock(_))), "{task}: {waits:?}");
                    assert_eq!(world.seen().waiters.len(), 1, "only the worker waits");
                }
            }
        }
    }
}
