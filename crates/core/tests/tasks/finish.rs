//! What a worker says of its task, once and twice.

use crate::support::World;
use crate::support::tasks::*;
use std::time::Duration;
use tenure_core::act::StartTask;
use tenure_core::rules::tasks::{Finish, FinishAsk, Finished, ManualChange, NewTask};
use tenure_core::{EventKind, FinishedClaim, GrantId, Proof, Status, Token, WallTime};

#[test]
fn the_same_worker_may_say_the_same_again() {
    for (first, status) in
        [(complete(), Status::Completed), (fail(false), Status::Failed), (review(), Status::Review)]
    {
        let mut world = World::with(vec![plain("a")]);
        let claimed = world.claim("w", "a");
        assert!(matches!(
            world.finish("w", "a", first.clone()),
            Finished::Done { repeated: false, .. }
        ));
        assert_eq!(world.status("a"), status);
        assert_eq!(world.task("a").finished_by.as_deref(), Some("w"));
        let before = world.tasks.clone();
        let again = |proof: Proof, token: Option<Token>| FinishAsk {
            proof,
            token,
            ..finish_ask("w", "a", first.clone())
        };
        let (label, grant) = (Proof::Label("w".into()), Proof::Grant(claimed.grant));
        for (proof, token, counts) in [
            (label.clone(), None, true),
            (label.clone(), Some(claimed.token), true),
            (label, Some(Token(claimed.token.0 + 1)), false),
            (grant, None, true),
            (Proof::Label("v".into()), None, false),
            (Proof::Grant(GrantId::random()), None, false),
        ] {
            let answer = world.finish_by(again(proof.clone(), token));
            let repeated = matches!(answer, Finished::Done { repeated: true, .. });
            assert_eq!(repeated, counts, "{status} {token:?}: {answer:?}");
            assert_eq!(world.tasks, before);
        }
    }
}

#[test]
fn something_else_than_before_is_refused() {
    for (first, second) in
        [(complete(), fail(false)), (fail(false), complete()), (complete(), Finish::Release)]
    {
        let mut world = World::with(vec![plain("a")]);
        world.claim("w", "a");
        world.finish("w", "a", first);
        assert!(matches!(world.finish("w", "a", second), Finished::NotYours(_)));
    }
}

#[test]
fn who_finished_a_task_is_kept_until_it_is_to_be_done_again() {
    let mut world = World::with(vec![plain("a"), plain("b")]);
    world.claim("w", "a");
    world.finish("w", "a", review());
    let rejected = ManualChange::Reject { feedback: "no".into() };
    let rejected = world.edit("a", rejected).unwrap();
    assert_eq!((rejected.finished_by, rejected.finished_claim), (None, None));
    world.claim("v", "a");
    world.finish("v", "a", review());
    let approved = world.edit("a", ManualChange::Approve).unwrap();
    assert_eq!(approved.finished_by.as_deref(), Some("v"));
    assert!(matches!(world.finish("v", "a", review()), Finished::Done { repeated: true, .. }));
    let cancelled = world.edit("b", ManualChange::Cancel).unwrap();
    assert_eq!(cancelled.finished_by.as_deref(), Some("boss"));
    let retried = world.edit("b", ManualChange::Retry).unwrap();
    assert_eq!(retried.finished_by, None);
}

