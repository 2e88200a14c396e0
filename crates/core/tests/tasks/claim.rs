//! Handing out tasks: what a claim takes, what is in its way, and what it is told.

use crate::support::tasks::*;
use crate::support::{View, World, grant_id, number_of, shared};
use std::time::Duration;
use tenure_core::act::{Acquire, ClaimTasks};
use tenure_core::rules::tasks::ClaimState::Held;
use tenure_core::rules::tasks::{
    self, ClaimAsk, Claimed, EVERYTHING, Finish, ManualChange, NewTask, NoClaim, SectionChange,
};
use tenure_core::{
    Ask, Decision, GrantId, Mode, Owner, Part, Pick, Reason, Scope, Section, Snapshot, Status,
    TaskScope, Token, WallTime, Workspace,
};

fn grants(numbers: std::ops::RangeInclusive<u32>) -> Vec<GrantId> {
    numbers.map(grant_id).collect()
}

fn names(world: &mut World, ask: ClaimAsk) -> Vec<String> {
    let claimed = world.try_claim(ask).unwrap();
    claimed.iter().map(|claimed| claimed.task.id.to_string()).collect()
}

fn in_named(name: &str, section: &str) -> NewTask {
    NewTask { section: Some(section.into()), ..plain(name) }
}

pub(super) fn touching(name: &str, files: &[&str]) -> NewTask {
    NewTask { files: files.iter().map(|file| (*file).to_owned()).collect(), ..plain(name) }
}

fn runners(name: &str, max_runners: Option<u32>) -> Section {
    Section { max_runners, ..Section::named(name) }
}

/// What is held, under which grant, how, and for how long in seconds.
fn holds(world: &World) -> Vec<(String, u32, Mode, u64)> {
    let show = |stored: &crate::support::StoredHold| {
        let hold = &stored.hold;
        let grant = if hold.grant == runner("w") { 99 } else { number_of(hold.grant) };
        (hold.want.resource.to_string(), grant, hold.want.mode, hold.ttl.as_secs())
    };
    let mut holds: Vec<_> = world.holds.iter().map(show).collect();
    holds.sort_by_key(|(name, grant, ..)| (name.clone(), *grant));
    holds
}

#[test]
fn a_claim_takes_the_task_its_files_and_its_section() {
    let (alone, slot) = (Mode::Exclusive, Mode::Slot { of: 3 });
    // How many runners the section takes, whether the worker keeps it, and how it is held.
    for (max_runners, keeps, section) in [
        (Some(1), true, Some((99, alone, 600))),
        (Some(1), false, Some((1, alone, 60))),
        (Some(3), true, Some((99, slot, 600))),
        (Some(3), false, Some((1, slot, 60))),
        (None, true, None),
        (None, false, None),
    ] {
        // A file that is named twice is held once.
        let task = NewTask { section: Some("S".into()), ..touching("a", &["x", "./x", "y/**"]) };
        let mut world = World::with_sections(vec![task], vec![runners("S", max_runners)]);
        let runner = keeps.then(|| runner("w"));
        let claimed =
            world.try_claim(ClaimAsk { grants: grants(1..=1), runner, ..claim_ask("w") }).unwrap();
        let mut expected: Vec<_> = ["path:x", "path:y/**", "task:a"]
            .map(|name| (name.to_owned(), 1, alone, 60))
            .into_iter()
            .chain(section.map(|(grant, mode, ttl)| ("section:S".to_owned(), grant, mode, ttl)))
            .collect();
        expected.sort_by_key(|(name, ..)| name.clone());
        let case = format!("{max_runners:?} {keeps}");
        assert_eq!(holds(&world), expected, "{case}");
        let [claimed] = claimed.as_slice() else { panic!("{claimed:?}") };
        let (grant, token) = (grant_id(1), Token(2));
        assert_eq!((claimed.grant, claimed.token), (grant, token), "{case}");
        let mut resources: Vec<String> =
            expected.iter().filter(|hold| hold.1 == 1).map(|hold| hold.0.clone()).collect();
        let mut shown: Vec<String> = claimed.resources.iter().map(ToString::to_string).collect();
        resources.sort();
        shown.sort();
        assert_eq!(shown, resources, "{case}");
        let mut parts = vec![("path:x", grant), ("path:y/**", grant)];
        parts.extend(section.map(|_| ("section:S", runner.unwrap_or(grant))));
        let parts: Vec<Part> = parts
            .into_iter()
            .map(|(name, grant)| Part::new(resource(name), grant, token))
            .collect();
        let claim = world.task("a").claim.clone().unwrap();
        assert_eq!((claim.by.as_str(), claim.grant, claim.token), ("w", grant, token), "{case}");
        assert_eq!(claim.parts, parts, "{case}");
        assert_eq!(world.task("a"), &claimed.task, "{case}");
        assert_eq!(claimed.expires_at, WallTime(world.wall().0 + 60_000), "{case}");
        assert!(world.holds.iter().all(|stored| stored.hold.operation.as_deref() == Some("a")));
        assert!(world.holds.iter().all(|stored| stored.hold.token == token), "{case}");
        assert!(world.last_was_durable);
    }
}

