//! Lapse and death, told apart.

use crate::support::{AskExt, TTL_MS, World, ask, exclusive, in_every_view, shared, slot};
use tenure_core::{Event, Grant, Kind, Reason, Revision, TakeoverReason, WallTime};

fn reasons(grant: &Grant) -> Vec<TakeoverReason> {
    grant.takeovers.iter().map(|takeover| takeover.reason).collect()
}

#[test]
fn a_lapsed_lease_is_taken_over_as_expired() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.pass_ms(TTL_MS - 1);
        assert_eq!(world.must_be_busy(&ask(2, &[exclusive("a")])), [1], "not a moment early");
        world.pass_ms(1);
        world.news();
        let grant = world.must_grant(&ask(2, &[exclusive("a")]));
        assert_eq!(grant.reason, Reason::ClaimedExpired);
        assert_eq!(reasons(&grant), [TakeoverReason::Lapsed]);
        assert_eq!(world.news(), ["lapsed a holder 1", "acquired a holder 2"]);
    });
}

#[test]
fn a_dead_holder_is_replaced_at_once() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.kill(1);
        world.news();
        let grant = world.must_grant(&ask(2, &[exclusive("a")]));
        assert_eq!(grant.reason, Reason::ClaimedDead);
        assert_eq!(reasons(&grant), [TakeoverReason::Died]);
        assert_eq!(world.news(), ["died a holder 1", "acquired a holder 2"]);
    });
}

#[test]
fn a_holder_of_whom_nothing_is_known_keeps_its_lease_until_it_lapses() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]).untied());
        world.kill(1);
        assert_eq!(world.must_be_busy(&ask(2, &[exclusive("a")])), [1]);
        world.pass_ms(TTL_MS);
        let grant = world.must_grant(&ask(2, &[exclusive("a")]));
        assert_eq!(grant.reason, Reason::ClaimedExpired);
    });
}

#[test]
fn a_living_holder_whose_lease_lapsed_is_replaced_too() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.pass_ms(TTL_MS);
        let grant = world.must_grant(&ask(2, &[exclusive("a")]));
        assert_eq!(grant.reason, Reason::ClaimedExpired);
    });
}

#[test]
fn death_says_more_than_lapse() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.pass_ms(TTL_MS);
        world.kill(1);
        let grant = world.must_grant(&ask(3, &[exclusive("a"), exclusive("b")]));
        assert_eq!(grant.reason, Reason::ClaimedDead);
        assert_eq!(reasons(&grant), [TakeoverReason::Died, TakeoverReason::Lapsed]);
    });
}

#[test]
fn one_slot_of_the_gone_is_enough() {
    in_every_view(|world| {
        for number in 1..=2 {
            world.must_grant(&ask(number, &[slot("a", 2)]));
        }
        assert_eq!(world.must_be_busy(&ask(3, &[slot("a", 2)])), [1, 2]);
        world.kill(2);
        world.must_grant(&ask(3, &[slot("a", 2)]));
        assert_eq!(world.holders(), [1, 3]);
    });
}

#[test]
fn a_slot_of_the_gone_is_free_even_if_a_waiter_before_wants_the_other() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[slot("a", 2)]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_wait(&ask(3, &[slot("a", 2), exclusive("b")]).queued());
        assert_eq!(world.must_be_busy(&ask(4, &[slot("a", 2)])), [1, 3]);
        world.kill(1);
        let grant = world.must_grant(&ask(4, &[slot("a", 2)]));
        assert_eq!(grant.reason, Reason::ClaimedDead);
    });
}

#[test]
fn nobody_is_removed_who_is_not_in_the_way() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_grant(&ask(3, &[slot("c", 3)]));
        world.pass_ms(TTL_MS);
        let wants = [shared("a"), slot("c", 3)];
        assert_eq!(world.must_grant(&ask(4, &wants)).reason, Reason::AcquiredNew);
        assert_eq!(world.holders(), [1, 2, 3, 4, 4]);
    });
}

#[test]
fn a_request_that_is_refused_still_clears_away_the_gone() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[shared("a")]));
        world.must_grant(&ask(2, &[shared("a")]));
        world.kill(1);
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("a")])), [2]);
        assert_eq!(world.holders(), [2]);
    });
}

#[test]
fn a_takeover_of_an_overlapping_path_ends_the_hold_as_it_was_named() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("path:src/**")]));
        world.kill(1);
        world.news();
        world.must_grant(&ask(2, &[exclusive("path:src/main.rs")]));
        let expected = ["died path:src/** holder 1", "acquired path:src/main.rs holder 2"];
        assert_eq!(world.news(), expected);
    });
}

#[test]
fn reaping_removes_all_that_is_gone_and_nothing_else() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.pass_ms(TTL_MS);
        world.must_grant(&ask(2, &[exclusive("b"), exclusive("task:7")]));
        world.must_grant(&ask(3, &[exclusive("c")]));
        world.must_wait(&ask(4, &[exclusive("c")]).queued());
        world.must_wait(&ask(5, &[exclusive("c")]).queued());
        world.kill(2);
        world.kill(4);
        world.news();
        assert_eq!(world.reap(None).len(), 3);
        assert_eq!((world.holders(), world.queue()), (vec![3], vec![5]));
        let mut news = world.news();
        news.sort();
        let expected =
            ["died b holder 2", "died task:7 holder 2", "lapsed a holder 1", "left c holder 4"];
        assert_eq!(news, expected);
        assert_eq!(world.reap(None).len(), 0);
        assert_eq!(world.news(), Vec::<String>::new());
    });
}

#[test]
fn reaping_one_kind_leaves_the_others() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a"), exclusive("task:7"), exclusive("path:x")]));
        world.kill(1);
        let removed = world.reap(Some(Kind::Task));
        let names: Vec<String> = removed.iter().map(|s| s.hold.want.resource.to_string()).collect();
        assert_eq!(names, ["task:7"]);
        assert_eq!(world.holders(), [1, 1]);
    });
}

#[test]
fn a_takeover_says_why_and_so_does_its_event() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.kill(1);
        world.pass_ms(TTL_MS + 3_000);
        let words = |world: &World, kind: &str| {
            let event = world.events.iter().rfind(|event| event.kind.word() == kind).unwrap();
            let at = WallTime(world.now_ms as i64);
            Event::new(Revision(1), at, event.clone()).takeover_words()
        };
        for (name, kind, expected) in
            [("a", "died", "process 1 on host is dead"), ("b", "lapsed", "its lease ended 3s ago")]
        {
            let granted = world.must_grant(&ask(3, &[exclusive(name)]));
            assert_eq!(granted.takeovers[0].words(), expected);
            assert_eq!(words(world, kind).as_deref(), Some(expected));
        }
        assert_eq!(words(world, "acquired"), None);
    });
}

#[test]
fn each_reason_has_its_word() {
    for (reason, word) in [
        (Reason::AcquiredNew, "acquired_new"),
        (Reason::AlreadyOwned, "already_owned"),
        (Reason::ClaimedExpired, "claimed_expired"),
        (Reason::ClaimedDead, "claimed_dead"),
    ] {
        assert_eq!(reason.word(), word);
        assert_eq!(serde_json::to_value(reason).unwrap(), word);
    }
}
