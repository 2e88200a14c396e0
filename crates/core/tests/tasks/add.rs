//! Adding tasks: what is refused, what is there already, and what a new task looks like.

use crate::support::World;
use crate::support::tasks::*;
use std::time::Duration;
use tenure_core::rules::tasks::{AddAsk, AddError, Added, NewTask};
use tenure_core::{Kind, Note, Resource, Scope, Status, Task, TaskId, TaskScope, WallTime};

fn add(world: &mut World, tasks: Vec<NewTask>) -> Result<Vec<Added>, AddError> {
    world.act(&AddAsk { tasks, by: "me".into() })
}

fn keyed(name: &str, key: &str) -> NewTask {
    NewTask { key: Some(key.into()), ..plain(name) }
}

#[test]
fn what_is_wrong_with_one_task_stops_all_of_them() {
    let bad = || id("bad");
    let missing = |missing: &str| AddError::NoSuchDependency { id: bad(), missing: id(missing) };
    let cycle =
        |names: &[&str]| AddError::Cycle { cycle: names.iter().map(|name| id(name)).collect() };
    let bad_section = NewTask { section: Some("a\nb".into()), ..plain("bad") };
    let error = Resource::new(Kind::Section, "a\nb").unwrap_err();
    let section = AddError::Section { id: bad(), error };
    let bad_file = NewTask { files: vec!["ok".into(), "/absolute".into()], ..plain("bad") };
    let error = Resource::new(Kind::Path, "/absolute").unwrap_err();
    let file = AddError::File { id: bad(), error };
    let no_title = NewTask { title: " \t".into(), ..plain("bad") };
    let cases = [
        (vec![plain("old")], AddError::Exists { id: id("old") }),
        (vec![plain("bad"), plain("bad")], AddError::Twice { id: bad() }),
        (vec![after("bad", &["none"])], missing("none")),
        // Of several that are missing, the first in order is named.
        (vec![after("bad", &["z", "old", "m", "x"])], missing("m")),
        (vec![after("bad", &["bad"])], cycle(&["bad"])),
        // The one before the cycle is not part of it.
        (vec![after("a", &["b"]), after("b", &["c"]), after("c", &["b"])], cycle(&["b", "c"])),
        (
            vec![NewTask { priority: 101, ..plain("bad") }],
            AddError::Priority { id: bad(), priority: 101 },
        ),
        (vec![no_title], AddError::NoTitle { id: bad() }),
        (vec![bad_section], section),
        (vec![bad_file], file),
    ];
    for (mut tasks, expected) in cases {
        let mut world = World::with(vec![plain("old")]);
        let before = world.tasks.clone();
        tasks.insert(0, plain("fine"));
        assert_eq!(add(&mut world, tasks), Err(expected.clone()));
        assert_eq!(world.tasks, before, "{expected}");
    }
}

#[test]
fn a_long_cycle_is_named_in_part() {
    for (length, expected) in [
        (9, "0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 0"),
        (10, "0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9 → 0"),
        (11, "0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9 → (1 more) → 0"),
        (15, "0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9 → (5 more) → 0"),
    ] {
        let next = |number: usize| ((number + 1) % length).to_string();
        let ring = (0..length).map(|number| after(&number.to_string(), &[&next(number)]));
        let said = add(&mut World::with(vec![]), ring.collect()).unwrap_err().to_string();
        assert!(said.ends_with(&format!(": {expected}")), "{said}");
    }
}

#[test]
fn many_ways_to_one_task_are_no_cycle() {
    let mut tasks = vec![plain("0"), after("1", &["0"])];
    for number in 2..200 {
        // Without remembering what was looked at, there are more ways than could ever be walked.
        let before = [number - 1, number - 2].map(|number: i32| number.to_string());
        tasks.push(after(&number.to_string(), &[&before[0], &before[1]]));
    }
    tasks.reverse();
    let mut world = World::with(vec![]);
    assert_eq!(add(&mut world, tasks).unwrap().len(), 200);
    assert_eq!(world.tasks.iter().filter(|task| task.unmet == 0).count(), 1);
}

#[test]
fn a_long_chain_needs_no_deep_stack() {
    let task = |number: u32| after(&number.to_string(), &[&(number + 1).to_string()]);
    let chain = (0..20_000).map(task).chain([plain("20000")]).collect();
    let ask = AddAsk { tasks: chain, by: "me".into() };
    let (_, answer) = tenure_core::rules::tasks::add(&tenure_core::Snapshot::empty(), &ask);
    assert_eq!(answer.unwrap().len(), 20_001);
}

#[test]
fn a_second_task_with_a_key_is_not_added() {
    let mut world = World::with(vec![keyed("old", "k")]);
    let twin = NewTask { title: "".into(), priority: 200, ..keyed("twin", "k") };
    let tasks = vec![
        twin,
        keyed("first", "new"),
        keyed("second", "new"),
        // A task that is not added may have the id of another.
        keyed("old", "new"),
        plain("plain"),
    ];
    let answer = add(&mut world, tasks).unwrap();
    let (new, existing) = (|name| Added::New(id(name)), |name| Added::Existing(id(name)));
    let expected =
        [existing("old"), new("first"), existing("first"), existing("first"), new("plain")];
    assert_eq!(answer, expected);
    let names: Vec<&str> = world.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(names, ["old", "first", "plain"]);
    assert_eq!(world.news()[1..], ["added task:first me", "added task:plain me"]);
    assert_eq!(add(&mut world, vec![keyed("third", "k")]), Ok(vec![existing("old")]));
    assert!(!world.last_was_durable, "nothing was written");
}