#[test]
fn a_claimed_task_begins_anew() {
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    world.start("w", "a");
    let failed = world.finish_well("w", "a", fail(false));
    assert!(failed.finished_at.is_some() && failed.started_at.is_some());
    world.edit("a", ManualChange::Retry).unwrap();
    world.pass(TTL);
    let task = world.claim("v", "a").task;
    assert_eq!((task.status, task.attempts), (Status::InProgress, 1));
    assert_eq!((task.claimed_at, task.started_at), (Some(world.wall()), None));
    assert_eq!((task.finished_at, task.finished_by, task.finished_claim), (None, None, None));
    world.finish_well("v", "a", Finish::Snooze { pause: TTL });
    world.pass(TTL);
    assert_eq!(world.task("a").not_before, Some(world.wall()));
    let task = world.claim("v", "a").task;
    assert_eq!((task.not_before, task.attempts), (None, 1));
}

#[test]
fn as_many_are_handed_out_as_there_are_grants() {
    let tasks = ["a", "b", "c", "d"].map(plain).to_vec();
    for (count, expected) in [(1, 1), (3, 3), (4, 4), (9, 4)] {
        let mut world = World::with(tasks.clone());
        let ask = ClaimAsk { grants: grants(1..=count), ..claim_ask("w") };
        // One look is enough.
        let claimed = world.act(&ClaimTasks { ask, wider: 0 }).unwrap();
        let got: Vec<u32> = claimed.iter().map(|claimed| number_of(claimed.grant)).collect();
        assert_eq!(got, (1..=expected).collect::<Vec<u32>>());
        let mut tokens: Vec<Token> = claimed.iter().map(|claimed| claimed.token).collect();
        tokens.dedup();
        assert_eq!(tokens.len(), expected as usize, "each has a token of its own");
        assert!(tokens.is_sorted());
        for claimed in &claimed {
            assert_eq!(world.state(claimed.task.id.as_str()), Some(Held), "{claimed:?}");
        }
    }
}

#[test]
fn one_round_keeps_out_of_its_own_way() {
    let tasks = vec![
        touching("a", &["src/**"]),
        touching("b", &["src/x"]),
        in_named("c", "S"),
        in_named("d", "S"),
        touching("e", &["docs/x"]),
    ];
    // A runner has a section once for all its tasks; without one, the section is in each claim.
    for (keeps, expected) in [(true, vec!["a", "c", "d", "e"]), (false, vec!["a", "c", "e"])] {
        let mut world = World::with(tasks.clone());
        let runner = keeps.then(|| runner("w"));
        let ask = ClaimAsk { grants: grants(1..=9), runner, ..claim_ask("w") };
        assert_eq!(names(&mut world, ask), expected);
        assert_eq!(world.held().iter().filter(|name| *name == "section:S").count(), 1);
    }
}

