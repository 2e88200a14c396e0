//! Changes by hand.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::act::DeleteTasks;
use tenure_core::rules::tasks::{EditError, Finish, Finished, ManualChange, NewTask, TaskChange};
use tenure_core::{Kind, Resource, Status, Task, WallTime};

fn reject() -> ManualChange {
    ManualChange::Reject { feedback: "again".into() }
}

/// A world in which `a` has this status, by its worker or by hand.
fn standing_at(status: Status) -> World {
    let task = NewTask { max_attempts: 1, ..in_section("a") };
    let mut world = World::with(vec![task, after("next", &["a"]), plain("other")]);
    let ends = |world: &mut World, finish: Finish| {
        world.claim("w", "a");
        world.finish_well("w", "a", finish);
    };
    match status {
        Status::Pending => {}
        Status::InProgress => drop(world.claim("w", "a")),
        Status::Review => ends(&mut world, review()),
        Status::Completed => ends(&mut world, complete()),
        Status::Failed => ends(&mut world, fail(false)),
        Status::Cancelled => drop(world.edit("a", ManualChange::Cancel).unwrap()),
        Status::Skipped => drop(world.edit("a", ManualChange::Skip).unwrap()),
        Status::Blocked => {
            world.claim("w", "a");
            world.pass(SECTION_TTL);
            world.recover();
        }
    }
    assert_eq!(world.status("a"), status);
    world.pass(TTL);
    world
}

/// A change, the word for it, and where it leads from where.
type Change = (ManualChange, &'static str, &'static [(Status, Status)]);

#[test]
fn each_change_is_possible_from_where_it_makes_sense() {
    use Status::*;
    let changes: [Change; 5] = [
        (ManualChange::Approve, "approved", &[(Review, Completed)]),
        (reject(), "rejected", &[(Review, Pending)]),
        (
            ManualChange::Cancel,
            "cancelled",
            &[
                (Pending, Cancelled),
                (InProgress, Cancelled),
                (Review, Cancelled),
                (Blocked, Cancelled),
            ],
        ),
        (
            ManualChange::Retry,
            "retried",
            &[(Blocked, Pending), (Failed, Pending), (Cancelled, Pending), (Skipped, Pending)],
        ),
        (
            ManualChange::Skip,
            "skipped",
            &[(Pending, Skipped), (Blocked, Skipped), (Failed, Skipped)],
        ),
    ];
    for (change, word, moves) in changes {
        for status in Status::ALL {
            let mut world = standing_at(status);
            let before = world.tasks.clone();
            let case = format!("{status} {word}");
            world.news();
            let answer = world.edit("a", change.clone());
            let Some((_, to)) = moves.iter().find(|(from, _)| *from == status) else {
                let (id, what) = (id("a"), word.to_owned());
                assert_eq!(answer, Err(EditError::WrongStatus { id, status, what }), "{case}");
                assert_eq!(world.tasks, before, "{case}");
                continue;
            };
            let task = answer.unwrap();
            let kept = world.task("a").clone().redacted();
            assert_eq!((task.status, &task), (*to, &kept), "{case}");
            let satisfies = matches!(to, Completed | Skipped);
            assert_eq!(world.task("next").unmet, u32::from(!satisfies), "{case}");
            let word = if word == "cancelled" && status == InProgress {
                "cancelled task:a w"
            } else {
                word
            };
            assert!(world.news().iter().any(|line| line.starts_with(word)), "{case}");
            assert!(world.last_was_durable, "{case}");
            let wall = world.wall();
            assert_eq!(task.finished_at, to.is_final().then_some(wall), "{case}");
            let by = match to {
                Completed => Some("w"),
                Cancelled | Skipped => Some("boss"),
                _ => None,
            };
            assert_eq!(task.finished_by.as_deref(), by, "{case}");
            assert_eq!(task.finished_claim.is_some(), *to == Completed, "{case}");
        }
    }
}

