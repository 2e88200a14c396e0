//! What an owner holds already covers what it asks for, and what it does not cover is refused.

use crate::support::{AskExt, ask, exclusive, grant_id, in_every_view, number_of, shared, slot};
use std::time::Duration;
use tenure_core::{Ask, Reason};

/// A request for a detached lease by an agent with this label.
fn detached(number: u32, label: &str, wants: &[tenure_core::Want]) -> Ask {
    ask(number, wants).untied().owned_by(label)
}

#[test]
fn the_same_again_is_already_owned_and_takes_the_new_length_and_operation() {
    in_every_view(|world| {
        let first = world.must_grant(&detached(1, "alice", &[exclusive("a")]));
        let again = Ask {
            operation: Some("the second".to_owned()),
            ..detached(2, "alice", &[exclusive("a")]).lasting_ms(5_000)
        };
        let second = world.must_grant(&again);
        assert_eq!((second.reason, second.token), (Reason::AlreadyOwned, first.token));
        let owned = second.owned.unwrap();
        assert_eq!((number_of(owned.grant), owned.ttl), (1, Duration::from_secs(5)));
        assert_eq!(owned.holder.label, "alice");
        assert_eq!(world.holders(), [1], "there is one hold");
        assert_eq!(world.holds[0].hold.operation.as_deref(), Some("the second"));
        world.pass_ms(1_000);
        assert_eq!(world.must_be_busy(&detached(3, "bob", &[exclusive("a")])), [1]);
    });
}

#[test]
fn what_is_included_in_a_hold_goes_under_it_and_leaves_it_as_it_is() {
    in_every_view(|world| {
        let glob = detached(1, "alice", &[exclusive("path:src/**")]).lasting_ms(5_000);
        let glob = world.must_grant(&glob);
        let file = world.must_grant(&detached(2, "alice", &[exclusive("path:src/a.rs")]));
        assert_eq!((file.reason, file.token), (Reason::AlreadyOwned, glob.token));
        let owned = file.owned.unwrap();
        assert_eq!(owned.resources, ["path:src/**".parse().unwrap()]);
        assert_eq!(owned.ttl, Duration::from_secs(5), "a shorter request does not shorten it");
        let shared = world.must_grant(&detached(3, "alice", &[shared("path:src/b.rs")]));
        assert_eq!(shared.reason, Reason::AlreadyOwned);
        assert_eq!(world.holders(), [1]);
    });
}

#[test]
fn a_hold_that_is_tied_to_a_process_is_owned_by_that_hold_alone() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]).owned_by("alice"));
        assert_eq!(world.must_be_busy(&detached(2, "alice", &[exclusive("a")])), [1]);
        let queued = ask(3, &[exclusive("a")]).owned_by("alice").queued();
        world.must_wait(&queued);
    });
}

#[test]
fn a_detached_lease_does_not_cover_a_command_of_the_same_label() {
    in_every_view(|world| {
        world.must_grant(&detached(1, "alice", &[exclusive("a")]));
        let command = ask(2, &[exclusive("a")]).owned_by("alice");
        assert_eq!(world.must_be_busy(&command), [1]);
        let cycle = world.must_deadlock(&command.clone().queued());
        assert!(cycle.own_lease, "{cycle:?}");
        // Unless its grant is passed on.
        let under = world.must_grant(&command.owning(&[1]));
        assert_eq!(under.reason, Reason::AlreadyOwned);
        assert_eq!(number_of(under.owned.unwrap().grant), 1);
    });
}

#[test]
fn a_grant_that_is_passed_on_covers_and_its_lease_stays_as_it_is() {
    in_every_view(|world| {
        let outer = ask(1, &[exclusive("a"), exclusive("path:src/**")]).lasting_ms(5_000);
        let outer = world.must_grant(&outer);
        let inner = ask(2, &[exclusive("path:src/a.rs"), exclusive("a")]).owning(&[1]);
        let inner = world.must_grant(&inner);
        assert_eq!((inner.reason, inner.token), (Reason::AlreadyOwned, outer.token));
        assert_eq!(inner.owned.unwrap().ttl, Duration::from_secs(5));
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("a")]).owning(&[2])), [1]);
    });
}

