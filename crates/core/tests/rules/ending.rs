//! Release, break and leave.

use crate::support::{
    AskExt, TTL_MS, View, World, ask, exclusive, grant_id, in_every_view, number_of, shared, slot,
};
use tenure_core::act::CallOff;
use tenure_core::{Holder, Proof, Released, Scope, Token};

fn ended(released: &Released) -> Vec<String> {
    match released {
        Released::Ended(holds) => {
            holds.iter().map(|seen| seen.hold.want.resource.to_string()).collect()
        }
        Released::NotHeld(_) => panic!("nothing was released: {released:?}"),
    }
}

fn held_instead(released: &Released) -> Vec<String> {
    match released {
        Released::NotHeld(others) => {
            others.iter().map(|seen| seen.hold.holder.label.clone()).collect()
        }
        Released::Ended(_) => panic!("something was released: {released:?}"),
    }
}

#[test]
fn the_grant_proves_ownership() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a"), exclusive("b")]));
        world.must_grant(&ask(2, &[shared("c")]));
        world.must_grant(&ask(3, &[shared("c")]));
        world.news();
        assert_eq!(ended(&world.release(1, &["a", "b"])), ["a", "b"]);
        assert_eq!(ended(&world.release(3, &["c"])), ["c"]);
        assert_eq!(world.holders(), [2]);
        let expected = ["released a holder 1", "released b holder 1", "released c holder 3"];
        assert_eq!(world.news(), expected);
    });
}

#[test]
fn only_the_resources_that_were_named_are_released() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a"), exclusive("b"), exclusive("c")]));
        assert_eq!(ended(&world.release(1, &["b"])), ["b"]);
        let rest = world.release_by(Proof::Grant(grant_id(1)), None);
        assert_eq!(ended(&rest), ["a", "c"]);
    });
}

#[test]
fn a_chosen_label_proves_ownership_of_all_that_chose_it() {
    in_every_view(|world| {
        let mut same_label = ask(2, &[exclusive("b")]);
        same_label.holder = ask(1, &[]).holder;
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&same_label);
        world.must_grant(&ask(3, &[exclusive("c")]));
        let released = world.release_by(Proof::Label("holder 1".to_owned()), None);
        assert_eq!(ended(&released), ["a", "b"]);
        assert_eq!(world.holders(), [3]);
    });
}

#[test]
fn a_label_that_was_not_chosen_proves_nothing() {
    in_every_view(|world| {
        let mut anonymous = ask(1, &[exclusive("a")]);
        anonymous.holder = Holder::anonymous("holder 1".to_owned());
        world.must_grant(&anonymous);
        let by_label = Proof::Label("holder 1".to_owned());
        let refused = world.release_by(by_label, Some(&["a"]));
        assert_eq!(held_instead(&refused), ["holder 1"]);
        assert_eq!(ended(&world.release(1, &["a"])), ["a"]);
    });
}

#[test]
fn another_grant_or_label_releases_nothing() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.news();
        assert_eq!(held_instead(&world.release(2, &["a"])), ["holder 1"]);
        let by_label = Proof::Label("holder 2".to_owned());
        assert_eq!(held_instead(&world.release_by(by_label, Some(&["a"]))), ["holder 1"]);
        assert_eq!((world.holders(), world.news()), (vec![1], vec![]));
    });
}

#[test]
fn a_late_release_changes_nothing() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.pass_ms(TTL_MS);
        world.must_grant(&ask(2, &[exclusive("a")]));
        world.must_wait(&ask(3, &[exclusive("a")]).queued());
        world.news();
        assert_eq!(held_instead(&world.release(1, &["a"])), ["holder 2"]);
        assert_eq!((world.holders(), world.queue()), (vec![2], vec![3]));
        assert_eq!((world.news(), world.woken()), (vec![], vec![]));
    });
}

#[test]
fn releasing_twice_changes_nothing_the_second_time() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.release(1, &["a"]);
        world.news();
        assert_eq!(held_instead(&world.release(1, &["a"])), [""; 0]);
        assert_eq!(world.news(), Vec::<String>::new());
    });
}

#[test]
fn what_had_lapsed_is_released_as_lapsed() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.pass_ms(TTL_MS);
        world.news();
        assert_eq!(ended(&world.release(1, &["a"])), ["a"]);
        assert_eq!(world.news(), ["lapsed a holder 1"]);
    });
}

