//! First come, first served.

use crate::support::{AskExt, PLACE_MS, TTL_MS, View, World, ask, exclusive, in_every_view};
use crate::support::{shared, slot};
use tenure_core::{Ask, Outcome, Reason, Want};

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        for number in 2..=6 {
            world.must_wait(&ask(number, &[exclusive("a")]).queued());
        }
        assert_eq!(world.queue(), [2, 3, 4, 5, 6]);
        for number in 1..=5 {
            world.release(number, &["a"]);
            for later in (number + 2)..=6 {
                world.must_wait(&ask(later, &[exclusive("a")]).queued());
            }
            world.must_grant(&ask(number + 1, &[exclusive("a")]).queued());
        }
    });
}

#[test]
fn a_newcomer_does_not_overtake_a_waiter_in_its_way_though_the_resource_is_free() {
    // What the waiter wants, and what the newcomer wants.
    let cases: Vec<(Want, Want)> = vec![
        (exclusive("a"), exclusive("a")),
        (exclusive("a"), shared("a")),
        (shared("a"), exclusive("a")),
        (slot("a", 2), exclusive("a")),
        (slot("a", 2), shared("a")),
        (slot("a", 1), slot("a", 2)),
        (exclusive("path:src/**"), shared("path:src/main.rs")),
        (exclusive("path:src/main.rs"), exclusive("path:src/**")),
    ];
    for (first, second) in cases {
        in_every_view(|world| {
            world.must_grant(&ask(1, &[Want::exclusive(first.resource.clone())]));
            let waiting = ask(2, std::slice::from_ref(&first)).queued();
            world.must_wait(&waiting);
            world.release(1, &[&first.resource.to_string()]);
            assert_eq!(world.holders(), [0; 0], "momentarily free");
            let newcomer = ask(3, std::slice::from_ref(&second));
            assert_eq!(world.must_be_busy(&newcomer), [2], "{second:?} after {first:?}");
            world.must_wait(&newcomer.queued());
            world.must_grant(&waiting);
        });
    }
}