/// How a worker ends its work, and what the task is then: its status, its attempts out of one, what
/// it is put off by in seconds, and the event.
#[test]
fn each_end_leads_where_it_should() {
    let snooze = |seconds| Finish::Snooze { pause: Duration::from_secs(seconds) };
    let result = Some("1".to_owned());
    let cases = [
        (Finish::Complete { result: result.clone() }, Status::Completed, 1, None, "completed"),
        (Finish::Review { result: result.clone() }, Status::Review, 1, None, "sent_to_review"),
        (fail(true), Status::Pending, 1, Some(5), "failed"),
        (fail(false), Status::Failed, 1, None, "failed"),
        (snooze(30), Status::Pending, 0, Some(30), "snoozed"),
        (Finish::Release, Status::Pending, 0, None, "handed_back"),
    ];
    for (finish, status, attempts, put_off, word) in cases {
        let task =
            NewTask { error: Some("old".into()), result: Some("0".into()), ..in_section("a") };
        let mut world = World::with(vec![task]);
        // It was taken back once before.
        world.claim("w", "a");
        world.pass(SECTION_TTL);
        world.recover();
        world.edit("a", ManualChange::Update(Box::default())).unwrap();
        let claimed = world.claim("w", "a");
        assert_eq!(claimed.task.recoveries, 1);
        world.news();
        let task = world.finish_well("w", "a", finish.clone());
        assert_eq!(&task, world.task("a"), "{finish:?}");
        assert_eq!((task.status, task.attempts), (status, attempts + 1), "{finish:?}");
        let until = put_off.map(|seconds: i64| WallTime(world.wall().0 + seconds * 1_000));
        let until = until.map(|time| if word == "failed" { back_off_of(time) } else { time });
        assert_eq!(task.not_before, until, "{finish:?}");
        assert_eq!((task.recoveries, task.claim.clone()), (0, None), "{finish:?}");
        let gives_result = matches!(finish, Finish::Complete { .. } | Finish::Review { .. });
        let expected = if gives_result { result.clone() } else { Some("0".into()) };
        assert_eq!(task.result, expected, "{finish:?}");
        let error = task.error.as_deref();
        match &finish {
            Finish::Complete { .. } | Finish::Review { .. } => assert_eq!(error, None),
            Finish::Fail { .. } => assert_eq!(error, Some("x")),
            _ => assert_eq!(error, Some("its worker w died or fell silent")),
        }
        let is_done = status.is_final() || status == Status::Review;
        let by = is_done.then(|| "w".to_owned());
        assert_eq!(task.finished_by, by, "{finish:?}");
        let (grant, token) = (claimed.grant, claimed.token);
        assert_eq!(task.finished_claim, is_done.then_some(FinishedClaim::new(grant, token)));
        assert_eq!(world.held(), [""; 0], "{finish:?}");
        let mut news = world.news();
        news.sort();
        let mut expected = [
            format!("{word} task:a w"),
            "released path:a/** w".into(),
            "released section:S w".into(),
        ];
        expected.sort();
        assert_eq!(news, expected, "{finish:?}");
        assert!(world.last_was_durable);
    }
}

/// The second pause is twice as long as the first.
fn back_off_of(first: WallTime) -> WallTime {
    WallTime(first.0 + 5_000)
}

#[test]
fn each_failure_doubles_the_pause_up_to_a_limit() {
    let pauses = [5, 10, 20, 40, 80, 160, 320, 600, 600];
    let mut world = World::with(vec![NewTask { max_attempts: 99, ..plain("a") }]);
    for (attempt, pause) in pauses.into_iter().chain(std::iter::repeat_n(600, 20)).enumerate() {
        world.claim("w", "a");
        let task = world.finish_well("w", "a", fail(true));
        let until = world.wall().0 + pause * 1_000;
        assert_eq!(task.not_before, Some(WallTime(until)), "attempt {}", attempt + 1);
        world.pass(Duration::from_secs(pause as u64));
    }
}

#[test]
fn a_failure_is_the_last_when_no_attempt_is_left() {
    for (max_attempts, expected) in [(1, 1), (2, 2), (4, 4)] {
        let mut world = World::with(vec![NewTask { max_attempts, ..plain("a") }]);
        world.news();
        let mut tries = 0;
        while world.status("a") == Status::Pending {
            world.claim("w", "a");
            tries += 1;
            world.finish_well("w", "a", fail(true));
            let retry = tries < max_attempts;
            let kind = EventKind::Failed { reason: "x".into(), retry };
            assert_eq!(world.events.last().unwrap().kind, kind);
            world.pass(SECTION_TTL);
        }
        assert_eq!((world.status("a"), tries), (Status::Failed, expected));
    }
}

#[test]
fn a_pause_without_end_is_not_one_into_the_past() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let task = world.finish_well("w", "a", Finish::Snooze { pause: Duration::MAX });
    assert_eq!(task.not_before, Some(WallTime(i64::MAX)));
}

