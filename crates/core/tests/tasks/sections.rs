//! Describing sections, and how long a runner keeps one.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::Section;
use tenure_core::act::{ChangeSections, PutSection};
use tenure_core::rules::tasks::{
    ClaimAsk, EditAsk, Finish, Finished, ManualChange, NewTask, SectionChange, SectionError,
};

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

#[test]
fn only_the_section_of_the_claim_and_of_its_runner_ends() {
    let of = |name: &str, section: &str| NewTask { section: Some(section.into()), ..plain(name) };
    let two = Section { max_runners: Some(2), ..Section::named("S") };
    let mut world = World::with_sections(vec![of("a", "S"), of("b", "T"), of("c", "S")], vec![two]);
    world.claim("w", "a");
    world.claim("w", "b");
    world.claim("v", "c");
    world.break_first("task:a");
    world.recover();
    assert_eq!(world.held(), ["section:S", "section:T", "task:b", "task:c"]);
    world.finish_well("w", "b", complete());
    world.finish_well("v", "c", complete());
    assert_eq!(world.held(), ["section:S"], "a is ready again, so v keeps the section");
}

fn change(name: &str, change: SectionChange) -> (String, SectionChange) {
    (name.to_owned(), change)
}

fn after_sections(names: &[&str]) -> SectionChange {
    let depends_on = names.iter().map(|name| (*name).to_owned()).collect();
    SectionChange { depends_on: Some(depends_on), ..SectionChange::default() }
}

fn change_all(
    world: &mut World,
    changes: Vec<(String, SectionChange)>,
) -> Result<Vec<Section>, SectionError> {
    world.act(&ChangeSections { changes, by: "boss".into() })
}

/// A change, what it does to the section, and the word for it.
type Case = (SectionChange, fn(&mut Section), &'static str);

#[test]
fn a_change_sets_what_it_names_and_nothing_else() {
    let none = SectionChange::default;
    let old = Section {
        name: "S".into(),
        max_runners: Some(3),
        priority: 7,
        position: -2,
        depends_on: vec!["T".into()],
        paused: false,
    };
    let cases: [Case; 8] = [
        (none(), |_| {}, "updated"),
        (SectionChange { max_runners: Some(None), ..none() }, |s| s.max_runners = None, "updated"),
        (
            SectionChange { max_runners: Some(Some(9)), ..none() },
            |s| s.max_runners = Some(9),
            "updated",
        ),
        (SectionChange { priority: Some(100), ..none() }, |s| s.priority = 100, "updated"),
        (SectionChange { position: Some(5), ..none() }, |s| s.position = 5, "updated"),
        (SectionChange { paused: Some(true), ..none() }, |s| s.paused = true, "paused"),
        (SectionChange { paused: Some(false), ..none() }, |_| {}, "updated"),
        (
            after_sections(&["U", "T", "U"]),
            |s| s.depends_on = vec!["T".into(), "U".into()],
            "updated",
        ),
    ];
    for (one, expected, word) in cases {
        let others = [Section::named("T"), Section::named("U")];
        let sections = [old.clone()].into_iter().chain(others.clone()).collect();
        let mut world = World::with_sections(vec![], sections);
        let mut section = old.clone();
        expected(&mut section);
        let answer = change_all(&mut world, vec![change("S", one.clone())]).unwrap();
        assert_eq!(answer, std::slice::from_ref(&section), "{one:?}");
        assert_eq!(world.seen().section("S"), section, "{one:?}");
        assert_eq!(world.seen().section("T"), others[0], "{one:?}");
        assert_eq!(world.news(), [format!("{word} section:S boss")], "{one:?}");
        assert!(world.last_was_durable);
    }
}

#[test]
fn a_pause_that_ends_is_told() {
    let mut world = World::with_sections(vec![], vec![]);
    for (paused, word) in
        [(true, "paused"), (true, "updated"), (false, "resumed"), (false, "updated")]
    {
        world.pause("S", paused);
        assert_eq!(world.news(), [format!("{word} section:S boss")]);
    }
}

#[test]
fn one_change_that_cannot_be_stops_all_of_them() {
    let high = SectionChange { priority: Some(101), ..SectionChange::default() };
    let cycle = |names: &[&str]| SectionError::Cycle {
        cycle: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let priority = SectionError::Priority { name: "S".into(), priority: 101 };
    let missing = SectionError::NoSuchDependency { name: "S".into(), missing: "none".into() };
    let name = SectionError::Name(Section::named("").resource().unwrap_err());
    for (bad, expected) in [
        (change("S", high), priority),
        (change("", SectionChange::default()), name),
        (change("S", after_sections(&["T", "none"])), missing),
        (change("S", after_sections(&["S"])), cycle(&["S"])),
        (change("S", after_sections(&["T"])), cycle(&["S", "T"])),
    ] {
        let t = Section { depends_on: vec!["S".into()], ..Section::named("T") };
        let mut world = World::with_sections(vec![], vec![Section::named("S"), t]);
        let before = world.sections.clone();
        let fine = change("fine", SectionChange { paused: Some(true), ..Default::default() });
        assert_eq!(change_all(&mut world, vec![fine, bad]), Err(expected));
        assert_eq!(world.sections, before);
        assert!(world.news().is_empty());
    }
}

#[test]
fn sections_of_one_change_may_wait_for_each_other_in_a_row() {
    let mut world = World::with(vec![NewTask { section: Some("used".into()), ..plain("a") }]);
    let changes =
        vec![change("A", after_sections(&["B", "used"])), change("B", SectionChange::default())];
    assert_eq!(change_all(&mut world, changes).unwrap().len(), 2);
    let back = change_all(&mut world, vec![change("B", after_sections(&["A"]))]);
    let cycle = ["B", "A"].map(ToOwned::to_owned).to_vec();
    assert_eq!(back, Err(SectionError::Cycle { cycle }));
}

#[test]
fn a_section_is_described_whole() {
    let put = |section: Section| PutSection { section, by: "boss".into() };
    let mut world = World::with(vec![]);
    // It may wait for one that is not there yet.
    let section = Section { depends_on: vec!["later".into()], ..Section::named("S") };
    world.act(&put(section.clone())).unwrap();
    assert_eq!(world.sections, std::slice::from_ref(&section));
    assert!(world.last_was_durable);
    for bad in [
        Section { priority: 101, ..Section::named("S") },
        Section { depends_on: vec!["S".into()], ..Section::named("S") },
        Section { depends_on: vec!["S".into()], ..Section::named("later") },
        Section::named(""),
    ] {
        assert!(world.act(&put(bad.clone())).is_err(), "{bad:?}");
        assert_eq!(world.sections, std::slice::from_ref(&section));
    }
    world.act(&put(Section { priority: 100, ..Section::named("S") })).unwrap();
    assert_eq!(world.sections[0].priority, 100);
}

#[test]
fn any_number_of_runners_is_not_the_same_as_nothing_said() {
    for max_runners in [None, Some(None), Some(Some(4))] {
        let change = SectionChange { max_runners, ..SectionChange::default() };
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<SectionChange>(&text).unwrap(), change, "{text}");
    }
}