#[test]
fn a_newcomer_passes_waiters_that_are_not_in_its_way() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a"), exclusive("path:src/**")]));
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        world.must_wait(&ask(3, &[exclusive("path:src/main.rs")]).queued());
        world.must_grant(&ask(4, &[exclusive("b")]));
        world.must_grant(&ask(5, &[exclusive("path:docs/**")]));
    });
}

#[test]
fn a_waiting_writer_is_not_starved_by_later_readers() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        let writer = ask(2, &[exclusive("a")]).queued();
        world.must_wait(&writer);
        for number in 3..=5 {
            world.must_wait(&ask(number, &[shared("a")]).queued());
        }
        world.release(1, &["a"]);
        world.must_wait(&ask(3, &[shared("a")]).queued());
        world.must_grant(&writer);
    });
}

#[test]
fn readers_that_come_after_each_other_share() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        for number in 2..=5 {
            world.must_wait(&ask(number, &[shared("a")]).queued());
        }
        world.release(1, &["a"]);
        // The last may go before the first asks: nobody is in its way.
        for number in (2..=5).rev() {
            world.must_grant(&ask(number, &[shared("a")]).queued());
        }
    });
}

#[test]
fn who_waits_for_several_resources_keeps_its_turn_on_each() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[exclusive("a"), exclusive("b")]).queued());
        // It holds nothing of b, but came first.
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("b")])), [2]);
        world.release(1, &["a"]);
        world.must_grant(&ask(2, &[exclusive("a"), exclusive("b")]).queued());
    });
}

#[test]
fn asking_again_keeps_the_place() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]).lasting_ms(100_000));
        let early = ask(2, &[exclusive("a")]).queued();
        world.must_wait(&early);
        for _ in 0..3 {
            world.pass_ms(PLACE_MS - 1);
            world.must_wait(&early);
        }
        world.must_wait(&ask(3, &[exclusive("a")]).queued());
        world.must_wait(&early);
        assert_eq!(world.queue(), [2, 3]);
        let waits = world.news().iter().filter(|event| event.starts_with("waiting")).count();
        assert_eq!(waits, 2, "a sign of life is no event");
    });
}

#[test]
fn a_silent_place_is_in_nobodys_way_and_is_dropped() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[exclusive("a")]).queued().untied());
        world.release(1, &["a"]);
        world.pass_ms(PLACE_MS);
        world.news();
        world.must_grant(&ask(3, &[exclusive("a")]));
        assert_eq!(world.queue(), [0; 0]);
        assert_eq!(world.news(), ["left a holder 2", "acquired a holder 3"]);
    });
}

#[test]
fn a_silent_place_that_nobody_dropped_yet_is_kept_by_a_sign_of_life() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]).lasting_ms(100_000));
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        world.pass_ms(PLACE_MS);
        world.must_wait(&ask(3, &[exclusive("a")]).queued());
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        assert_eq!(world.queue(), [2, 3]);
    });
}

#[test]
fn a_dead_waiter_is_in_nobodys_way_and_is_dropped() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[exclusive("a"), exclusive("b")]).queued());
        world.release(1, &["a"]);
        world.kill(2);
        world.news();
        world.must_grant(&ask(3, &[exclusive("a")]));
        let expected = ["left a holder 2", "left b holder 2", "acquired a holder 3"];
        assert_eq!(world.news(), expected);
    });
}

#[test]
fn a_place_ends_with_who_waits_there_and_the_hold_with_what_it_is_tied_to() {
    in_every_view(|world| {
        // The second asks on behalf of another process, as a detached request does.
        let waiting = |presence: u32| {
            let presence = ask(presence, &[exclusive("a")]).holder.evidence;
            Ask { presence, ..ask(2, &[exclusive("a")]).untied().queued() }
        };
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&waiting(7));
        world.release(1, &["a"]);
        world.must_grant(&waiting(7));
        world.kill(7);
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("a")])), [2], "untied, hence not dead");
        world.release(2, &["a"]);

        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&waiting(8));
        world.release(1, &["a"]);
        world.kill(8);
        world.must_grant(&ask(3, &[exclusive("a")]));
    });
}

#[test]
fn whoever_queues_removes_the_dead_just_before_it_and_knows_who_is_there() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a"), exclusive("b")]));
        for number in 2..=5 {
            world.must_wait(&ask(number, &[exclusive("a")]).queued());
        }
        [2, 4, 5].into_iter().for_each(|number| world.kill(number));
        let last = ask(6, &[exclusive("b"), exclusive("a")]).queued();
        world.must_wait(&last);
        assert_eq!(world.queue(), [2, 3, 6]);
        world.kill(3);
        assert_eq!(world.must_wait(&last), Some(0), "all before it were dead");
        assert_eq!(world.queue(), [6]);
    });
}

#[test]
fn a_dead_waiter_takes_no_slot_wherever_it_stands() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        for number in 2..=3 {
            world.must_wait(&ask(number, &[slot("a", 2)]).queued());
        }
        world.release(1, &["a"]);
        world.kill(3);
        // One slot is for the waiter before the dead one, the other is free.
        world.must_grant(&ask(4, &[slot("a", 2)]));
        assert_eq!(world.queue(), [2]);
    });
}

#[test]
fn the_answer_names_who_is_in_the_way_and_how_many_wait_before() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[shared("a")]));
    world.must_grant(&ask(2, &[exclusive("b")]));
    world.must_wait(&ask(3, &[exclusive("b")]).queued());
    assert_eq!(world.must_wait(&ask(4, &[exclusive("a")]).queued()), Some(0));
    assert_eq!(world.must_wait(&ask(5, &[shared("a")]).queued()), Some(1));
    assert_eq!(world.must_be_busy(&ask(6, &[shared("a")])), [4]);
    assert_eq!(world.must_be_busy(&ask(6, &[exclusive("a")])), [1, 4, 5]);
    assert_eq!(world.must_wait(&ask(6, &[exclusive("a")]).queued()), Some(2));
}

#[test]
fn only_those_in_the_same_queues_count_as_waiting_before() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a"), exclusive("path:src/**")]));
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        world.must_wait(&ask(3, &[exclusive("path:src/x")]).queued());
        // Where only fronts are shown it may not be known; else it is right.
        let ahead = world.must_wait(&ask(4, &[exclusive("path:src/y")]).queued());
        assert!(matches!(ahead, None | Some(0)), "{ahead:?}");
    });
}

#[test]
fn who_does_not_queue_leaves_nothing_behind() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.news();
        assert_eq!(world.must_be_busy(&ask(2, &[exclusive("a")])), [1]);
        assert_eq!((world.queue(), world.news()), (vec![], vec![]));
    });
}

#[test]
fn an_answer_names_the_one_just_before_however_many_there_are() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("a")]));
    for number in 2..=100 {
        world.must_wait(&ask(number, &[exclusive("a")]).queued());
    }
    let blockers = world.must_be_busy(&ask(101, &[exclusive("a")]));
    assert_eq!((blockers.len(), blockers[0], blockers[31]), (32, 1, 100));
}

#[test]
fn an_answer_names_at_most_so_many_in_the_way() {
    let mut world = World::new(View::Whole);
    for number in 1..=100 {
        world.must_grant(&ask(number, &[shared("a")]));
    }
    let Outcome::Busy { blockers } = world.acquire(&ask(101, &[exclusive("a")])) else {
        panic!("readers are in the way");
    };
    assert_eq!(blockers.len(), 32);
    world.pass_ms(TTL_MS);
    let grant = world.must_grant(&ask(101, &[exclusive("a")]));
    assert_eq!(grant.takeovers.len(), 100, "but all that lapsed are removed");
}

#[test]
fn how_many_wait_before_is_said_where_all_of_them_are_shown() {
    for (view, expected) in [
        (View::Whole, [Some(0), Some(1), Some(2)]),
        (View::Asked, [Some(0), Some(1), Some(2)]),
        (View::Front(3), [Some(0), Some(1), Some(2)]),
        (View::Front(2), [Some(0), Some(1), None]),
        (View::Front(1), [Some(0), None, None]),
    ] {
        let mut world = World::new(view);
        world.must_grant(&ask(1, &[exclusive("a")]));
        let asks = [2, 3, 4].map(|number| ask(number, &[exclusive("a")]).queued());
        for ask in &asks {
            world.must_wait(ask);
        }
        let ahead = asks.each_ref().map(|ask| world.must_wait(ask));
        assert_eq!(ahead, expected, "{view:?}");
        let newcomer = world.must_wait(&ask(5, &[exclusive("a")]).queued());
        assert_eq!(newcomer.is_some(), !matches!(view, View::Front(1 | 2)), "{view:?}");
    }
}

#[test]
fn a_dead_waiter_that_is_not_in_the_way_is_left_alone() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("a")]));
    world.must_grant(&ask(2, &[exclusive("b")]).lasting_ms(60_000));
    world.must_wait(&ask(3, &[exclusive("b")]).queued());
    world.must_wait(&ask(5, &[exclusive("a")]).queued());
    world.kill(3);
    world.kill(5);
    world.pass_ms(TTL_MS);
    let grant = world.must_grant(&ask(4, &[exclusive("a")]));
    assert_eq!(grant.reason, Reason::ClaimedExpired);
    assert_eq!(world.queue(), [3]);
}