#[test]
fn each_change_leaves_its_mark() {
    let mut world = standing_at(Status::Review);
    assert_eq!(world.edit("a", reject()).unwrap().feedback.as_deref(), Some("again"));
    let change = put_off(&world);
    let task = world.edit("a", change).unwrap();
    assert_eq!(task.not_before, Some(WallTime(world.wall().0 + 60_000)));
    assert_eq!(task.feedback.as_deref(), Some("again"));
    let mut world = standing_at(Status::Blocked);
    let before = world.task("a").clone();
    assert_eq!((before.attempts, before.recoveries), (1, 1));
    let skipped = world.edit("a", ManualChange::Skip).unwrap();
    assert_eq!((skipped.attempts, skipped.recoveries), (1, 1));
    let retried = world.edit("a", ManualChange::Retry).unwrap();
    assert_eq!((retried.attempts, retried.recoveries, retried.not_before), (0, 0, None));
    let mut world = World::with(vec![plain("a")]);
    let change = put_off(&world);
    world.edit("a", change).unwrap();
    world.edit("a", ManualChange::Cancel).unwrap();
    assert_eq!(world.edit("a", ManualChange::Retry).unwrap().not_before, None);
}

#[test]
fn what_was_skipped_and_is_to_be_done_after_all_is_waited_for_again() {
    let mut world = World::with(vec![plain("a"), plain("b"), after("c", &["a", "b"])]);
    let unmet = |world: &World| world.task("c").unmet;
    assert_eq!(unmet(&world), 2);
    world.edit("a", ManualChange::Skip).unwrap();
    assert_eq!(unmet(&world), 1);
    world.edit("b", ManualChange::Cancel).unwrap();
    assert_eq!(unmet(&world), 1);
    world.edit("a", ManualChange::Retry).unwrap();
    assert_eq!(unmet(&world), 2);
}

#[test]
fn a_worker_whose_task_is_cancelled_loses_all_of_it() {
    for keeps in [true, false] {
        let mut world = World::with(vec![in_section("a"), in_section("b")]);
        match keeps {
            true => world.claim("w", "a"),
            false => world.claim_alone("w", "a"),
        };
        let waiting = ["path:a/x", "section:S"].map(|name| world.queue_for(name));
        world.news();
        world.edit("a", ManualChange::Cancel).unwrap();
        assert_eq!(world.held(), [""; 0]);
        let mut news = world.news();
        news.sort();
        assert_eq!(news, ["cancelled task:a w", "released path:a/** w", "released section:S w"]);
        assert_eq!(world.last_woken, waiting);
        assert!(matches!(world.finish("w", "a", complete()), Finished::NotYours(_)));
    }
}

#[test]
fn a_cancelled_task_is_told_of_even_if_its_hold_was_broken() {
    let mut world = World::with(vec![in_section("a")]);
    world.claim("w", "a");
    world.break_first("task:a");
    world.news();
    world.edit("a", ManualChange::Cancel).unwrap();
    let mut news = world.news();
    news.sort();
    assert_eq!(news, ["cancelled task:a boss", "released path:a/** w", "released section:S w"]);
}

/// An update, and what it does to the task.
type Update = (TaskChange, fn(&mut Task));

#[test]
fn an_update_changes_what_it_names_and_nothing_else() {
    let change = TaskChange::default;
    let cases: [Update; 11] = [
        (change(), |_| {}),
        (TaskChange { title: Some("T".into()), ..change() }, |task| task.title = "T".into()),
        (TaskChange { description: Some("D".into()), ..change() }, |task| {
            task.description = Some("D".into());
        }),
        (TaskChange { section: Some("U".into()), ..change() }, |task| {
            task.section = Some("U".into());
        }),
        (TaskChange { section: Some(String::new()), ..change() }, |task| task.section = None),
        (TaskChange { priority: Some(100), position: Some(-3), ..change() }, |task| {
            (task.priority, task.position) = (100, -3);
        }),
        (TaskChange { payload: Some("[]".into()), ..change() }, |task| {
            task.payload = Some("[]".into());
        }),
        (TaskChange { max_attempts: Some(0), ..change() }, |task| task.max_attempts = 1),
        (TaskChange { not_before: Some(WallTime(5)), max_attempts: Some(7), ..change() }, |task| {
            (task.not_before, task.max_attempts) = (Some(WallTime(5)), 7);
        }),
        (TaskChange { files: Some(vec!["src/**".into()]), ..change() }, |task| {
            task.files = vec!["src/**".into()];
        }),
        (TaskChange { files: Some(vec![]), ..change() }, |task| task.files.clear()),
    ];
    for (change, expected) in cases {
        let full = NewTask {
            description: Some("old".into()),
            payload: Some("{}".into()),
            not_before: Some(WallTime(1)),
            ..in_section("a")
        };
        let mut world = World::with(vec![full, after("next", &["a"])]);
        let mut task = world.task("a").clone();
        let next = world.task("next").clone();
        expected(&mut task);
        world.news();
        let answer = world.edit("a", ManualChange::Update(Box::new(change.clone()))).unwrap();
        assert_eq!((&answer, world.task("a")), (&task, &task), "{change:?}");
        assert_eq!(world.task("next"), &next);
        assert_eq!(world.news(), ["updated task:a boss"]);
        assert!(world.last_was_durable);
    }
}