#[test]
fn a_section_takes_as_many_runners_as_it_says() {
    for (max_runners, expected) in [(Some(1), 1), (Some(2), 2), (Some(3), 3), (None, 4)] {
        for keeps in [true, false] {
            let tasks = ["a", "b", "c", "d"].map(|name| in_named(name, "S")).to_vec();
            let mut world = World::with_sections(tasks, vec![runners("S", max_runners)]);
            let mut got = 0;
            for worker in ["t", "u", "v", "w"] {
                let runner = keeps.then(|| runner(worker));
                got +=
                    usize::from(world.try_claim(ClaimAsk { runner, ..claim_ask(worker) }).is_ok());
            }
            assert_eq!(got, expected, "{max_runners:?} {keeps}");
        }
    }
}

#[test]
fn each_task_of_a_round_has_a_slot_of_its_own() {
    let tasks = ["a", "b", "c"].map(|name| in_named(name, "S")).to_vec();
    let mut world = World::with_sections(tasks, vec![runners("S", Some(3))]);
    let ask = ClaimAsk { grants: grants(1..=3), runner: None, ..claim_ask("w") };
    assert_eq!(names(&mut world, ask), ["a", "b", "c"]);
    let mut slots: Vec<u32> = world.holds.iter().filter_map(|stored| stored.hold.slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2]);
}

#[test]
fn only_what_is_wanted_is_handed_out() {
    let labelled = |name: &str, section: &str, labels: &[&str]| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        NewTask { labels, ..in_named(name, section) }
    };
    let sections = || vec![runners("S", None), runners("T", None)];
    let tasks =
        [labelled("a", "S", &["x"]), labelled("b", "S", &["x", "y"]), labelled("c", "T", &["y"])];
    let cases: [(Option<&str>, &[&str], &[&str]); 6] = [
        (None, &[], &["a", "b", "c"]),
        (Some("S"), &[], &["a", "b"]),
        (None, &["y"], &["b", "c"]),
        (None, &["x", "y"], &["b"]),
        (Some("T"), &["y"], &["c"]),
        (Some("T"), &["x"], &[]),
    ];
    // A store may show more than was asked for.
    let views = [View::Asked, View::Whole];
    for (view, (section, labels, expected)) in
        views.into_iter().flat_map(|view| cases.map(|case| (view, case)))
    {
        let mut world = World::with_sections(tasks.to_vec(), sections());
        world.view = view;
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let section = section.map(ToOwned::to_owned);
        let ask = ClaimAsk { grants: grants(1..=9), section, labels, ..claim_ask("w") };
        match world.try_claim(ask) {
            Ok(claimed) => {
                let names: Vec<&str> = claimed.iter().map(|one| one.task.id.as_str()).collect();
                assert_eq!(names, expected);
            }
            Err(error) => assert_eq!((error, expected.len()), (NoClaim::NothingReady, 0)),
        }
    }
}

#[test]
fn a_named_task_is_handed_out_or_it_is_said_why_not() {
    let mut world = World::with(vec![plain("a"), after("b", &["a"]), plain("c")]);
    let named = |name: &str| ClaimAsk { task: Some(id(name)), ..claim_ask("w") };
    assert_eq!(world.try_claim(named("none")), Err(NoClaim::NotFound));
    let why = vec!["it waits for a (\"a\"), which is pending".to_owned()];
    assert_eq!(world.try_claim(named("b")), Err(NoClaim::NotReady { why }));
    // What it waits for is shown, and not handed out in its place.
    assert_eq!(names(&mut world, ClaimAsk { grants: grants(1..=9), ..named("c") }), ["c"]);
    let why = vec!["it is being worked on by w".to_owned()];
    assert_eq!(world.try_claim(named("c")), Err(NoClaim::NotReady { why }));
}

