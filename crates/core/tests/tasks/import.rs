//! Taking over lists from elsewhere.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::rules::tasks::{AddAsk, AddError, ImportAsk, Imported, NewTask, SectionError};
use tenure_core::{Scope, Section};

fn import(
    world: &mut World,
    tasks: Vec<NewTask>,
    sections: Vec<Section>,
) -> Result<Imported, AddError> {
    world.act(&ImportAsk { add: AddAsk { tasks, by: "me".into() }, sections })
}

fn titled(name: &str, title: &str) -> NewTask {
    NewTask::new(id(name), title)
}

fn keyed(name: &str, key: &str) -> NewTask {
    NewTask { key: Some(key.into()), ..plain(name) }
}

fn paused(name: &str) -> Section {
    Section { paused: true, ..Section::named(name) }
}

#[test]
fn only_what_is_not_there_is_added() {
    let mut world = World::with(vec![titled("a", "A"), keyed("k", "key")]);
    world.claim("w", "a");
    let before = world.task("a").clone();
    let tasks = vec![titled("new", "N"), titled("a", "A"), keyed("other", "key"), plain("last")];
    let imported = import(&mut world, tasks, vec![]).unwrap();
    assert_eq!(imported.added, [id("new"), id("last")]);
    assert_eq!(imported.existing, [id("a"), id("k")]);
    assert!(imported.sections.is_empty());
    assert_eq!(world.task("a"), &before, "what is there stays as it is");
    assert!(world.last_was_durable);
}

#[test]
fn a_new_task_may_wait_for_one_that_is_there() {
    let mut world = World::with(vec![titled("a", "A")]);
    import(&mut world, vec![titled("a", "A"), after("b", &["a"])], vec![]).unwrap();
    assert_eq!(world.task("b").unmet, 1);
}

#[test]
fn one_that_is_wrong_stops_all_of_it() {
    let bad_name =
        AddError::Sections(SectionError::Name(Section::named("").resource().unwrap_err()));
    let high = Section { priority: 101, ..Section::named("high") };
    let high_error = SectionError::Priority { name: "high".into(), priority: 101 };
    let waits = |name: &str, on: &str| Section { depends_on: vec![on.into()], ..paused(name) };
    let cycle = SectionError::Cycle { cycle: vec!["x".into(), "y".into()] };
    let exists = AddError::Exists { id: id("a") };
    let cases = [
        (vec![titled("a", "Other")], vec![], exists),
        (vec![], vec![paused("")], bad_name),
        (vec![], vec![high], high_error.into()),
        (vec![], vec![waits("x", "y"), waits("y", "x")], cycle.into()),
    ];
    for (mut tasks, mut sections, expected) in cases {
        let mut world = World::with(vec![titled("a", "A")]);
        let before = world.tasks.clone();
        tasks.insert(0, plain("fine"));
        sections.insert(0, paused("fine"));
        assert_eq!(import(&mut world, tasks, sections), Err(expected));
        assert_eq!(world.tasks, before);
        assert_eq!(world.sections, []);
    }
}

#[test]
fn a_section_is_described_where_that_says_something_and_it_is_new() {
    let said = Section { max_runners: Some(4), ..Section::named("said") };
    let usual = Section::named("usual");
    let used = NewTask { section: Some("used".into()), ..plain("a") };
    let mut world = World::with_sections(vec![used], vec![said.clone(), usual]);
    world.news();
    let sections =
        ["said", "usual", "used", "new"].map(paused).into_iter().chain([Section::named("nothing")]);
    let imported = import(&mut world, vec![], sections.collect()).unwrap();
    assert_eq!(imported.sections, ["new"]);
    assert_eq!(imported.kept_sections, ["said", "usual", "used"]);
    assert!(world.last_was_durable);
    assert_eq!(world.news(), ["paused section:new me"]);
    assert_eq!(world.seen().section("said"), said);
    for name in ["usual", "used"] {
        assert_eq!(world.seen().section(name), Section::named(name));
    }
    assert_eq!(world.seen().section("new"), paused("new"));
}

#[test]
fn ages_are_those_of_the_tasks_whatever_is_said_of_sections() {
    let mut world = World::with(vec![]);
    import(&mut world, vec![plain("a"), plain("b")], vec![paused("S")]).unwrap();
    import(&mut world, vec![plain("c")], vec![paused("T")]).unwrap();
    let ages: Vec<u64> = world.tasks.iter().map(|task| task.age).collect();
    assert_eq!(ages, [1, 2, 4]);
    assert_eq!(
        world.news()[2..],
        ["paused section:S me", "added task:c me", "paused section:T me"]
    );
}

#[test]
fn the_same_list_again_changes_nothing() {
    let mut world = World::with(vec![]);
    let list = || (vec![titled("a", "A"), keyed("b", "k")], vec![paused("S")]);
    import(&mut world, list().0, list().1).unwrap();
    let (tasks, events) = (world.tasks.clone(), world.events.len());
    let again = import(&mut world, list().0, list().1).unwrap();
    assert_eq!(again.existing, [id("a"), id("b")]);
    assert!(again.added.is_empty() && again.sections.is_empty());
    assert_eq!((world.tasks.clone(), world.events.len()), (tasks, events));
}

/// A scope with all sections excludes every claim meanwhile.
#[test]
fn all_sections_are_looked_at_only_if_some_are_imported() {
    for (sections, expected) in [(vec![], false), (vec![paused("S")], true)] {
        let add = AddAsk { tasks: vec![plain("a")], by: "me".into() };
        let Scope::Tasks(scope) = (ImportAsk { add, sections }).scope() else {
            panic!("tasks are looked at");
        };
        assert_eq!((scope.all_sections, scope.adds), (expected, true));
    }
}
