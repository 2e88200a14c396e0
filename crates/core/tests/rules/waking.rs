//! Exactly those are woken who can go.

use crate::support::{AskExt, PLACE_MS, TTL_MS, View, World, ask, exclusive, in_every_view};
use crate::support::{shared, slot};
use tenure_core::{Kind, TURN_TIMEOUT, Want};

#[test]
fn a_release_wakes_those_at_the_front_who_fit_beside_each_other() {
    let (x, r, s) = (|| exclusive("a"), || shared("a"), |of| slot("a", of));
    let p = |glob: &str| exclusive(&format!("path:{glob}"));
    // Who waits, numbered from 2, and who is woken when the holder of all releases.
    let cases: Vec<(Vec<Want>, Vec<u32>)> = vec![
        (vec![], vec![]),
        (vec![x(), x(), x()], vec![2]),
        (vec![x(), r(), r()], vec![2]),
        (vec![r(), r(), r()], vec![2, 3, 4]),
        (vec![r(), r(), x(), r()], vec![2, 3]),
        (vec![s(1), s(1)], vec![2]),
        (vec![s(2), s(2), s(2)], vec![2, 3]),
        (vec![s(3), s(2), s(3)], vec![2, 3]),
        (vec![s(2), r(), s(2)], vec![2]),
        (vec![p("src/x"), p("src/y")], vec![2, 3]),
        (vec![p("src/x"), p("src/**"), p("docs/x")], vec![2, 4]),
        (vec![p("src/*"), p("src/x")], vec![2]),
        (vec![p("*/x"), p("src/y"), shared("path:docs/x")], vec![2, 3]),
        (vec![p("**"), p("src/y"), p("docs/x")], vec![2]),
    ];
    for (waiting, expected) in cases {
        in_every_view(|world| {
            let is_path = waiting.first().is_some_and(|want| want.resource.kind() == Kind::Path);
            let all = if is_path { "path:**" } else { "a" };
            world.must_grant(&ask(1, &[exclusive(all)]));
            for (number, want) in (2..).zip(&waiting) {
                world.must_wait(&ask(number, std::slice::from_ref(want)).queued());
            }
            assert_eq!(world.woken(), [0; 0]);
            world.release(1, &[all]);
            assert_eq!(world.woken(), expected, "{waiting:?}");
        });
    }
}

#[test]
fn the_last_of_several_readers_wakes_the_writer() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        world.must_grant(&ask(2, &[shared("a")]));
        world.must_wait(&ask(3, &[exclusive("a")]).queued());
        world.must_wait(&ask(4, &[exclusive("a")]).queued());
        world.release(1, &["a"]);
        assert_eq!(world.woken(), [0; 0]);
        world.release(2, &["a"]);
        assert_eq!(world.woken(), [3]);
    });
}

#[test]
fn each_slot_that_comes_free_wakes_one() {
    in_every_view(|world| {
        for number in 1..=3 {
            world.must_grant(&ask(number, &[slot("a", 3)]));
        }
        for number in 4..=8 {
            world.must_wait(&ask(number, &[slot("a", 3)]).queued());
        }
        world.release(2, &["a"]);
        assert_eq!(world.woken(), [4]);
        world.must_grant(&ask(4, &[slot("a", 3)]).queued());
        world.release(1, &["a"]);
        assert_eq!(world.woken(), [5]);
    });
}

#[test]
fn who_waits_for_several_is_woken_when_the_last_is_free() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("a")]));
    world.must_grant(&ask(2, &[exclusive("b")]));
    world.must_wait(&ask(3, &[exclusive("a"), exclusive("b")]).queued());
    world.release(1, &["a"]);
    assert_eq!(world.woken(), [0; 0]);
    world.release(2, &["b"]);
    assert_eq!(world.woken(), [3]);
}