/// What is in the way of `a`, which lies in `S` and touches `src/**`, and what is said then.
type Obstacle = (&'static str, fn(&mut World), &'static str, Option<&'static str>);

const OBSTACLES: [Obstacle; 9] = [
    ("its section is paused", |world| world.pause("S", true), "section S is paused", None),
    ("all is paused", |world| world.pause(EVERYTHING, true), "section S is paused", None),
    (
        "its section waits for another",
        |world| world.change_section("S", waits_for(&["T", "Empty"])),
        "section S waits for section T to be done",
        None,
    ),
    (
        "another has a file",
        |world| {
            world.take("path:src/x");
        },
        "path:src/x is held by other",
        Some("path:src/x"),
    ),
    (
        "another has the task",
        |world| {
            world.take("task:a");
        },
        "task:a is held by other",
        Some("task:a"),
    ),
    (
        "another has the section",
        |world| {
            world.take("section:S");
        },
        "section:S is held by other",
        Some("section:S"),
    ),
    (
        "another works in the section",
        |world| drop(world.claim("v", "s")),
        "section:S is held by v",
        Some("section:S"),
    ),
    (
        "another waits for a file",
        |world| {
            let first = world.take("path:src/x").unwrap();
            world.queue_for("path:src/x");
            world.give_back(first);
        },
        "other requests are ahead in the queue",
        None,
    ),
    (
        "a file is read",
        |world| {
            let ask = Ask { wants: vec![shared("path:src/y")], ..other_ask("path:src/y") };
            world.act(&Acquire { ask, ticket: None, whole_queues: false });
        },
        "path:src/y is held by other",
        Some("path:src/y"),
    ),
];

fn waits_for(sections: &[&str]) -> SectionChange {
    let depends_on = sections.iter().map(|name| (*name).to_owned()).collect();
    SectionChange { depends_on: Some(depends_on), ..SectionChange::default() }
}

#[test]
fn what_is_in_the_way_of_the_first_is_said() {
    for (what, obstruct, why, by) in OBSTACLES {
        for keeps in [true, false] {
            let a = NewTask { section: Some("S".into()), ..touching("a", &["src/**"]) };
            let s = NewTask { priority: 99, ..in_named("s", "S") };
            let mut world =
                World::with_sections(vec![a, s, in_named("t", "T")], vec![Section::named("Empty")]);
            obstruct(&mut world);
            let before = (world.tasks.clone(), world.held());
            let runner = keeps.then(|| runner("w"));
            // Named, it alone is looked at; the second of its section blocks no other task.
            for task in [Some(id("a")), None] {
                let section = task.is_none().then(|| "S".to_owned());
                let ask = ClaimAsk { task, section, runner, ..claim_ask("w") };
                let ask = ClaimAsk { labels: vec![], ..ask };
                match world.act(&ClaimTasks { ask, wider: 2 }) {
                    Err(NoClaim::AllTaken { why: said, by: holder, look_wider }) => {
                        assert_eq!(said, [why], "{what} {keeps}");
                        let holder = holder.map(|seen| seen.hold);
                        let held = holder.as_ref().map(|hold| hold.want.resource.to_string());
                        assert_eq!(held.as_deref(), by, "{what} {keeps}");
                        assert!(holder.is_none_or(|hold| hold.grant.is_veiled()), "{what}");
                        assert!(!look_wider, "{what}");
                        assert_eq!((world.tasks.clone(), world.held()), before, "{what}");
                    }
                    Ok(claimed) => {
                        // Only files and the task itself are in the way of the first alone.
                        let first = claimed[0].task.id.as_str();
                        let alone = ["path:src/x", "path:src/y", "task:a"];
                        let is_alone = by.is_none_or(|by| alone.contains(&by));
                        assert!(first == "s" && is_alone, "{what} {keeps}: {first}");
                    }
                    other => panic!("{what} {keeps}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_section_is_open_until_all_of_it_is_done() {
    for (end, is_open) in [
        (complete(), false),
        (fail(false), false),
        (fail(true), true),
        (review(), true),
        (Finish::Release, true),
    ] {
        let mut world = World::with(vec![in_named("a", "S"), in_named("t", "T")]);
        world.change_section("S", waits_for(&["T"]));
        let next = |world: &mut World| {
            world.try_claim(ClaimAsk { section: Some("S".into()), ..claim_ask("w") }).is_ok()
        };
        assert!(!next(&mut world), "{end:?}");
        world.claim("v", "t");
        assert!(!next(&mut world), "{end:?}");
        world.finish_well("v", "t", end.clone());
        assert_eq!(next(&mut world), !is_open, "{end:?}");
    }
}

#[test]
fn when_everything_is_paused_tasks_without_a_section_wait_too() {
    let mut world = World::with(vec![plain("a")]);
    world.pause(EVERYTHING, true);
    let answer = world.try_claim(claim_ask("w"));
    let why = vec!["everything is paused".to_owned()];
    assert_eq!(answer, Err(NoClaim::AllTaken { why, by: None, look_wider: false }));
    world.pause(EVERYTHING, false);
    assert!(world.try_claim(claim_ask("w")).is_ok());
}

#[test]
fn a_pause_of_another_section_is_in_nobodys_way() {
    let mut world = World::with(vec![in_named("a", "S"), plain("b")]);
    world.pause("T", true);
    assert_eq!(names(&mut world, ClaimAsk { grants: grants(1..=2), ..claim_ask("w") }), ["a", "b"]);
}

#[test]
fn what_no_longer_counts_is_cleared_away() {
    for dies in [true, false] {
        let a = NewTask { section: Some("S".into()), ..touching("a", &["src/**"]) };
        let mut world = World::with(vec![a.clone(), NewTask { id: id("b"), ..a }]);
        let holder = holder("v", Some(7));
        world.try_claim(ClaimAsk { task: Some(id("a")), holder, ..claim_ask("v") }).unwrap();
        world.news();
        match dies {
            true => world.kill(7),
            false => world.pass(SECTION_TTL),
        }
        world.claim("w", "b");
        let word = if dies { "died" } else { "lapsed" };
        let mut cleared = world.news();
        cleared.retain(|line| line.ends_with(" v"));
        assert_eq!(cleared, [format!("{word} path:src/** v"), format!("{word} section:S v")]);
        assert_eq!(world.held(), ["path:src/**", "section:S", "task:a", "task:b"]);
    }
}

#[test]
fn a_place_in_a_queue_is_in_the_way_only_while_its_waiter_lives() {
    for (what, is_in_the_way) in [("waits", true), ("dies", false), ("falls silent", false)] {
        let mut world = World::with(vec![touching("a", &["src/**"])]);
        let held = world.take("path:src/x").unwrap();
        let holder = holder("other", Some(7));
        let ask = Ask { queue: Some(TTL), holder, ..other_ask("path:src/x") };
        world.act(&Acquire { ask, ticket: None, whole_queues: false });
        // The waiter is woken, and does not come.
        world.give_back(held);
        assert_eq!(world.last_woken.len(), 1);
        match what {
            "dies" => world.kill(7),
            "falls silent" => world.pass(TTL),
            _ => {}
        }
        assert_eq!(world.try_claim(claim_ask("w")).is_err(), is_in_the_way, "{what}");
        assert_eq!(world.waiters.len(), usize::from(is_in_the_way), "{what}");
    }
}

#[test]
fn a_claim_that_gets_nothing_still_clears_what_no_longer_counts() {
    let mut world = World::with(vec![touching("a", &["x", "y"])]);
    world.take("path:x");
    world.pass(TTL);
    world.take("path:y");
    let answer = world.try_claim(claim_ask("w"));
    assert!(matches!(answer, Err(NoClaim::AllTaken { .. })), "{answer:?}");
    assert_eq!(world.held(), ["path:y"]);
}

#[test]
fn what_the_owner_holds_is_not_in_its_way() {
    let label = Owner::of_label;
    let having = |grant: GrantId| Owner { grants: vec![grant], ..Owner::default() };
    let mut world = World::with(vec![touching("a", &["src/**"])]);
    let held = world.take("path:src/x").unwrap();
    for (owner, is_in_the_way) in [
        (Owner::default(), true),
        (label("w"), true),
        (having(grant_id(5)), true),
        (label("other"), false),
        (having(held), false),
    ] {
        let mut world = world.clone();
        let grant = grant_id(1);
        world.of_one_owner.extend([grant, held]);
        let ask = ClaimAsk { owner: owner.clone(), grants: vec![grant], ..claim_ask("w") };
        assert_eq!(world.try_claim(ask).is_err(), is_in_the_way, "{owner:?}");
    }
}

#[test]
fn a_section_that_is_kept_lasts_at_least_as_long_as_the_task() {
    let seconds = Duration::from_secs;
    // The lease of a task and of a section, how much time passes, and how long the section lasts
    // when the runner takes its second task.
    for (ttl, section_ttl, passed, left) in [
        (60, 600, 10, 600),
        (60, 30, 10, 60),
        (600, 30, 10, 600),
        // Its own longer lease is not cut short.
        (60, 30, 0, 60),
    ] {
        let mut world = World::with(vec![in_named("a", "S"), in_named("b", "S")]);
        let ask = |name: &str| ClaimAsk {
            task: Some(id(name)),
            ttl: seconds(ttl),
            section_ttl: seconds(section_ttl),
            ..claim_ask("w")
        };
        world.try_claim(ask("a")).unwrap();
        world.pass(seconds(passed));
        let first = world.task("a").claim.clone().unwrap();
        world.try_claim(ask("b")).unwrap();
        let second = world.task("b").claim.clone().unwrap();
        let section = first.parts[0].resource.clone();
        assert_eq!(second.parts[0], Part::new(section, first.parts[0].grant, first.token));
        let seen = world.seen();
        let section = seen.holds_of(runner("w")).next().unwrap();
        assert_eq!(section.left, seconds(left), "{ttl} {section_ttl} {passed}");
    }
}

#[test]
fn a_lease_of_a_section_is_never_cut_short() {
    let mut world = World::with(vec![in_named("a", "S"), in_named("b", "S")]);
    world.claim("w", "a");
    let short = Duration::from_secs(1);
    let ask = ClaimAsk { ttl: short, section_ttl: short, ..claim_ask("w") };
    world.pass(Duration::from_secs(100));
    world.try_claim(ask).unwrap();
    let seen = world.seen();
    let left = seen.holds_of(runner("w")).next().unwrap().left;
    assert_eq!(left, SECTION_TTL - Duration::from_secs(100));
}

#[test]
fn a_section_that_lapsed_is_taken_anew() {
    let mut world = World::with(vec![in_named("a", "S"), in_named("b", "S")]);
    let first = world.claim("w", "a").token;
    world.pass(SECTION_TTL);
    let second = world.claim("w", "b");
    let part = &second.task.claim.as_ref().unwrap().parts[0];
    assert_eq!(part.token, second.token);
    assert!(first < second.token);
}

#[test]
fn several_tasks_of_a_kept_section_renew_it_once() {
    let mut world = World::with(["a", "b", "c"].map(|name| in_named(name, "S")).to_vec());
    world.claim("w", "a");
    let ask = ClaimAsk { grants: grants(1..=2), ..claim_ask("w") };
    let decision = tenure_core::rules::tasks::claim(&world.seen(), &ask, &world.dead).0;
    let is_renewal =
        |write: &&tenure_core::Write| matches!(write, tenure_core::Write::Extend { .. });
    assert_eq!(decision.writes().iter().filter(is_renewal).count(), 1);
    assert_eq!(names(&mut world, ask), ["b", "c"]);
    assert_eq!(world.state("c"), Some(Held));
}

#[test]
fn behind_many_that_are_taken_it_looks_further() {
    // How many are in the way, how often it looks further, and whether it finds the last.
    for (count, wider, finds) in [
        (0, 0, true),
        (1, 0, false),
        (1, 1, true),
        (63, 1, true),
        (64, 1, false),
        (64, 2, true),
        (64, 9, true),
    ] {
        let busy = |number: usize| touching(&format!("busy-{number}"), &["src/x"]);
        let tasks = (0..count).map(busy).chain([plain("last")]).collect();
        let mut world = World::with(tasks);
        world.take("path:src/x");
        let ask = ClaimAsk { grants: grants(1..=1), ..claim_ask("w") };
        match world.act(&ClaimTasks { ask, wider }) {
            Ok(claimed) => assert!(finds && claimed[0].task.id == id("last"), "{count} {wider}"),
            Err(NoClaim::AllTaken { look_wider, .. }) => {
                assert!(!finds && look_wider, "{count} {wider}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn nothing_is_ready_before_its_time() {
    let later = |time: i64| NewTask { not_before: Some(WallTime(time)), ..plain("a") };
    for (time, is_ready) in [(999, true), (1_000, true), (1_001, false)] {
        let mut world = World::with(vec![later(time)]);
        let answer = world.try_claim(claim_ask("w"));
        assert_eq!(answer == Err(NoClaim::NothingReady), !is_ready, "{time}");
        let named = ClaimAsk { task: Some(id("a")), ..claim_ask("v") };
        if !is_ready {
            let why = vec!["its time has not come".to_owned()];
            assert_eq!(world.try_claim(named), Err(NoClaim::NotReady { why }));
        }
    }
}

#[test]
fn a_claim_of_a_task_that_the_asker_has_is_that_claim() {
    let seconds = Duration::from_secs;
    let of = |worker: &str| ClaimAsk {
        task: Some(id("a")),
        owner: Owner::of_label(worker),
        ttl: seconds(60),
        ..claim_ask(worker)
    };
    let mut world = World::with(vec![touching("a", &["src/**"])]);
    let [first] = <[_; 1]>::try_from(world.try_claim(of("w")).unwrap()).unwrap();
    assert_eq!(first.reason, Reason::AcquiredNew);
    world.pass(seconds(50));
    let [again] = <[_; 1]>::try_from(world.try_claim(of("w")).unwrap()).unwrap();
    assert_eq!(again.reason, Reason::AlreadyOwned);
    assert_eq!((again.grant, again.token), (first.grant, first.token));
    assert_eq!(again.resources, first.resources);
    assert_eq!((again.task.attempts, world.held().len()), (1, 2));
    assert!(matches!(world.try_claim(of("other")), Err(NoClaim::NotReady { .. })));
    let nobody = ClaimAsk { owner: Owner::default(), ..of("w") };
    assert!(matches!(world.try_claim(nobody), Err(NoClaim::NotReady { .. })));
    // A command of the same label, and a subagent: its parent's task is not its own.
    let command = ClaimAsk { holder: holder("w", Some(7)), ..of("w") };
    assert!(matches!(world.try_claim(command), Err(NoClaim::NotReady { .. })));
    let below = Owner { parent: Some("w".into()), ..Owner::of_label("w/1") };
    let subagent = ClaimAsk { owner: below, ..of("w/1") };
    assert!(matches!(world.try_claim(subagent), Err(NoClaim::NotReady { .. })));
    // Its lease was renewed with all parts of it.
    world.pass(seconds(50));
    let is_owned = |claimed: Vec<Claimed>| claimed[0].reason == Reason::AlreadyOwned;
    assert!(is_owned(world.try_claim(of("w")).unwrap()));
    // By the grant of the command around it, too.
    let around = Owner { grants: vec![first.grant], ..Owner::default() };
    assert!(is_owned(world.try_claim(ClaimAsk { owner: around, ..of("v") }).unwrap()));
    let mut world = World::with(vec![plain("a")]);
    let owned = [false, true].map(|_| is_owned(world.try_claim(of("w")).unwrap()));
    assert_eq!(owned, [false, true], "also of a task without files");
}

#[test]
fn tasks_that_another_transaction_is_taking_are_looked_at_again() {
    let mut taken = World::with(vec![in_section("a")]);
    taken.take("section:S");
    for world in [World::with(vec![]), taken] {
        let ask = claim_ask("w");
        let Scope::Tasks(scope) = ask.scope() else { panic!("tasks are looked at") };
        let pick = scope.pick.clone().unwrap();
        assert!(pick.may_skip, "without waiting at first");
        let pick = Some(Pick { may_skip: false, ..pick });
        let again = Scope::Tasks(TaskScope { pick, ..scope });
        for (skipped, expected) in [(false, Decision::Nothing), (true, Decision::Need(again))] {
            let seen = Snapshot { skipped, ..world.show(&ask.scope()) };
            let (decision, answer) = tasks::claim(&seen, &ask, &world.dead);
            assert_eq!(decision, expected, "{answer:?}");
            assert!(answer.is_err(), "{answer:?}");
        }
    }
}

#[test]
fn a_claim_says_where_its_worker_works_only_if_that_is_known() {
    let sent = |workspace: Workspace| {
        let ask = ClaimAsk { workspace, ..claim_ask("w") };
        serde_json::to_value(&ask).unwrap().get("workspace").cloned()
    };
    assert_eq!(sent(Workspace::default()), None);
    let branch = Workspace { branch: Some("b".into()), ..Workspace::default() };
    assert_eq!(sent(branch), Some(serde_json::json!({"branch": "b"})));
}