#[test]
fn only_the_worker_that_has_the_task_may_end_it() {
    let mut world = World::with(vec![plain("a"), plain("b")]);
    let claimed = world.claim("w", "a");
    world.claim("v", "b");
    let label = |label: &str| Proof::Label(label.into());
    let wrong = Some(Token(claimed.token.0 + 1));
    for (task, proof, token, expected) in [
        ("none", label("w"), None, "not found"),
        ("a", label("v"), None, "not yours"),
        ("a", Proof::Grant(GrantId::random()), None, "not yours"),
        ("a", label("w"), wrong, "not yours"),
        ("a", Proof::Grant(claimed.grant), wrong, "not yours"),
        ("b", label("w"), None, "not yours"),
        ("b", Proof::Grant(claimed.grant), None, "not yours"),
        ("a", label("w"), None, "done"),
        ("a", label("w"), Some(claimed.token), "done"),
        ("a", Proof::Grant(claimed.grant), None, "done"),
    ] {
        let ask = FinishAsk { proof, token, ..finish_ask("w", task, complete()) };
        let case = format!("{task} {:?} {token:?}", ask.proof);
        for starts in [true, false] {
            let mut after = world.clone();
            let answer = match starts {
                true => after.act(&StartTask { ask: ask.clone() }),
                false => after.finish_by(ask.clone()),
            };
            let said = match &answer {
                Finished::NotFound => "not found",
                Finished::NotYours(task) => {
                    let claim = task.claim.as_ref().unwrap();
                    assert!(claim.grant.is_veiled(), "others do not learn the grant");
                    "not yours"
                }
                Finished::Done { repeated: false, .. } => "done",
                other => panic!("{other:?}"),
            };
            assert_eq!(said, expected, "{case}");
            assert_eq!(after.tasks == world.tasks, said != "done", "{case}");
        }
    }
}

#[test]
fn a_start_is_noted() {
    let mut world = World::with(vec![plain("a")]);
    assert_eq!(world.start("w", "none"), Finished::NotFound);
    assert!(matches!(world.start("w", "a"), Finished::NotYours(_)));
    world.claim("w", "a");
    world.pass(TTL / 2);
    let Finished::Done { task, gave_up_section: false, repeated: false } = world.start("w", "a")
    else {
        panic!("not started")
    };
    assert_eq!(task.started_at, Some(world.wall()));
    assert_eq!(world.task("a"), &task);
    assert!(world.last_was_durable);
}

#[test]
fn those_that_wait_begin_when_all_they_wait_for_is_completed() {
    for (finish, frees) in [
        (complete(), true),
        (review(), false),
        (fail(false), false),
        (fail(true), false),
        (Finish::Release, false),
    ] {
        let mut world = World::with(vec![
            plain("a"),
            plain("b"),
            after("one", &["a"]),
            after("both", &["a", "b"]),
        ]);
        world.claim("w", "a");
        world.finish_well("w", "a", finish.clone());
        let unmet = (world.task("one").unmet, world.task("both").unmet);
        assert_eq!(unmet, if frees { (0, 1) } else { (1, 2) }, "{finish:?}");
    }
}

