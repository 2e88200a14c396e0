//! Who may hold beside whom, tokens, and asking again.

use crate::support::{AskExt, TTL_MS, World, ask, exclusive, in_every_view, shared, slot};
use tenure_core::{Outcome, Reason, Token, VerifyAnswer, Want};

#[test]
fn modes_share_or_exclude_as_their_names_say() {
    let a = || exclusive("a");
    let r = || shared("a");
    let s = |of| slot("a", of);
    // Who holds already, who asks, and whether that is granted.
    let cases: Vec<(Vec<Want>, Want, bool)> = vec![
        (vec![], a(), true),
        (vec![a()], a(), false),
        (vec![a()], r(), false),
        (vec![a()], s(9), false),
        (vec![r()], a(), false),
        (vec![r(), r()], r(), true),
        (vec![r()], s(9), false),
        (vec![s(9)], a(), false),
        (vec![s(9)], r(), false),
        (vec![s(3), s(3)], s(3), true),
        (vec![s(3), s(3), s(3)], s(3), false),
        (vec![s(2), s(3)], s(3), false),
        (vec![s(3), s(3)], s(2), false),
        (vec![exclusive("b"), exclusive("task:a"), exclusive("section:a")], a(), true),
        (vec![exclusive("path:src/**")], exclusive("path:src/main.rs"), false),
        (vec![exclusive("path:src/main.rs")], exclusive("path:src/**"), false),
        (vec![shared("path:src/**")], shared("path:src/main.rs"), true),
        (vec![exclusive("path:src/**")], exclusive("path:docs/**"), true),
        (vec![exclusive("path:a")], a(), true),
    ];
    for (held, asked, granted) in cases {
        in_every_view(|world| {
            for (number, want) in (1..).zip(&held) {
                world.must_grant(&ask(number, std::slice::from_ref(want)));
            }
            let outcome = world.acquire(&ask(9, std::slice::from_ref(&asked)));
            let is_granted = matches!(outcome, Outcome::Granted(_));
            assert_eq!(is_granted, granted, "{asked:?} beside {held:?}");
        });
    }
}

#[test]
fn several_resources_are_granted_all_or_none() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("b")]));
        assert_eq!(world.must_be_busy(&ask(2, &[exclusive("a"), exclusive("b")])), [1]);
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("b"), exclusive("c")])), [1]);
        assert_eq!(world.holders(), [1]);
        world.release(1, &["b"]);
        world.must_grant(&ask(2, &[exclusive("a"), exclusive("b"), shared("path:src/**")]));
        assert_eq!(world.holders(), [2, 2, 2]);
    });
}

#[test]
fn one_request_may_name_paths_that_overlap_each_other() {
    in_every_view(|world| {
        let wants = [exclusive("path:src/**"), exclusive("path:src/main.rs")];
        world.must_grant(&ask(1, &wants));
        assert_eq!(world.must_grant(&ask(1, &wants)).reason, Reason::AlreadyOwned);
    });
}

#[test]
fn all_resources_of_a_grant_share_the_next_number_as_their_token() {
    in_every_view(|world| {
        let first = world.must_grant(&ask(1, &[exclusive("a"), exclusive("b")]));
        assert_eq!(first.token, Token(1));
        assert!(world.holds.iter().all(|stored| stored.hold.token == first.token));
        // Two events took two numbers.
        assert_eq!(world.must_grant(&ask(2, &[exclusive("c")])).token, Token(3));
    });
}

#[test]
fn a_token_rises_over_release_lapse_death_and_break() {
    in_every_view(|world| {
        let mut last = Token(0);
        for number in 1..=8 {
            let grant = world.must_grant(&ask(number, &[exclusive("a")]));
            assert!(grant.token > last);
            last = grant.token;
            match number % 4 {
                0 => drop(world.release(number, &["a"])),
                1 => world.pass_ms(TTL_MS),
                2 => world.kill(number),
                _ => drop(world.break_hold("a", last)),
            }
        }
    });
}

#[test]
fn asking_again_with_the_grant_extends_the_lease_and_keeps_the_token() {
    in_every_view(|world| {
        let mine = ask(1, &[exclusive("a"), shared("b")]);
        let first = world.must_grant(&mine);
        world.news();
        for _ in 0..3 {
            world.pass_ms(TTL_MS - 1);
            let again = world.must_grant(&mine);
            assert_eq!((again.token, again.reason), (first.token, Reason::AlreadyOwned));
        }
        assert_eq!(world.news(), Vec::<String>::new(), "renewals are no events");
        world.must_grant(&mine.lasting_ms(10 * TTL_MS));
        world.pass_ms(9 * TTL_MS);
        assert_eq!(world.must_be_busy(&ask(2, &[exclusive("a")])), [1]);
    });
}

#[test]
fn asking_again_extends_even_while_others_wait() {
    in_every_view(|world| {
        let mine = ask(1, &[exclusive("a")]);
        world.must_grant(&mine);
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        assert_eq!(world.must_grant(&mine).reason, Reason::AlreadyOwned);
    });
}

#[test]
fn two_grants_of_one_label_do_not_share() {
    in_every_view(|world| {
        let mut second = ask(2, &[exclusive("a")]);
        let first = ask(1, &[exclusive("a")]);
        second.holder = first.holder.clone();
        world.must_grant(&first);
        assert_eq!(world.must_be_busy(&second), [1]);
    });
}

