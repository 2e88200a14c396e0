//! What a task remembers for its next worker: notes, tries, and where the work of a try is found.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::act::Recover;
use tenure_core::handover::{
    NOTE_MAX_BYTES, NOTES_MAX, NOTES_MAX_BYTES, TRIES_MAX, TRY_ERROR_MAX_BYTES, WORKSPACE_MAX_BYTES,
};
use tenure_core::rules::tasks::{
    self, AddAsk, AddError, AddNote, ClaimAsk, DescribeTry, EditError, Finish, ManualChange,
    NewTask,
};
use tenure_core::{
    BreakAsk, Decision, GrantId, Note, NoteError, Status, Task, Token, Try, TryOutcome, WallTime,
    Workspace,
};

fn note(world: &mut World, by: &str, text: &str) -> Result<Task, EditError> {
    world.act(&AddNote { task: id("a"), by: by.into(), text: text.into() })
}

fn texts(task: &Task) -> Vec<&str> {
    task.notes.iter().map(|note| note.text.as_str()).collect()
}

fn last_try(world: &World) -> Try {
    world.task("a").tries.last().unwrap().clone()
}

#[test]
fn a_note_has_its_author_and_time_and_is_told() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    world.news();
    let task = note(&mut world, "carol", "two\nlines").unwrap();
    let expected = Note { by: "carol".into(), at: world.wall(), text: "two\nlines".into() };
    assert_eq!(task.notes, [expected]);
    assert_eq!(world.news(), ["noted task:a carol"]);
    assert!(world.last_was_durable);
    let grant = world.task("a").claim.as_ref().unwrap().grant;
    assert_ne!(task.claim.as_ref().unwrap().grant, grant, "a note teaches no grant");
    assert_eq!(task.notes, world.task("a").notes);
}

#[test]
fn a_task_in_any_state_can_be_noted() {
    let mut world = World::with(vec![plain("a")]);
    for status in Status::ALL {
        let mut task = world.task("a").clone();
        task.status = status;
        world.tasks = vec![task];
        let (decision, noted) = tenure_core::rules::tasks::add_note(
            &world.seen(),
            &AddNote { task: id("a"), by: "w".into(), text: status.word().into() },
            &world.dead,
        );
        assert_eq!(noted.unwrap().status, status);
        assert_eq!(decision.writes().len(), 1);
    }
}

#[test]
fn what_is_no_note_is_refused_with_a_sentence() {
    let long = "x".repeat(NOTE_MAX_BYTES + 1);
    for (text, sentence) in [
        ("", "the note is empty"),
        (" \n\t", "the note is empty"),
        (long.as_str(), "the note has 8193 bytes; the longest allowed is 8192"),
    ] {
        let mut world = World::with(vec![plain("a")]);
        world.news();
        assert_eq!(note(&mut world, "w", text).unwrap_err().to_string(), sentence);
        assert_eq!((world.news().len(), world.task("a").notes.len()), (0, 0));
    }
    let mut world = World::with(vec![]);
    let missing = note(&mut world, "w", "x").unwrap_err();
    assert_eq!(missing, EditError::NotFound { id: id("a") });
    let mut world = World::with(vec![plain("a")]);
    note(&mut world, "w", &long[1..]).unwrap();
}

#[test]
fn the_oldest_notes_are_dropped_beyond_a_number_and_a_size() {
    let mut world = World::with(vec![plain("a")]);
    for number in 0..NOTES_MAX + 3 {
        note(&mut world, "w", &number.to_string()).unwrap();
    }
    let kept = texts(world.task("a")).len();
    assert_eq!((kept, texts(world.task("a"))[0]), (NOTES_MAX, "3"));
    let pages = NOTES_MAX_BYTES / NOTE_MAX_BYTES;
    assert_eq!(pages, 8, "of the longest notes");
    let page = "x".repeat(NOTE_MAX_BYTES);
    for _ in 0..pages {
        note(&mut world, "w", &page).unwrap();
    }
    assert_eq!(texts(world.task("a")).len(), pages);
    note(&mut world, "w", "last").unwrap();
    let task = world.task("a");
    assert_eq!((texts(task).len(), *texts(task).last().unwrap()), (pages, "last"));
}