/// What else is in the section when its runner completes `a`, and whether the runner keeps it.
#[test]
fn a_runner_keeps_its_section_while_there_is_something_to_do_in_it() {
    let in_s = |task: NewTask| NewTask { section: Some("S".into()), ..task };
    let with = |status| NewTask { status, ..plain("b") };
    let later = NewTask { not_before: Some(WallTime(i64::MAX)), ..plain("b") };
    let two = NewTask { depends_on: vec![id("a"), id("c")], ..plain("b") };
    let cases = [
        ("nothing", vec![], false),
        ("another task", vec![in_s(plain("b"))], true),
        (
            "one of another section",
            vec![NewTask { section: Some("T".into()), ..plain("b") }],
            false,
        ),
        ("one of no section", vec![plain("b")], false),
        ("one that is done", vec![in_s(with(Status::Completed))], false),
        ("one in review", vec![in_s(with(Status::Review))], false),
        ("one whose time has not come", vec![in_s(later)], false),
        ("one that waited for this alone", vec![in_s(after("b", &["a"]))], true),
        ("one that waits for another too", vec![plain("c"), in_s(two)], false),
        ("one that waits for another", vec![plain("c"), in_s(after("b", &["c"]))], false),
        (
            "one that waited for this and is cancelled",
            vec![in_s(NewTask { depends_on: vec![id("a")], ..with(Status::Cancelled) })],
            false,
        ),
    ];
    for (what, others, is_kept) in cases {
        let tasks = [in_s(plain("a"))].into_iter().chain(others).collect();
        let mut world = World::with(tasks);
        world.claim("w", "a");
        let Finished::Done { gave_up_section, .. } = world.finish("w", "a", complete()) else {
            panic!("{what}")
        };
        assert_eq!(gave_up_section, !is_kept, "{what}");
        assert_eq!(world.held().contains(&"section:S".into()), is_kept, "{what}");
    }
}

#[test]
fn what_waited_for_a_task_is_no_reason_to_stay_if_that_did_not_free_it() {
    for finish in [fail(false), review(), Finish::Snooze { pause: TTL }] {
        let waiting = NewTask { section: Some("S".into()), ..after("b", &["a"]) };
        let mut world = World::with(vec![in_section("a"), waiting]);
        world.claim("w", "a");
        world.finish_well("w", "a", finish.clone());
        assert_eq!(world.held(), [""; 0], "{finish:?}");
    }
}

#[test]
fn what_a_task_frees_in_another_section_is_no_reason_to_stay() {
    let freed = NewTask { section: Some("T".into()), ..after("b", &["a"]) };
    let mut world = World::with(vec![in_section("a"), freed]);
    world.claim("w", "a");
    world.finish_well("w", "a", complete());
    assert!(world.is_ready(world.task("b")));
    assert_eq!(world.held(), [""; 0]);
}

#[test]
fn a_section_is_given_up_only_by_the_runner_that_keeps_it() {
    let (own, other) = (Some(runner("w")), Some(runner("v")));
    // Whether the section is kept from task to task, under which runner the task is finished, and
    // whether the section was given up by that, and is held afterwards.
    for (keeps, runner, gives_up, is_held) in [
        (true, own, true, false),
        (true, other, false, true),
        (true, None, false, true),
        (false, own, false, false),
        (false, None, false, false),
    ] {
        let mut world = World::with(vec![in_section("a")]);
        match keeps {
            true => world.claim("w", "a"),
            false => world.claim_alone("w", "a"),
        };
        let ask = FinishAsk { runner, ..finish_ask("w", "a", complete()) };
        let Finished::Done { gave_up_section, .. } = world.finish_by(ask) else { panic!() };
        assert_eq!((gave_up_section, !world.held().is_empty()), (gives_up, is_held), "{runner:?}");
    }
}

#[test]
fn whoever_waits_for_what_a_task_held_is_woken() {
    for finish in [complete(), fail(true), Finish::Release] {
        let mut world = World::with(vec![in_section("a")]);
        world.claim("w", "a");
        let names = ["path:a/x", "task:a", "section:S", "path:b"];
        world.take("path:b");
        let waiting = names.map(|name| world.queue_for(name));
        world.finish_well("w", "a", finish);
        let woken = world.last_woken.clone();
        let expected: Vec<_> = waiting[..3].to_vec();
        assert_eq!(woken, expected);
    }
}

#[test]
fn the_usual_ends_are_made_in_a_word() {
    assert_eq!(Finish::completed(), complete());
    let result = Some("[1,2]".to_owned());
    assert_eq!(Finish::completed_with(&[1, 2]).unwrap(), Finish::Complete { result });
    assert_eq!(Finish::failed("x"), fail(false));
    assert_eq!(Finish::failed_for_now("x"), fail(true));
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let task = world.finish_well("w", "a", Finish::completed_with(&[1, 2]).unwrap());
    assert_eq!(task.result_as::<Vec<u32>>().unwrap(), Some(vec![1, 2]));
}