#[test]
fn breaking_leaving_and_reaping_wake_too() {
    let endings: [fn(&mut World); 3] = [
        |world| drop(world.break_hold("a", world.holds[0].hold.token)),
        |world| {
            world.release(1, &["a"]);
            assert_eq!(world.woken(), [2]);
            assert!(world.leave(2));
        },
        |world| {
            world.kill(1);
            world.kill(2);
            world.reap(None);
        },
    ];
    for (index, ending) in endings.iter().enumerate() {
        in_every_view(|world| {
            world.must_grant(&ask(1, &[exclusive("a")]));
            world.must_wait(&ask(2, &[exclusive("a")]).queued());
            world.must_wait(&ask(3, &[exclusive("a")]).queued());
            ending(world);
            assert_eq!(world.woken(), [if index == 0 { 2 } else { 3 }]);
        });
    }
}

#[test]
fn who_leaves_from_the_middle_wakes_those_it_kept_apart() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        world.must_wait(&ask(3, &[shared("a")]).queued());
        world.must_wait(&ask(4, &[shared("a")]).queued());
        world.leave(2);
        assert_eq!(world.woken(), [3, 4]);
    });
}

#[test]
fn who_leaves_behind_others_wakes_nobody() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        for number in 2..=5 {
            world.must_wait(&ask(number, &[exclusive("a")]).queued());
        }
        world.leave(4);
        assert_eq!(world.woken(), [0; 0]);
    });
}

#[test]
fn dead_and_silent_heads_are_skipped_and_dropped() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]).lasting_ms(100_000));
        world.must_wait(&ask(2, &[exclusive("a")]).queued().untied());
        world.pass_ms(PLACE_MS);
        for number in 3..=6 {
            world.must_wait(&ask(number, &[exclusive("a")]).queued());
        }
        world.kill(3);
        world.kill(4);
        world.news();
        world.release(1, &["a"]);
        assert_eq!((world.queue(), world.woken()), (vec![5, 6], vec![5]));
        let left = ["left a holder 2", "left a holder 3", "left a holder 4"];
        assert_eq!(world.news()[1..], left);
    });
}

#[test]
fn a_dead_waiter_that_could_not_go_itself_keeps_nobody_asleep() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_wait(&ask(3, &[exclusive("a"), exclusive("b")]).queued());
        world.must_wait(&ask(4, &[exclusive("b")]).queued());
        world.kill(3);
        world.release(2, &["b"]);
        assert_eq!(world.woken(), [4]);
    });
}

#[test]
fn a_hold_that_is_gone_keeps_nobody_asleep() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        world.must_grant(&ask(2, &[shared("a")]));
        world.must_wait(&ask(3, &[exclusive("a")]).queued());
        world.kill(1);
        world.release(2, &["a"]);
        assert_eq!(world.woken(), [3]);
    });
}

#[test]
fn a_takeover_that_leaves_room_wakes_the_next() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[shared("a")]).queued());
        world.must_wait(&ask(3, &[shared("a")]).queued());
        world.pass_ms(TTL_MS);
        world.must_grant(&ask(2, &[shared("a")]).queued());
        assert_eq!(world.woken(), [3]);
    });
}

#[test]
fn a_refused_request_that_cleared_the_gone_wakes_the_next() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        world.pass_ms(TTL_MS);
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("a")])), [2]);
        assert_eq!(world.woken(), [2]);
    });
}

#[test]
fn a_silent_waiter_that_asks_again_counts_for_those_behind_it() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]).lasting_ms(100_000));
        world.must_grant(&ask(2, &[shared("a")]));
        let writer = ask(3, &[exclusive("a")]).queued();
        world.must_wait(&writer);
        world.pass_ms(PLACE_MS / 2);
        world.must_wait(&ask(4, &[shared("a")]).queued());
        world.pass_ms(PLACE_MS / 2);
        world.must_wait(&writer);
        assert_eq!(world.holders(), [1], "what had lapsed was cleared away");
        assert_eq!((world.queue(), world.woken()), (vec![3, 4], vec![]));
    });
}

