//! A wait that would never end is refused, and named; no other is.

use crate::support::{
    AskExt, PLACE_MS, TTL_MS, World, ask, exclusive, in_every_view, shared, slot,
};

fn refused(world: &mut World, ask: &tenure_core::Ask, expected: &str) {
    let waiting = world.queue();
    world.news();
    assert_eq!(world.must_deadlock(ask).to_string(), expected);
    assert_eq!(world.queue(), waiting, "a refused request has no place");
    let refusal = format!("deadlock {} {}", ask.wants[0].resource, ask.holder.label);
    assert_eq!(world.news(), [refusal]);
}

#[test]
fn waiting_for_what_one_keeps_is_a_cycle_of_one() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        let upgrade = ask(2, &[exclusive("a")]).queued().keeping(&[1]);
        refused(world, &upgrade, "holder 2 waits for a (held by holder 1)");
    });
}

#[test]
fn two_that_wait_for_each_other_are_a_cycle() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_wait(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
        let closing = ask(12, &[exclusive("a")]).queued().keeping(&[2]);
        let cycle = "holder 12 waits for a (held by holder 1), \
                     holder 11 waits for b (held by holder 2)";
        refused(world, &closing, cycle);
    });
}

#[test]
fn three_in_a_ring_are_a_cycle() {
    in_every_view(|world| {
        for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
            world.must_grant(&ask(number, &[exclusive(name)]));
        }
        world.must_wait(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
        world.must_wait(&ask(12, &[exclusive("c")]).queued().keeping(&[2]));
        let closing = ask(13, &[exclusive("a")]).queued().keeping(&[3]);
        let cycle = "holder 13 waits for a (held by holder 1), \
                     holder 11 waits for b (held by holder 2), \
                     holder 12 waits for c (held by holder 3)";
        refused(world, &closing, cycle);
    });
}

#[test]
fn a_cycle_through_the_order_of_the_queue_is_found() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[exclusive("a"), exclusive("b")]).queued());
        // Nobody holds b, but who waits for it before us waits for what we keep.
        let closing = ask(11, &[exclusive("b")]).queued().keeping(&[1]);
        let cycle = "holder 11 waits for b (holder 2 waits before), \
                     holder 2 waits for a (held by holder 1)";
        refused(world, &closing, cycle);
    });
}

#[test]
fn the_resource_that_is_named_is_the_one_that_excludes() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[shared("b"), exclusive("c"), exclusive("a")]).queued());
        let closing = ask(11, &[shared("b"), exclusive("c")]).queued().keeping(&[1]);
        let cycle = world.must_deadlock(&closing);
        assert_eq!(cycle.steps[0].resource, "c".parse().unwrap());
    });
}

#[test]
fn a_cycle_through_overlapping_paths_is_found() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("path:src/**")]));
        world.must_grant(&ask(2, &[exclusive("path:docs/**")]));
        world.must_wait(&ask(11, &[exclusive("path:docs/a")]).queued().keeping(&[1]));
        world.must_deadlock(&ask(12, &[shared("path:src/a")]).queued().keeping(&[2]));
    });
}

#[test]
fn a_cycle_through_a_resource_with_one_slot_is_found() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[slot("a", 1)]));
        world.must_deadlock(&ask(11, &[slot("a", 1)]).queued().keeping(&[1]));
        world.must_deadlock(&ask(11, &[slot("a", 2)]).queued().keeping(&[1]));
    });
}

#[test]
fn what_is_kept_for_nothing_closes_no_cycle() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_wait(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
        world.must_wait(&ask(12, &[exclusive("b")]).queued().keeping(&[1]));
    });
}

#[test]
fn a_request_that_keeps_nothing_is_never_refused() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_wait(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
        world.must_wait(&ask(12, &[exclusive("a")]).queued());
    });
}

#[test]
fn a_request_that_does_not_queue_is_busy_and_never_refused() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        assert_eq!(world.must_be_busy(&ask(2, &[exclusive("a")]).keeping(&[1])), [1]);
    });
}

#[test]
fn what_is_free_is_granted_whatever_is_kept() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        world.must_grant(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
        world.must_grant(&ask(12, &[slot("c", 2)]).queued().keeping(&[1]));
        world.must_grant(&ask(13, &[slot("c", 2)]).queued().keeping(&[1, 12]));
    });
}

#[test]
fn of_several_slots_any_may_come_free() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[slot("a", 2)]));
        world.must_grant(&ask(2, &[slot("a", 2)]));
        // The second holder of a slot has nothing to do with us, and will release it.
        world.must_wait(&ask(11, &[slot("a", 2)]).queued().keeping(&[1]));
        world.release(2, &["a"]);
        world.must_grant(&ask(11, &[slot("a", 2)]).queued().keeping(&[1]));
    });
}

#[test]
fn a_dead_or_silent_waiter_closes_no_cycle() {
    let ends: [fn(&mut World); 2] = [|world| world.kill(11), |world| world.pass_ms(PLACE_MS)];
    for end in ends {
        in_every_view(|world| {
            world.must_grant(&ask(1, &[exclusive("a")]).lasting_ms(100_000));
            world.must_grant(&ask(2, &[exclusive("b")]).lasting_ms(100_000));
            world.must_wait(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
            end(world);
            world.must_wait(&ask(12, &[exclusive("a")]).queued().keeping(&[2]));
        });
    }
}

#[test]
fn a_dead_or_lapsed_hold_closes_no_cycle() {
    let ends: [fn(&mut World); 2] = [|world| world.kill(2), |world| world.pass_ms(TTL_MS)];
    for end in ends {
        in_every_view(|world| {
            world.must_grant(&ask(1, &[exclusive("a")]).lasting_ms(100_000));
            world.must_grant(&ask(2, &[exclusive("b")]));
            world.must_wait(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
            end(world);
            world.must_wait(&ask(12, &[exclusive("a")]).queued().keeping(&[2]));
        });
    }
}

#[test]
fn who_waits_later_is_not_waited_for() {
    in_every_view(|world| {
        for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
            world.must_grant(&ask(number, &[exclusive(name)]));
        }
        world.must_wait(&ask(11, &[exclusive("b")]).queued().keeping(&[1]));
        world.must_wait(&ask(12, &[exclusive("b"), exclusive("c")]).queued());
        // 12 waits for what we keep, but 11, for whom we wait, goes before 12.
        world.must_wait(&ask(13, &[exclusive("a")]).queued().keeping(&[3]));
    });
}