#[test]
fn what_is_only_partly_covered_is_taken_beside_what_covers_it() {
    in_every_view(|world| {
        world.of_one_owner.extend([1, 2].map(grant_id));
        world.must_grant(&ask(1, &[exclusive("a")]));
        let both = world.must_grant(&ask(2, &[exclusive("a"), exclusive("b")]).owning(&[1]));
        assert_eq!((both.reason, both.owned), (Reason::AcquiredNew, None));
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("b")])), [2]);
        world.release(1, &["a"]);
        assert_eq!(world.must_be_busy(&ask(3, &[exclusive("a")])), [2], "held as long as asked");
    });
}

#[test]
fn what_the_owner_holds_and_does_not_cover_is_refused_at_once() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("path:src/a.rs"), shared("s")]));
        for wants in [exclusive("path:src/**"), exclusive("s")] {
            let wider = ask(2, &[wants]).owning(&[1]);
            assert_eq!(world.must_be_busy(&wider), [1]);
            let cycle = world.must_deadlock(&wider.queued());
            assert_eq!((cycle.steps.len(), cycle.own_lease), (1, false), "its grant was passed on");
        }
        world.must_grant(&detached(4, "alice", &[exclusive("path:doc/a")]));
        let detached = detached(5, "alice", &[exclusive("path:doc/**")]).queued();
        assert!(!world.must_deadlock(&detached).own_lease, "it is not tied to a process");
    });
}

#[test]
fn what_others_hold_or_wait_for_is_in_the_way_of_an_owner_too() {
    in_every_view(|world| {
        world.must_grant(&detached(1, "alice", &[slot("gpu", 2)]));
        world.must_grant(&ask(2, &[slot("gpu", 2)]));
        let again = world.must_grant(&detached(3, "alice", &[slot("gpu", 2)]));
        assert_eq!(again.reason, Reason::AlreadyOwned, "it has its slot");
        assert_eq!(world.must_be_busy(&detached(4, "bob", &[slot("gpu", 2)])).len(), 2);
    });
}

#[test]
fn what_lapsed_covers_nothing() {
    in_every_view(|world| {
        world.must_grant(&detached(1, "alice", &[exclusive("a")]));
        world.pass_ms(10_000);
        let anew = world.must_grant(&detached(2, "alice", &[exclusive("a")]));
        assert_eq!(anew.reason, Reason::ClaimedExpired);
        assert_eq!(world.holders(), [2]);
        world.must_grant(&ask(3, &[exclusive("b")]));
        world.kill(3);
        let anew = world.must_grant(&ask(4, &[exclusive("b")]).owning(&[3]));
        assert_eq!(anew.reason, Reason::ClaimedDead);
        assert_eq!(grant_id(4), world.holds[1].hold.grant);
    });
}

#[test]
fn a_cycle_through_the_leases_of_a_label_is_refused() {
    in_every_view(|world| {
        world.must_grant(&detached(1, "alice", &[exclusive("a")]).lasting_ms(60_000));
        world.must_grant(&detached(2, "bob", &[exclusive("b")]).lasting_ms(60_000));
        world.must_wait(&detached(3, "alice", &[exclusive("b")]).queued());
        let cycle = world.must_deadlock(&detached(4, "bob", &[exclusive("a")]).queued());
        assert_eq!(cycle.steps.len(), 2, "{cycle:?}");
    });
}

#[test]
fn what_covers_a_part_is_no_reason_to_refuse_to_wait_for_the_rest() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_wait(&ask(3, &[exclusive("a"), exclusive("b")]).owning(&[1]).queued());
    });
}

#[test]
fn of_several_holds_that_cover_a_want_the_same_is_named() {
    in_every_view(|world| {
        for (outer, wants) in [
            (1, [exclusive("path:src/**"), exclusive("path:src/x")]),
            (2, [exclusive("path:doc/x"), exclusive("path:doc/**")]),
        ] {
            world.must_grant(&ask(outer, &wants));
            let inner = wants.iter().find(|want| !want.resource.name().contains('*')).unwrap();
            let under = world.must_grant(&ask(9, std::slice::from_ref(inner)).owning(&[outer]));
            assert_eq!(under.owned.unwrap().resources, std::slice::from_ref(&inner.resource));
        }
    });
}

#[test]
fn what_a_waiter_keeps_is_listed_once() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        world.must_wait(&ask(3, &[exclusive("b")]).owning(&[1]).keeping(&[1]).queued());
        assert_eq!(world.waiters[0].waiter.keeps, [grant_id(1)]);
    });
}

