//! How long a runner keeps its section.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::rules::tasks::{ClaimAsk, EditAsk, Finish, Finished, ManualChange};

/// What happens to the only claim that a runner has in its section.
#[derive(Debug)]
enum End {
    Lapses,
    Dies,
    IsBroken,
    IsCancelled,
    Finishes(Finish),
}

#[test]
fn a_section_ends_with_the_last_claim_unless_that_was_finished_and_more_is_to_do() {
    let snooze = Finish::Snooze { pause: TTL };
    for (end, more_to_do, is_kept) in [
        (End::Lapses, true, false),
        (End::Dies, true, false),
        (End::IsBroken, true, false),
        (End::IsCancelled, true, false),
        (End::Finishes(Finish::Release), true, false),
        (End::Finishes(Finish::Release), false, false),
        (End::Finishes(complete()), true, true),
        (End::Finishes(complete()), false, false),
        (End::Finishes(snooze.clone()), true, true),
        (End::Finishes(snooze), false, false),
    ] {
        let more = more_to_do.then(|| in_section("b"));
        let mut world = World::with(std::iter::once(in_section("a")).chain(more).collect());
        let holder = holder("w", Some(7));
        world.try_claim(ClaimAsk { task: Some(id("a")), holder, ..claim_ask("w") }).unwrap();
        match &end {
            End::Lapses => world.pass(TTL),
            End::Dies => drop(world.dead.0.insert(7)),
            End::IsBroken => world.break_first("task:a"),
            End::IsCancelled => {
                let by = "boss".to_owned();
                world.act(&EditAsk { task: id("a"), verb: ManualChange::Cancel, by }).unwrap();
            }
            End::Finishes(finish) => {
                let finished = world.finish("w", "a", finish.clone());
                let Finished::Done { gave_up_section, .. } = finished else { panic!("{end:?}") };
                assert_eq!(gave_up_section, !is_kept, "{end:?} {more_to_do}");
            }
        }
        world.recover();
        let kept = world.held().contains(&"section:S".to_owned());
        assert_eq!(kept, is_kept, "{end:?} {more_to_do}");
        if !is_kept && more_to_do {
            world.claim("v", "b");
        }
    }
}

#[test]
fn a_section_stays_with_a_runner_that_has_another_task_there() {
    for end in [End::IsBroken, End::IsCancelled, End::Finishes(Finish::Release)] {
        let mut world = World::with(vec![in_section("a"), in_section("b")]);
        world.claim("w", "a");
        world.claim("w", "b");
        match &end {
            End::IsBroken => world.break_first("task:a"),
            End::IsCancelled => {
                let by = "boss".to_owned();
                world.act(&EditAsk { task: id("a"), verb: ManualChange::Cancel, by }).unwrap();
            }
            _ => drop(world.finish("w", "a", Finish::Release)),
        }
        world.recover();
        assert_eq!(world.held(), ["path:b/**", "section:S", "task:b"], "{end:?}");
        assert!(matches!(world.finish("w", "b", complete()), Finished::Done { .. }), "{end:?}");
    }
}