#[test]
fn an_update_that_cannot_be_is_refused() {
    let change = TaskChange::default;
    let mut world = World::with(vec![plain("a")]);
    let before = world.tasks.clone();
    let error = Resource::new(Kind::Section, "a\nb").unwrap_err();
    let outside = Resource::new(Kind::Path, "../x").unwrap_err();
    for (change, expected) in [
        (TaskChange { priority: Some(101), ..change() }, EditError::Priority { priority: 101 }),
        (TaskChange { section: Some("a\nb".into()), ..change() }, EditError::Name(error)),
        (TaskChange { files: Some(vec!["../x".into()]), ..change() }, EditError::Name(outside)),
    ] {
        let answer = world.edit("a", ManualChange::Update(Box::new(change)));
        assert_eq!(answer, Err(expected));
        assert_eq!(world.tasks, before);
    }
    let none = world.edit("none", ManualChange::Cancel);
    assert_eq!(none, Err(EditError::NotFound { id: id("none") }));
}

#[test]
fn a_task_that_is_worked_on_may_be_updated_and_stays_its_workers() {
    let mut world = World::with(vec![in_section("a")]);
    let claimed = world.claim("w", "a");
    let change = TaskChange { title: Some("T".into()), ..TaskChange::default() };
    let answer = world.edit("a", ManualChange::Update(Box::new(change))).unwrap();
    assert!(answer.claim.unwrap().grant.is_veiled(), "others do not learn the grant");
    assert_eq!(world.task("a").claim.as_ref().unwrap().grant, claimed.grant);
    assert_eq!(world.held().len(), 3);
    let done = world.finish_well("w", "a", complete());
    assert_eq!(done.title, "T");
    for (section, expected) in [("", true), ("S", false), ("T", true)] {
        let mut world = World::with(vec![in_section("a")]);
        world.claim("w", "a");
        let change = TaskChange { section: Some(section.into()), ..TaskChange::default() };
        let answer = world.edit("a", ManualChange::Update(Box::new(change)));
        let refused = answer == Err(EditError::InProgress { id: id("a"), by: "w".into() });
        assert_eq!(refused, expected, "{section:?}");
    }
    for (files, expected) in [(vec!["a/**"], false), (vec!["b/**"], true), (vec![], true)] {
        let mut world = World::with(vec![in_section("a")]);
        world.claim("w", "a");
        let files = files.into_iter().map(str::to_owned).collect();
        let change = TaskChange { files: Some(files), ..TaskChange::default() };
        let answer = world.edit("a", ManualChange::Update(Box::new(change)));
        let refused = answer == Err(EditError::InProgress { id: id("a"), by: "w".into() });
        assert_eq!(refused, expected);
    }
}

#[test]
fn a_task_is_deleted_if_it_is_no_ones_and_nothing_waits_for_it() {
    let delete = |name: &str| DeleteTasks { task: id(name), by: "boss".into() };
    for status in Status::ALL {
        let mut world = standing_at(status);
        let expected = match status {
            Status::InProgress => EditError::InProgress { id: id("a"), by: "w".into() },
            _ => EditError::HasDependents { id: id("a"), dependent: id("next") },
        };
        assert_eq!(world.act(&delete("a")), Err(expected), "{status}");
        world.act(&delete("next")).unwrap();
        if status == Status::InProgress {
            assert!(world.act(&delete("a")).is_err());
            continue;
        }
        let before = world.task("a").clone().redacted();
        world.news();
        assert_eq!(world.act(&delete("a")), Ok(before), "{status}");
        assert_eq!(world.news(), ["deleted task:a boss"]);
        assert!(world.last_was_durable);
        let left: Vec<&str> = world.tasks.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(left, ["other"]);
    }
    let answer = World::with(vec![]).act(&delete("a"));
    assert_eq!(answer, Err(EditError::NotFound { id: id("a") }));
}