#[test]
fn asking_in_vain_wakes_nobody() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        for _ in 0..2 {
            for number in 2..=4 {
                world.must_wait(&ask(number, &[exclusive("a")]).queued());
            }
        }
        let mut named = [1, 2, 3, 4][..world_sees(world)].to_vec();
        if !named.contains(&4) {
            named.push(4);
        }
        let blockers = world.must_be_busy(&ask(9, &[exclusive("a")]));
        assert_eq!(blockers, named, "as far as can be seen, and the one just before");
        assert_eq!(world.woken(), [0; 0]);
    });
}

/// How many of one holder and three waiters are visible.
fn world_sees(world: &World) -> usize {
    match world.view {
        View::Front(front) => 4.min(1 + front),
        View::Whole | View::Asked => 4,
    }
}

#[test]
fn whoever_is_hidden_behind_a_front_of_another_queue_is_woken_too() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a"), exclusive("b")]));
        world.must_wait(&ask(2, &[exclusive("b")]).queued());
        world.must_wait(&ask(3, &[exclusive("b")]).queued());
        for number in 4..=8 {
            world.must_wait(&ask(number, &[shared("a")]).queued());
        }
        world.release(1, &["a", "b"]);
        assert_eq!(world.woken(), [2, 4, 5, 6, 7, 8]);
    });
}

#[test]
fn whoever_waits_for_a_path_behind_those_who_wait_for_another_is_woken() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("path:src/x")]));
        world.must_grant(&ask(2, &[exclusive("path:docs/**")]));
        for number in 3..=7 {
            world.must_wait(&ask(number, &[exclusive("path:src/x")]).queued());
        }
        world.must_wait(&ask(8, &[exclusive("path:docs/a")]).queued());
        world.must_wait(&ask(9, &[exclusive("path:docs/b")]).queued());
        world.release(2, &["path:docs/**"]);
        assert_eq!(world.woken(), [8, 9]);
    });
}

#[test]
fn a_dead_waiter_makes_room_in_each_of_its_queues() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_wait(&ask(2, &[exclusive("a"), exclusive("b")]).queued());
        world.must_wait(&ask(3, &[exclusive("b")]).queued());
        world.kill(2);
        // It looks at a alone, and finds that one who also waited for b is dead.
        world.must_wait(&ask(4, &[exclusive("a")]).queued());
        assert_eq!(world.queue(), [3, 4]);
        assert_eq!(world.woken(), [3]);
    });
}

#[test]
fn a_hold_that_is_taken_over_makes_room_in_all_that_it_overlapped() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("path:src/**")]));
        world.must_wait(&ask(2, &[exclusive("path:src/b")]).queued());
        world.kill(1);
        world.must_grant(&ask(3, &[exclusive("path:src/a")]));
        assert_eq!(world.woken(), [2]);
    });
}

#[test]
fn one_that_was_woken_and_does_not_come_is_passed_and_keeps_its_place() {
    let patient = |number: u32| tenure_core::Ask {
        queue: Some(10 * TURN_TIMEOUT),
        ..ask(number, &[exclusive("a")]).lasting_ms(60_000)
    };
    in_every_view(|world| {
        let turn_ms = TURN_TIMEOUT.as_millis() as u64;
        world.must_grant(&patient(1));
        for number in 2..=4 {
            world.must_wait(&patient(number));
        }
        world.release(1, &["a"]);
        assert_eq!(world.woken(), [2]);
        world.pass_ms(turn_ms - 1);
        assert_ne!(world.must_wait(&patient(3)), Some(0), "its turn is not over");
        assert_eq!(world.must_be_busy(&ask(9, &[exclusive("a")])).first(), Some(&2));
        world.pass_ms(1);
        world.must_grant(&patient(3));
        assert_eq!(world.queue(), [2, 4], "it keeps its place");
        world.release(3, &["a"]);
        assert_eq!(world.woken(), [2, 4], "the one that was passed, and the next that lives");
        // A sign of life, and it is first again.
        world.must_grant(&patient(2));
        world.must_wait(&patient(4));
        assert_eq!((world.holders(), world.queue()), (vec![2], vec![4]));
    });
}