#[test]
fn imported_notes_are_kept_within_the_same_bounds() {
    let note = |text: &str| Note { by: "w".into(), at: WallTime(1), text: text.into() };
    let with = |notes: Vec<Note>| NewTask { notes, ..plain("a") };
    let world = World::with(vec![with(vec![note("one"), note("two")])]);
    assert_eq!(texts(world.task("a")), ["one", "two"]);
    let world = World::with(vec![with(vec![note("x"); NOTES_MAX + 1])]);
    assert_eq!(texts(world.task("a")).len(), NOTES_MAX);
    let mut world = World::with(vec![]);
    let refused = world.act(&AddAsk { tasks: vec![with(vec![note(" ")])], by: "me".into() });
    let error = NoteError::Empty;
    assert_eq!(refused.unwrap_err(), AddError::Note { id: id("a"), error });
}

#[test]
fn a_try_says_how_it_ended() {
    let fail = |reason: &str| Finish::Fail { reason: reason.into(), retry: true };
    let snooze = Finish::Snooze { pause: TTL };
    for (finish, outcome, error) in [
        (complete(), TryOutcome::Completed, None),
        (fail("no disk"), TryOutcome::Failed, Some("no disk")),
        (fail(""), TryOutcome::Failed, None),
        (review(), TryOutcome::Review, None),
        (snooze, TryOutcome::Snoozed, None),
        (Finish::Release, TryOutcome::Released, None),
    ] {
        let mut world = World::with(vec![plain("a")]);
        world.claim("w", "a");
        let begun = last_try(&world);
        assert_eq!((begun.number, begun.by.as_str(), begun.ended_at), (1, "w", None));
        assert_eq!(begun.claimed_at, world.wall());
        world.pass(TTL / 2);
        world.finish("w", "a", finish);
        let expected = Try {
            ended_at: Some(world.wall()),
            outcome: Some(outcome),
            error: error.map(str::to_owned),
            ..begun
        };
        assert_eq!(world.task("a").tries, [expected]);
    }
}

#[test]
fn a_try_that_was_interrupted_says_by_what() {
    let broken = |resource: &str, token: Token| BreakAsk {
        resource: self::resource(resource),
        token,
        by: "ops".into(),
        reason: "stuck".into(),
    };
    for (what, outcome, error) in [
        ("lapse", TryOutcome::Lapsed, None),
        ("death", TryOutcome::Died, None),
        ("task:a", TryOutcome::Broken, Some("task:a was broken by ops: stuck")),
        ("path:a/**", TryOutcome::Broken, Some("path:a/** was broken by ops: stuck")),
        ("section:S", TryOutcome::Broken, Some("section:S was broken by ops: stuck")),
        ("unsaid task:a", TryOutcome::Lost, None),
        ("unsaid path:a/**", TryOutcome::Lost, Some("path:a/** was lost")),
        ("cancel", TryOutcome::Cancelled, Some("cancelled by boss")),
    ] {
        let mut world = World::with(vec![in_section("a")]);
        let holder = holder("w", Some(7));
        let ask = ClaimAsk { task: Some(id("a")), holder, ..claim_ask("w") };
        let token = world.try_claim(ask).unwrap()[0].token;
        let mut said = None;
        match what {
            "lapse" => world.pass(SECTION_TTL),
            "death" => world.kill(7),
            "cancel" => world.edit("a", ManualChange::Cancel).map(drop).unwrap(),
            _ => {
                let name = what.strip_prefix("unsaid ");
                world.break_first(name.unwrap_or(what));
                said = name.is_none().then(|| broken(what, token));
            }
        }
        world.act(&Recover { recoveries_max: 9, broken: said });
        let last = last_try(&world);
        assert_eq!((last.outcome, last.error.as_deref()), (Some(outcome), error), "{what}");
        assert_eq!(last.ended_at, Some(world.wall()), "{what}");
        let is_interrupted = !matches!(outcome, TryOutcome::Cancelled);
        assert_eq!(outcome.is_interrupted(), is_interrupted, "{what}");
    }
}