#[test]
fn a_task_does_not_wait_for_one_that_was_not_added() {
    let mut world = World::with(vec![keyed("old", "k")]);
    let answer = add(&mut world, vec![keyed("twin", "k"), after("b", &["twin"])]);
    assert_eq!(answer, Err(AddError::NoSuchDependency { id: id("b"), missing: id("twin") }));
}

#[test]
fn what_a_task_waits_for_counts_once_and_not_if_it_is_done() {
    let done = NewTask { status: Status::Completed, ..plain("done") };
    let skipped = NewTask { status: Status::Skipped, ..plain("skipped") };
    let failed = NewTask { status: Status::Failed, ..plain("failed") };
    let mut world = World::with(vec![plain("old"), done, skipped, failed]);
    let new_and_done = NewTask { status: Status::Completed, ..plain("new-done") };
    let cases: [(&str, &[&str], u32); 6] = [
        ("a", &[], 0),
        ("b", &["old"], 1),
        ("c", &["old", "old", "a", "old"], 2),
        ("d", &["done", "skipped", "new-done"], 0),
        ("e", &["failed", "done", "old", "a"], 3),
        ("f", &["skipped", "e"], 1),
    ];
    let mut tasks: Vec<NewTask> = cases.iter().map(|(name, on, _)| after(name, on)).collect();
    tasks.push(new_and_done);
    add(&mut world, tasks).unwrap();
    for (name, depends_on, unmet) in cases {
        let task = world.task(name);
        assert_eq!(task.unmet, unmet, "{name}");
        let mut expected: Vec<TaskId> = depends_on.iter().map(|name| id(name)).collect();
        expected.sort();
        expected.dedup();
        assert_eq!(task.depends_on, expected, "{name}");
    }
}

fn note(text: &str) -> Note {
    Note { by: "w".into(), at: WallTime(9), text: text.into() }
}

#[test]
fn a_new_task_has_what_was_given_and_the_usual() {
    let full = NewTask {
        id: id("full"),
        title: "Title".into(),
        description: Some("In full".into()),
        section: Some("S".into()),
        status: Status::Pending,
        priority: 100,
        position: -7,
        depends_on: vec![],
        labels: vec!["l".into()],
        files: vec!["src/**".into()],
        payload: Some("{}".into()),
        max_attempts: 9,
        timeout: Some(Duration::from_secs(5)),
        not_before: Some(WallTime(77)),
        key: Some("k".into()),
        result: Some("1".into()),
        error: Some("e".into()),
        finished_by: Some("w".into()),
        notes: vec![note("n")],
    };
    let mut world = World::with(vec![]);
    add(&mut world, vec![full, NewTask { max_attempts: 0, ..plain("bare") }]).unwrap();
    let task = world.task("full").clone();
    let mut expected = Task::new(id("full"), "Title", world.wall());
    expected.description = Some("In full".into());
    expected.section = Some("S".into());
    expected.priority = 100;
    expected.position = -7;
    expected.age = 1;
    expected.labels = vec!["l".into()];
    expected.files = vec!["src/**".into()];
    expected.payload = Some("{}".into());
    expected.max_attempts = 9;
    expected.timeout = Some(Duration::from_secs(5));
    expected.not_before = Some(WallTime(77));
    expected.key = Some("k".into());
    expected.result = Some("1".into());
    expected.error = Some("e".into());
    expected.notes = vec![note("n")];
    assert_eq!(task, expected);
    let bare = world.task("bare");
    assert_eq!((bare.age, bare.priority, bare.position, bare.max_attempts), (2, 50, 0, 1));
}

#[test]
fn an_imported_status_is_kept_but_for_work_in_progress() {
    for status in Status::ALL {
        let finished_by = Some("w".to_owned());
        let mut world = World::with(vec![NewTask { status, finished_by, ..plain("a") }]);
        let (kept, is_final, is_done) = match status {
            Status::InProgress | Status::Pending => (Status::Pending, false, false),
            Status::Review => (status, false, true),
            Status::Blocked => (status, false, false),
            status => (status, true, true),
        };
        let task = world.task("a").clone();
        assert_eq!(task.status, kept);
        assert_eq!(task.finished_at, is_final.then(|| world.wall()), "{status}");
        assert_eq!(task.finished_by.is_some(), is_done, "{status}");
        assert!(world.last_was_durable);
        world.pass(TTL);
        add(&mut world, vec![plain("b")]).unwrap();
        assert_eq!(world.task("b").created_at.0 - task.created_at.0, TTL.as_millis() as i64);
    }
}

#[test]
fn a_task_needs_only_a_title_and_carries_values() {
    let task = NewTask::titled("T").with_payload(&("a", 1)).unwrap();
    assert_eq!((task.title.as_str(), task.payload.as_deref()), ("T", Some("[\"a\",1]")));
    let other = NewTask::titled("T");
    assert_ne!(task.id, other.id, "each has an id of its own");
    let (task_id, other_id) = (task.id.to_string(), other.id.to_string());
    let world = World::with(vec![task, other]);
    let value: Option<(String, u32)> = world.task(&task_id).payload_as().unwrap();
    assert_eq!(value, Some(("a".to_owned(), 1)));
    assert_eq!(world.task(&other_id).payload_as::<u32>().unwrap(), None);
}

/// Two that add at once would give their tasks the same ages.
#[test]
fn additions_exclude_each_other_and_all_that_is_named_is_seen() {
    let keyed = NewTask { key: Some("k".into()), ..after("b", &["a"]) };
    let Scope::Tasks(scope) = AddAsk { tasks: vec![keyed], by: "me".into() }.scope() else {
        panic!("tasks are looked at");
    };
    let keys = vec!["k".to_owned()];
    let expected =
        TaskScope { ids: vec![id("a"), id("b")], keys, adds: true, ..Default::default() };
    assert_eq!(scope, expected);
}