#[test]
fn a_lapsed_grant_that_asks_again_starts_anew_with_a_new_token() {
    in_every_view(|world| {
        let mine = ask(1, &[exclusive("a")]);
        let first = world.must_grant(&mine);
        world.pass_ms(TTL_MS);
        world.news();
        let again = world.must_grant(&mine);
        assert!(again.token > first.token);
        assert_eq!((again.reason, again.takeovers.len()), (Reason::AcquiredNew, 0));
        assert_eq!(world.news(), ["lapsed a holder 1", "acquired a holder 1"]);
    });
}

#[test]
fn a_lapsed_grant_that_asks_again_does_not_overtake_those_who_wait() {
    in_every_view(|world| {
        let mine = ask(1, &[exclusive("a")]).queued();
        world.must_grant(&mine);
        world.must_wait(&ask(2, &[exclusive("a")]).queued());
        world.pass_ms(TTL_MS);
        world.must_wait(&mine);
        assert_eq!((world.queue(), world.woken()), (vec![2, 1], vec![2]));
    });
}

#[test]
fn a_grant_that_lost_a_part_starts_anew_with_a_new_token() {
    for (lost, left) in [("a", "b"), ("b", "a")] {
        in_every_view(|world| {
            let mine = ask(1, &[exclusive("a"), exclusive("b")]);
            let first = world.must_grant(&mine);
            world.break_hold(lost, first.token);
            world.news();
            let again = world.must_grant(&mine);
            assert!(again.token > first.token);
            assert_eq!(again.reason, Reason::AcquiredNew);
            assert!(world.holds.iter().all(|stored| stored.hold.token == again.token));
            let released = format!("released {left} holder 1");
            assert_eq!(world.news(), [&released, "acquired a holder 1", "acquired b holder 1"]);
        });
    }
}

#[test]
fn a_grant_that_lost_a_part_to_another_gives_up_the_rest_and_queues() {
    in_every_view(|world| {
        let mine = ask(1, &[exclusive("a"), exclusive("b")]).queued();
        let first = world.must_grant(&mine);
        world.must_wait(&ask(3, &[exclusive("b")]).queued());
        world.break_hold("a", first.token);
        world.must_grant(&ask(2, &[exclusive("a")]));
        world.must_wait(&mine);
        assert_eq!((world.holders(), world.queue()), (vec![2], vec![3, 1]));
        assert_eq!(world.woken(), [3], "what was given up goes to the next");
    });
}

#[test]
fn asking_for_something_else_with_a_grant_leaves_what_it_holds_alone() {
    in_every_view(|world| {
        let first = world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(1, &[exclusive("b")]));
        assert_eq!(world.verify("a", first.token), VerifyAnswer::Valid);
    });
}

#[test]
fn a_token_is_valid_as_long_as_its_hold_counts() {
    in_every_view(|world| {
        let first = world.must_grant(&ask(1, &[exclusive("a")]));
        assert_eq!(world.verify("a", first.token), VerifyAnswer::Valid);
        assert_eq!(world.verify("b", first.token), VerifyAnswer::Refused { current: None });
        world.pass_ms(TTL_MS);
        assert_eq!(world.verify("a", first.token), VerifyAnswer::Refused { current: None });
        let second = world.must_grant(&ask(2, &[exclusive("a")]));
        let refused = VerifyAnswer::Refused { current: Some(second.token) };
        assert_eq!(world.verify("a", first.token), refused);
        world.kill(2);
        assert_eq!(world.verify("a", second.token), VerifyAnswer::Refused { current: None });
    });
}

#[test]
fn each_holder_of_a_slot_has_a_number_of_its_own_the_lowest_that_is_free() {
    in_every_view(|world| {
        let slots = |world: &mut World, number: u32| {
            world.must_grant(&ask(number, &[slot("gpu", 3)])).slots
        };
        assert_eq!(slots(world, 1), [0]);
        assert_eq!(slots(world, 2), [1]);
        assert_eq!(slots(world, 3), [2]);
        assert_eq!(slots(world, 2), [1], "asking again keeps it");
        world.release(1, &["gpu"]);
        assert_eq!(slots(world, 4), [0]);
        world.kill(3);
        assert_eq!(slots(world, 5), [2], "the number of a dead holder goes to its successor");
        let mut taken: Vec<_> = world.holds.iter().map(|stored| stored.hold.slot).collect();
        taken.sort();
        assert_eq!(taken, [Some(0), Some(1), Some(2)]);
    });
}

#[test]
fn where_holders_disagree_on_the_number_of_slots_numbers_stay_below_the_lower() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[slot("gpu", 2)]));
        assert_eq!(world.must_grant(&ask(2, &[slot("gpu", 9), slot("cpu", 9)])).slots, [1, 0]);
        world.must_be_busy(&ask(3, &[slot("gpu", 9)]));
    });
}

#[test]
fn what_is_held_alone_has_no_slot() {
    in_every_view(|world| {
        assert!(world.must_grant(&ask(1, &[exclusive("a")])).slots.is_empty());
        assert_eq!(world.holds[0].hold.slot, None);
    });
}