#[test]
fn what_was_broken_elsewhere_does_not_count_for_a_try() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    world.break_first("task:a");
    let (by, reason) = ("ops".to_owned(), "stuck".to_owned());
    let earlier = BreakAsk { resource: resource("task:a"), token: Token(0), by, reason };
    world.act(&Recover { recoveries_max: 9, broken: Some(earlier) });
    assert_eq!(last_try(&world).outcome, Some(TryOutcome::Lost));
    // Under the same token, which counts only together with a resource.
    let mut world = World::with(vec![in_section("a")]);
    let token = world.claim("w", "a").token;
    world.break_first("path:a/**");
    let (by, reason) = ("ops".to_owned(), "stuck".to_owned());
    let elsewhere = BreakAsk { resource: resource("path:b/**"), token, by, reason };
    world.act(&Recover { recoveries_max: 9, broken: Some(elsewhere) });
    assert_eq!(last_try(&world).outcome, Some(TryOutcome::Lost));
}

#[test]
fn tries_are_numbered_through_and_the_last_are_kept() {
    let mut world = World::with(vec![NewTask { max_attempts: 99, ..plain("a") }]);
    for _ in 0..TRIES_MAX + 2 {
        world.claim("w", "a");
        world.finish("w", "a", Finish::Release);
    }
    let numbers: Vec<u32> = world.task("a").tries.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (3..=TRIES_MAX as u32 + 2).collect::<Vec<_>>());
    assert_eq!(world.task("a").attempts, 0, "what does not count as an attempt is a try still");
}

#[test]
fn a_claim_of_an_older_version_gets_a_try_when_it_ends() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let begun = last_try(&world);
    world.tasks[0].tries.clear();
    world.pass(TTL / 2);
    let now = world.wall();
    world.tasks[0].end_try(TryOutcome::Completed, None, now);
    let (ended_at, outcome) = (Some(now), Some(TryOutcome::Completed));
    assert_eq!(world.tasks[0].tries, [Try { ended_at, outcome, ..begun }]);
}

#[test]
fn a_long_error_is_kept_in_part_and_whole_with_the_task() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let reason = "é".repeat(TRY_ERROR_MAX_BYTES);
    world.finish("w", "a", Finish::Fail { reason: reason.clone(), retry: false });
    assert_eq!(world.task("a").error.as_deref(), Some(reason.as_str()));
    let kept = last_try(&world).error.unwrap();
    assert!(kept.len() <= TRY_ERROR_MAX_BYTES + "…".len() && kept.ends_with("é…"), "{kept}");
}

#[test]
fn a_try_says_where_its_worker_works() {
    let text = |text: &str| Some(text.to_owned());
    let long = "x".repeat(WORKSPACE_MAX_BYTES + 1);
    let said = Workspace { worktree: text("/src/one"), branch: text("b"), ..Workspace::default() };
    let evidence = holder("w", Some(7)).evidence.unwrap();
    let (host, machine) = (Some(evidence.host), Some(evidence.machine));
    for (workspace, process, expected) in [
        (Workspace::default(), None, Workspace::default()),
        (said.clone(), None, said.clone()),
        (
            said.clone(),
            Some(7),
            Workspace { host: host.clone(), machine: machine.clone(), ..said.clone() },
        ),
        (
            Workspace { host: text("h"), machine: text("m"), ..Workspace::default() },
            Some(7),
            Workspace { host: text("h"), machine: text("m"), ..Workspace::default() },
        ),
        (
            Workspace { worktree: Some(long), ..said.clone() },
            None,
            Workspace { worktree: None, ..said.clone() },
        ),
    ] {
        let mut world = World::with(vec![plain("a")]);
        let holder = holder("w", process);
        world.try_claim(ClaimAsk { workspace, holder, ..claim_ask("w") }).unwrap();
        let found = last_try(&world).workspace;
        let known = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let expected = Workspace {
            host: known(&expected.host),
            machine: known(&expected.machine),
            ..expected
        };
        assert_eq!(found, expected);
    }
}

fn describe(token: Token) -> DescribeTry {
    DescribeTry {
        task: id("a"),
        token,
        grant: None,
        worktree: None,
        branch: None,
        rescue: None,
        note: None,
        by: "v".into(),
    }
}

