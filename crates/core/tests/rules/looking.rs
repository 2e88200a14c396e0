//! A rule asks to look wider only where the part that it saw does not settle the matter.

use crate::support::{AskExt, TTL_MS, View, World, ask, exclusive, grant_id, number_of};
use crate::support::{shared, slot};
use std::cell::RefCell;
use std::collections::BTreeSet;
use tenure_core::{
    Decision, Evidence, Liveness, Outcome, Proof, ReleaseAsk, Scope, Witness, rules,
};

fn wider_looks(view: View, step: impl Fn(&mut World)) -> usize {
    let mut world = World::new(view);
    world.must_grant(&ask(1, &[exclusive("a")]));
    world.must_grant(&ask(2, &[slot("c", 2)]));
    world.must_grant(&ask(3, &[slot("c", 2)]));
    for number in 10..=14 {
        world.must_wait(&ask(number, &[exclusive("a")]).queued());
        world.must_wait(&ask(number + 10, &[shared("a")]).queued());
        world.must_wait(&ask(number + 20, &[slot("c", 2)]).queued());
    }
    let before = world.wider_looks;
    step(&mut world);
    world.wider_looks - before
}

/// What happens, in words and in steps.
type Situation = (&'static str, fn(&mut World));

#[test]
fn what_a_front_settles_needs_no_wider_look() {
    let settled: [Situation; 9] = [
        ("a newcomer is refused", |world| {
            world.must_be_busy(&ask(50, &[shared("a")]));
        }),
        ("a newcomer queues", |world| {
            world.must_wait(&ask(50, &[shared("a")]).queued());
        }),
        ("one far back gives a sign of life", |world| {
            world.must_wait(&ask(24, &[shared("a")]).queued());
        }),
        ("the holder asks again", |world| {
            world.must_grant(&ask(1, &[exclusive("a")]));
        }),
        ("the head is woken", |world| {
            world.release(1, &["a"]);
            world.must_grant(&ask(10, &[exclusive("a")]).queued());
        }),
        ("a slot comes free", |world| {
            world.release(2, &["c"]);
            world.must_grant(&ask(30, &[slot("c", 2)]).queued());
        }),
        ("the head is dead", |world| {
            world.kill(10);
            world.kill(20);
            world.leave(24);
        }),
        ("one far back leaves", |world| {
            world.leave(24);
        }),
        ("a hold is broken", |world| {
            world.break_hold("a", tenure_core::Token(1));
        }),
    ];
    for (what, step) in settled {
        assert_eq!(wider_looks(View::Front(3), step), 0, "{what}");
    }
}

#[test]
fn what_a_front_does_not_settle_needs_one() {
    let open: [Situation; 3] = [
        ("all that is visible is dead", |world| {
            world.kill(10);
            world.release(1, &["a"]);
            assert_eq!(world.woken(), [20]);
        }),
        ("everybody visible can go", |world| {
            world.release(1, &["a"]);
            world.must_grant(&ask(10, &[exclusive("a")]).queued());
            world.release(10, &["a"]);
            assert_eq!(world.woken(), [20]);
            world.leave(11);
            assert_eq!(world.woken(), [20, 21]);
        }),
        ("a newcomer passes all who are visible", |world| {
            world.must_grant(&ask(51, &[exclusive("path:docs/**")]));
            world.must_grant(&ask(52, &[exclusive("path:src/x")]));
            world.must_wait(&ask(53, &[exclusive("path:src/*")]).queued());
            world.must_wait(&ask(54, &[exclusive("path:docs/x")]).queued());
            assert_eq!(world.must_be_busy(&ask(55, &[exclusive("path:docs/z")])), [51]);
            world.must_grant(&ask(56, &[exclusive("path:tests/**")]));
        }),
    ];
    for (what, step) in open {
        assert!(wider_looks(View::Front(1), step) > 0, "{what}");
    }
}

#[test]
fn what_overlaps_tells_enough_unless_a_cycle_could_close() {
    let step = |world: &mut World| {
        world.must_wait(&ask(50, &[exclusive("a")]).queued());
        world.kill(10);
        world.release(1, &["a"]);
        world.leave(20);
        world.must_be_busy(&ask(51, &[exclusive("a")]).keeping(&[2]));
        world.must_grant(&ask(52, &[exclusive("d")]).queued().keeping(&[2]));
    };
    assert_eq!(wider_looks(View::Asked, step), 0);
    let keeps_and_queues = |world: &mut World| {
        world.must_wait(&ask(51, &[exclusive("a")]).queued().keeping(&[2]));
    };
    assert_eq!(wider_looks(View::Asked, keeps_and_queues), 1);
    assert_eq!(wider_looks(View::Whole, keeps_and_queues), 0);
}

/// Remembers whom it was asked about. All live, but one dies as soon as it was looked at.
struct Diary {
    asked: RefCell<Vec<u32>>,
    dying: u32,
}

impl Witness for Diary {
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        let pid = evidence.process.unwrap().pid;
        let again = self.asked.borrow().contains(&pid);
        self.asked.borrow_mut().push(pid);
        if again && pid == self.dying { Liveness::Dead } else { Liveness::Alive }
    }
}

fn looked_at_by_release(world: &World, number: u32) -> Vec<u32> {
    let diary = Diary { asked: RefCell::default(), dying: 0 };
    let ask = ReleaseAsk { proof: Proof::Grant(grant_id(number)), resources: None, lost: false };
    rules::release(&world.show(&Scope::Everything), &ask, &diary);
    diary.asked.into_inner()
}

#[test]
fn a_release_looks_at_one_process_however_many_hold_and_wait() {
    let mut world = World::new(View::Whole);
    for number in 1..=9 {
        world.must_grant(&ask(number, &[shared("a")]));
    }
    for number in 10..=30 {
        world.must_wait(&ask(number, &[exclusive("a")]).queued());
    }
    assert_eq!(looked_at_by_release(&world, 9), [1], "one living reader settles it");
    for number in 1..=8 {
        world.release(number, &["a"]);
    }
    assert_eq!(looked_at_by_release(&world, 9), [10], "the head is woken if it lives");
}

#[test]
fn a_process_that_dies_while_a_rule_decides_is_judged_once() {
    let mut world = World::new(View::Whole);
    world.must_grant(&ask(1, &[exclusive("a")]));
    world.must_grant(&ask(2, &[exclusive("b")]));
    world.must_wait(&ask(3, &[exclusive("a")]).queued());
    let asker = ask(4, &[exclusive("a"), exclusive("b")]).queued();
    world.must_wait(&asker);
    world.release(1, &["a"]);
    world.pass_ms(TTL_MS);
    let diary = Diary { asked: RefCell::default(), dying: 3 };
    let (decision, outcome) = rules::acquire(&world.show(&Scope::Everything), &asker, &diary);
    // Had 3 been found dead later on, nobody would be left to be woken.
    assert!(matches!(outcome, Outcome::Waiting { .. }), "{outcome:?}");
    let Decision::Write(change) = decision else { panic!("b has lapsed: {decision:?}") };
    assert_eq!(change.wake.into_iter().map(number_of).collect::<Vec<_>>(), [3]);
    let asked = diary.asked.into_inner();
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "{asked:?}");
}