/// A request of an agent whose program is process 50.
fn of_agent(number: u32, wants: &[tenure_core::Want]) -> Ask {
    ask(number, wants).by_agent("claude-1", 50, None)
}

#[test]
fn what_an_agent_holds_is_its_own_whatever_took_it_and_ends_with_its_program() {
    in_every_view(|world| {
        let first = world.must_grant(&of_agent(1, &[exclusive("a")]));
        let again = Ask {
            operation: Some("the second".to_owned()),
            ..of_agent(2, &[exclusive("a")]).lasting_ms(5_000)
        };
        let second = world.must_grant(&again);
        assert_eq!((second.reason, second.token), (Reason::AlreadyOwned, first.token));
        assert_eq!(world.holds[0].hold.operation.as_deref(), Some("the second"));
        // A face of the agent that does not see the program's process is the agent all the same.
        let hidden =
            Ask { holder: of_agent(3, &[]).untied().holder, ..of_agent(3, &[exclusive("a")]) };
        assert_eq!(world.must_grant(&hidden).reason, Reason::AlreadyOwned);
        // A command of the agent has an owner of its own, and another agent is a stranger.
        let command = ask(4, &[exclusive("a")]).owned_by("claude-1");
        assert_eq!(world.must_be_busy(&command), [1]);
        assert!(world.must_deadlock(&command.queued()).own_lease);
        let other = ask(5, &[exclusive("a")]).by_agent("claude-2", 51, None);
        assert_eq!(world.must_be_busy(&other), [1]);
        world.kill(50);
        assert_eq!(world.must_grant(&other).reason, Reason::ClaimedDead);
    });
}

#[test]
fn a_subagent_goes_under_its_parent_and_excludes_it_and_its_siblings() {
    in_every_view(|world| {
        let child = |number: u32, label: &str, wants: &[tenure_core::Want]| {
            ask(number, wants).by_agent(label, 50, Some("claude-1"))
        };
        let glob = world.must_grant(&of_agent(1, &[exclusive("path:src/**")]).lasting_ms(5_000));
        world.of_one_owner.extend([1, 2].map(grant_id));
        let file = world.must_grant(&child(2, "claude-1/a", &[exclusive("path:src/x")]));
        assert_eq!((file.reason, &file.owned), (Reason::AcquiredNew, &None));
        assert!(file.token > glob.token, "a hold of its own");
        let again = world.must_grant(&child(3, "claude-1/a", &[exclusive("path:src/x")]));
        assert_eq!((again.reason, again.token), (Reason::AlreadyOwned, file.token));
        // It excludes its siblings, and its parent from what it has; strangers as before.
        assert_eq!(world.must_be_busy(&child(8, "claude-1/b", &[exclusive("path:src/x")])), [2]);
        assert_eq!(world.must_be_busy(&of_agent(8, &[exclusive("path:src/x")])), [2]);
        assert_eq!(world.must_be_busy(&ask(8, &[exclusive("path:src/x")])), [1, 2]);
        let rest = world.must_grant(&of_agent(8, &[exclusive("path:src/y")]));
        assert_eq!((rest.reason, rest.token), (Reason::AlreadyOwned, glob.token));
        // A command around the whole session is around its siblings too.
        world.of_one_owner.insert(grant_id(7));
        world.must_grant(&ask(7, &[exclusive("path:doc/**")]));
        let around = |number: u32, label: &str| {
            let mut ask = child(number, label, &[exclusive("path:doc/x")]);
            ask.owner.grants = vec![grant_id(7)];
            ask
        };
        world.of_one_owner.insert(grant_id(9));
        assert_eq!(world.must_grant(&around(9, "claude-1/a")).reason, Reason::AcquiredNew);
        assert_eq!(world.must_be_busy(&around(8, "claude-1/b")), [9]);
        // When its parent's hold ends, its own stays.
        world.release(1, &["path:src/**"]);
        assert_eq!(world.must_be_busy(&ask(8, &[exclusive("path:src/**")])), [2]);
        world.release(2, &["path:src/x"]);

        world.must_grant(&child(4, "claude-1/a", &[exclusive("doc")]));
        assert_eq!(world.must_be_busy(&of_agent(5, &[exclusive("doc")])), [4]);
        assert_eq!(world.must_be_busy(&child(6, "claude-1/b", &[exclusive("doc")])), [4]);
        assert_eq!(
            world.must_grant(&child(7, "claude-1/a", &[exclusive("doc")])).reason,
            Reason::AlreadyOwned
        );
    });
}