#[test]
fn more_is_said_of_a_try_once() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let token = last_try(&world).token;
    let grant = world.task("a").claim.as_ref().map(|claim| claim.grant);
    let branch = DescribeTry { branch: Some("b".into()), grant, ..describe(token) };
    world.act(&branch).unwrap();
    world.pass(TTL);
    world.recover();
    let late = DescribeTry { rescue: Some("refs/tenure/rescue/a/1".to_owned()), ..branch.clone() };
    assert!(matches!(world.act(&late), Err(EditError::NotYours { .. })), "its claim is over");
    world.claim("w", "a");
    world.news();
    assert!(matches!(world.act(&branch), Err(EditError::NotYours { .. })), "its worker lost it");
    let (rescue, note) = (Some("refs/tenure/rescue/a/1".to_owned()), Some("kept".to_owned()));
    let rescued = DescribeTry { rescue: rescue.clone(), note, ..describe(token) };
    let refused = world.act(&rescued);
    assert!(matches!(refused, Err(EditError::NotYours { .. })), "another has the task");
    let grant = world.task("a").claim.as_ref().map(|claim| claim.grant);
    let rescued = DescribeTry { grant, ..rescued };
    for _ in 0..2 {
        let task = world.act(&rescued).unwrap();
        let [first, second] = task.tries.as_slice() else { panic!("{task:?}") };
        assert_eq!((&first.rescue, first.workspace.branch.as_deref()), (&rescue, Some("b")));
        assert_eq!((&second.rescue, second.workspace.branch.as_deref()), (&None, None));
        assert_eq!(texts(&task), ["kept"], "by the first of them");
    }
    assert_eq!(world.news(), ["noted task:a v"]);
    let other = Some("refs/tenure/rescue/a/1-2".to_owned());
    let kept = world.act(&DescribeTry { rescue: other, ..rescued.clone() }).unwrap();
    assert_eq!(kept.tries[0].rescue, rescue, "the first stays");
    let (decision, answer) = tasks::describe_try(&world.seen(), &describe(token), &world.dead);
    assert_eq!(answer, Ok(world.task("a").clone().redacted()));
    assert_eq!(decision, Decision::Nothing, "nothing was said");
}

#[test]
fn what_cannot_be_said_of_a_try_is_refused() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let token = last_try(&world).token;
    let grant = world.task("a").claim.as_ref().map(|claim| claim.grant);
    let longest = Some("x".repeat(WORKSPACE_MAX_BYTES));
    world.act(&DescribeTry { worktree: longest, grant, ..describe(token) }).unwrap();
    let (folder, rescue) = (Some("/src/x".to_owned()), Some("refs/tenure/rescue/a/1".to_owned()));
    let long = Some("x".repeat(WORKSPACE_MAX_BYTES + 1));
    for (ask, sentence) in [
        (DescribeTry { task: id("b"), ..describe(token) }, "no task b"),
        (describe(Token(99)), "task a has no try with token 99"),
        (
            DescribeTry { branch: Some(String::new()), ..describe(token) },
            "the branch is empty or longer than 4096 bytes",
        ),
        (
            DescribeTry { worktree: long, ..describe(token) },
            "the worktree is empty or longer than 4096 bytes",
        ),
        (DescribeTry { note: Some(" ".into()), ..describe(token) }, "the note is empty"),
        (DescribeTry { worktree: folder.clone(), ..describe(token) }, "task a is not yours"),
        (
            DescribeTry { worktree: folder, grant: Some(GrantId::random()), ..describe(token) },
            "task a is not yours",
        ),
        (
            DescribeTry { rescue, grant, ..describe(token) },
            &format!("the try with token {token} of task a has not ended"),
        ),
    ] {
        let before = world.tasks.clone();
        assert_eq!(world.act(&ask).unwrap_err().to_string(), sentence);
        assert_eq!(world.tasks, before);
    }
}

#[test]
fn only_a_reference_that_tenure_writes_is_kept_and_handed_out() {
    let mut world = World::with(vec![plain("a"), plain("b")]);
    world.claim("w", "a");
    let token = last_try(&world).token;
    world.pass(TTL);
    world.recover();
    for text in ["x;touch${IFS}PWNED;", "--output=x", "refs/heads/main", "refs/tenure/rescue/b/1"] {
        let ask = DescribeTry { rescue: Some(text.to_owned()), ..describe(token) };
        let answer = world.act(&ask);
        assert_eq!(answer, Err(EditError::NoRescueReference { id: id("a") }), "{text}");
        // A store that has one all the same, from wherever, does not pass it on.
        let mut one = last_try(&world).clone();
        one.rescue = Some(text.to_owned());
        assert_eq!(one.rescue_of(&id("a")), None, "{text}");
    }
}
