//! What counts as held and as waiting is what the rules would go by.

use crate::support::{AskExt, PLACE_MS, TTL_MS, View, World, ask, exclusive, number_of, slot};
use tenure_core::{Counts, EventKind, HoldState, Liveness, Overview, Resource, Scope, WallTime};

fn numbers(waiters: &[&tenure_core::WaiterSnapshot]) -> Vec<u32> {
    waiters.iter().map(|seen| number_of(seen.waiter.grant)).collect()
}

fn resource(name: &str) -> Resource {
    name.parse().unwrap()
}

/// Two slots held, one of them by a process that died; a lease that lapsed; a queue for the slots,
/// with a waiter that died and one that also wants something else.
fn scene() -> World {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("lapsed")]).lasting_ms(1));
    world.must_grant(&ask(2, &[slot("gpu", 2)]).lasting_ms(9 * TTL_MS));
    world.must_grant(&ask(3, &[slot("gpu", 2)]).lasting_ms(9 * TTL_MS));
    world.must_grant(&ask(4, &[exclusive("other")]).lasting_ms(9 * TTL_MS));
    for number in 10..=12 {
        world.must_wait(&ask(number, &[slot("gpu", 2)]).queued());
    }
    world.must_wait(&ask(13, &[slot("gpu", 2), exclusive("other")]).queued());
    world.pass_ms(TTL_MS);
    world.kill(3);
    world.kill(11);
    world
}

#[test]
fn each_hold_is_held_lapsed_or_dead_and_each_waiter_is_counted_once() {
    let world = scene();
    let seen = world.show(&Scope::Everything);
    let overview = Overview::of(&seen, &world.dead);
    let expected = Counts { held: 2, lapsed: 1, dead: 1, waiting: 3, workers: 2 };
    assert_eq!(overview.counts(), expected);
    assert_eq!(numbers(&overview.waiting_for(&resource("gpu"))), [10, 12, 13]);
    assert_eq!(numbers(&overview.waiting_for(&resource("other"))), [13]);
    assert!(overview.is_free(&resource("lapsed")) && !overview.is_free(&resource("gpu")));
    let states: Vec<HoldState> = overview.holds.iter().map(|hold| hold.state).collect();
    assert_eq!(states, [HoldState::Lapsed, HoldState::Held, HoldState::Dead, HoldState::Held]);
}

#[test]
fn who_waits_for_what_is_free_is_next_in_line() {
    let mut world = scene();
    let next = |world: &World| {
        let seen = world.show(&Scope::Everything);
        numbers(&Overview::of(&seen, &world.dead).next_in_line())
    };
    assert_eq!(next(&world), [10], "the dead holder's slot");
    world.must_grant(&ask(10, &[slot("gpu", 2)]).queued());
    assert_eq!(next(&world), Vec::<u32>::new());
    world.release(2, &["gpu"]);
    assert_eq!(next(&world), [12], "not the one behind it, which wants more than is free");
}

#[test]
fn silent_waiters_do_not_count() {
    let mut world = scene();
    world.pass_ms(PLACE_MS);
    let seen = world.show(&Scope::Everything);
    assert_eq!(seen.waiters.len(), 4);
    assert_eq!(Overview::of(&seen, &world.dead).counts().waiting, 0);
}

#[test]
fn workers_are_told_apart_by_label() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("a")]));
    let again = ask(2, &[exclusive("b")]);
    let holder = tenure_core::Holder { label: "holder 1".into(), ..again.holder.clone() };
    world.must_grant(&tenure_core::Ask { holder, ..again });
    world.must_grant(&ask(3, &[exclusive("c")]).untied());
    world.must_grant(&ask(4, &[exclusive("d")]));
    world.kill(2);
    world.kill(4);
    let seen = world.show(&Scope::Everything);
    let overview = Overview::of(&seen, &world.dead);
    let workers = overview.workers();
    let shown: Vec<_> = workers
        .iter()
        .map(|worker| (worker.label, worker.holds.len(), worker.liveness, worker.counts()))
        .collect();
    let expected = [
        ("holder 1", 2, Liveness::Alive, true),
        ("holder 3", 1, Liveness::Unknown, true),
        ("holder 4", 1, Liveness::Dead, false),
    ];
    assert_eq!(shown, expected);
    assert_eq!(overview.counts().workers, 2);
}

#[test]
fn a_lapse_says_when_the_lease_ran_out_not_when_that_was_noticed() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("a")]));
    let ended_at = world.show(&Scope::Everything).holds[0].expires_at;
    world.pass_ms(60 * TTL_MS);
    world.must_grant(&ask(2, &[exclusive("a")]));
    let lapsed = world.events.iter().find(|event| event.kind.word() == "lapsed").unwrap();
    assert_eq!(lapsed.kind, EventKind::Lapsed { ended_at: Some(ended_at), reason: None });
    assert!(ended_at < WallTime(world.now_ms as i64));
}