#[test]
fn a_family_does_not_queue_behind_those_that_wait_for_it() {
    in_every_view(|world| {
        let child = |number: u32, label: &str, wants: &[tenure_core::Want]| {
            ask(number, wants).by_agent(label, 50, Some("claude-1"))
        };
        world.of_one_owner.extend([1, 3, 6].map(grant_id));
        world.must_grant(&of_agent(1, &[exclusive("path:src/**")]).lasting_ms(60_000));
        world.must_wait(&ask(2, &[exclusive("path:src/**")]).queued());
        let first = child(3, "claude-1/a", &[exclusive("path:src/x")]).lasting_ms(60_000);
        assert_eq!(world.must_grant(&first).reason, Reason::AcquiredNew);
        // A sibling and the parent wait for that one, in order, and no cycle is seen.
        world.must_wait(&child(4, "claude-1/b", &[exclusive("path:src/x")]).queued());
        world.must_wait(&of_agent(5, &[exclusive("path:src/x")]).queued());
        world.release(3, &["path:src/x"]);
        let late = world.must_be_busy(&child(6, "claude-1/c", &[exclusive("path:src/x")]));
        assert!(late.contains(&4) || late.contains(&5), "{late:?}");
        let sibling = child(4, "claude-1/b", &[exclusive("path:src/x")]).queued();
        world.of_one_owner.insert(grant_id(4));
        assert_eq!(world.must_grant(&sibling).reason, Reason::AcquiredNew);
    });
}

#[test]
fn several_leases_of_an_agent_cover_together_and_none_is_in_the_way_of_more() {
    in_every_view(|world| {
        world.of_one_owner.extend((1..=9).map(grant_id));
        let names = |world: &crate::support::World| world.holders();
        world.must_grant(&of_agent(1, &[exclusive("a")]));
        world.must_grant(&of_agent(2, &[exclusive("b")]));
        // All of it is held, under two grants: one grant for both, beside them.
        world.must_grant(&of_agent(3, &[exclusive("a"), exclusive("b")]));
        assert_eq!(names(world), [1, 2, 3, 3]);
        // The next time that grant covers both.
        let again = world.must_grant(&of_agent(4, &[exclusive("b"), exclusive("a")]));
        assert_eq!(again.reason, Reason::AlreadyOwned);
        // A part is held, the rest is free.
        let part = world.must_grant(&of_agent(5, &[exclusive("a"), exclusive("c")]));
        assert_eq!(part.reason, Reason::AcquiredNew);
        // More than what is held.
        world.must_grant(&of_agent(6, &[exclusive("path:src/x"), shared("s")]));
        world.must_grant(&of_agent(7, &[exclusive("path:src/**")]));
        world.must_grant(&of_agent(8, &[exclusive("s")]));
        // Unless others are in the way.
        world.must_grant(&ask(20, &[exclusive("path:doc/y")]));
        world.must_grant(&of_agent(9, &[exclusive("path:doc/x")]));
        assert_eq!(world.must_be_busy(&of_agent(10, &[exclusive("path:doc/**")])), [20]);
        world.must_wait(&of_agent(11, &[exclusive("path:doc/**")]).queued());
    });
}

#[test]
fn only_the_same_agent_or_process_changes_the_length_of_its_lease() {
    let wants = [exclusive("a")];
    let command = |number, process| ask(number, &wants).owned_by("alice").by_process(process);
    // The hold, what goes under it, and whether its lease is then as long as the second asks for.
    for (first, second, changes) in [
        (detached(1, "alice", &wants), detached(2, "alice", &wants), true),
        (of_agent(1, &wants), ask(2, &wants).by_agent("claude-1", 51, None), true),
        (command(1, 7), command(2, 7).owning(&[1]), true),
        (command(1, 7), command(2, 8).owning(&[1]), false),
        (command(1, 7), detached(2, "alice", &wants).owning(&[1]), false),
        (detached(1, "alice", &wants), command(2, 7).owning(&[1]), false),
    ] {
        in_every_view(|world| {
            world.must_grant(&first);
            let under = world.must_grant(&second.clone().lasting_ms(5_000));
            let found = (under.reason, under.owned.unwrap().ttl == Duration::from_secs(5));
            assert_eq!(found, (Reason::AlreadyOwned, changes), "{first:?} {second:?}");
        });
    }
}