#[test]
fn a_release_need_not_reach_the_disk_but_a_break_must() {
    in_every_view(|world| {
        let grant = world.must_grant(&ask(1, &[exclusive("a")]));
        assert!(!world.last_was_durable);
        world.break_hold("a", grant.token);
        assert!(world.last_was_durable);
        world.must_grant(&ask(2, &[exclusive("a")]));
        world.release(2, &["a"]);
        assert!(!world.last_was_durable);
    });
}

#[test]
fn a_break_ends_the_exact_hold_that_was_seen() {
    in_every_view(|world| {
        let first = world.must_grant(&ask(1, &[slot("a", 2), exclusive("b")]));
        let second = world.must_grant(&ask(2, &[slot("a", 2)]));
        world.news();
        let broken = world.break_hold("a", first.token).unwrap();
        assert_eq!((number_of(broken.hold.grant), broken.hold.token), (1, first.token));
        assert_eq!(world.news(), ["broken a holder 1"]);
        assert_eq!(world.holders(), [1, 2], "b of the first, a of the second");
        assert_eq!(world.break_hold("b", second.token), None, "it does not hold b");
    });
}

#[test]
fn a_break_leaves_a_successor_alone() {
    in_every_view(|world| {
        let first = world.must_grant(&ask(1, &[exclusive("a")]));
        world.release(1, &["a"]);
        let second = world.must_grant(&ask(2, &[exclusive("a")]));
        world.news();
        assert_eq!(world.break_hold("a", first.token), None);
        assert_eq!(world.break_hold("a", Token(second.token.0 + 1)), None);
        assert_eq!((world.holders(), world.news()), (vec![2], vec![]));
    });
}

#[test]
fn a_break_ends_only_the_path_that_was_named() {
    in_every_view(|world| {
        let held = world.must_grant(&ask(1, &[exclusive("path:src/**")]));
        assert_eq!(world.break_hold("path:src/main.rs", held.token), None);
        assert!(world.break_hold("path:src/**", held.token).is_some());
    });
}

#[test]
fn who_leaves_gives_up_its_place_and_only_that() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        for number in 2..=4 {
            world.must_wait(&ask(number, &[exclusive("a")]).queued());
        }
        world.news();
        assert!(world.leave(3));
        assert_eq!((world.holders(), world.queue()), (vec![1], vec![2, 4]));
        assert_eq!(world.news(), ["left a holder 3"]);
        assert!(!world.leave(3), "there is no place any more");
        assert!(!world.leave(1), "a hold is no place");
        assert_eq!(world.news(), Vec::<String>::new());
    });
}

fn call_off(world: &mut World, number: u32, resources: &[&str], is_new: bool) -> bool {
    let resources = resources.iter().map(|name| name.parse().unwrap()).collect();
    world.act(&CallOff { grant: grant_id(number), resources, is_new })
}

#[test]
fn a_request_that_is_called_off_leaves_nothing() {
    in_every_view(|world| {
        world.must_grant(&ask(1, &[exclusive("a")]));
        world.must_grant(&ask(2, &[exclusive("b")]));
        for number in 3..=5 {
            world.must_wait(&ask(number, &[exclusive("a"), exclusive("b")]).queued());
        }
        world.news();
        assert!(!call_off(world, 9, &["a", "b"], true), "there is nothing of it");
        assert!(call_off(world, 4, &["a", "b"], true), "it waited");
        assert_eq!((world.holders(), world.queue()), (vec![1, 2], vec![3, 5]));
        assert_eq!(world.news(), ["left a holder 4", "left b holder 4"]);
        assert!(!call_off(world, 1, &["a"], false), "it had that before");
        assert_eq!(world.holders(), [1, 2]);
        assert!(call_off(world, 1, &["a"], true));
        assert_eq!(world.news(), ["released a holder 1"]);
        assert!(call_off(world, 2, &["b"], true));
        assert_eq!((world.holders(), world.woken()), (vec![], vec![3]));
    });
}

#[test]
fn a_proof_is_recognised_by_those_who_only_look() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("a")]));
    let seen = world.show(&Scope::Everything).holds.remove(0);
    let label = |label: &str| Proof::Label(label.to_owned());
    for (proof, open, redacted) in [
        (Proof::Grant(grant_id(1)), true, true),
        (Proof::Grant(grant_id(2)), false, false),
        (label("holder 1"), true, true),
        (label("holder 2"), false, false),
    ] {
        assert_eq!(proof.recognises(&seen), open, "{proof:?}");
        assert_eq!(proof.recognises(&seen.redacted()), redacted, "{proof:?}");
        let covers = matches!(proof, Proof::Label(_)) && redacted;
        assert_eq!(proof.covers(&seen.redacted()), covers, "{proof:?}");
    }
}
