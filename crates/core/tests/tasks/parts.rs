//! Whether all parts of a claim are held, and which holds belong to a claim that lost one.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::rules::tasks::ClaimState::{Held, Lapsed, Lost};
use tenure_core::rules::tasks::{
    ClaimAsk, JudgedClaims, belongs_to_lost_claim, claim_state, claims_look, hold_of,
};
use tenure_core::{Scope, Status, TaskScope, Token};

#[test]
fn a_task_that_no_worker_has_has_no_state() {
    let mut world = World::with(vec![plain("a")]);
    assert_eq!(world.state("a"), None);
    world.claim("w", "a");
    assert_eq!(world.state("a"), Some(Held));
    world.finish_well("w", "a", complete());
    assert_eq!(world.state("a"), None);
}

#[test]
fn the_state_of_a_claim_is_that_of_its_worst_part() {
    let claimed = || {
        let mut world = World::with(vec![in_section("a")]);
        let holder = holder("w", Some(7));
        world.try_claim(ClaimAsk { holder, ..claim_ask("w") }).unwrap();
        world
    };
    for part in ["task:a", "path:a/**", "section:S"] {
        let is_it =
            |stored: &crate::support::StoredHold| stored.hold.want.resource == resource(part);
        let lapsed = Some(Lapsed { part: resource(part) });
        let lost = Some(Lost { part: resource(part) });
        let mut world = claimed();
        let now = world.now_ms;
        let stored = world.holds.iter_mut().find(|stored| is_it(stored)).unwrap();
        stored.deadline_ms = now;
        assert_eq!(world.state("a"), lapsed, "{part} lapsed");
        let mut world = claimed();
        world.holds.retain(|stored| !is_it(stored));
        assert_eq!(world.state("a"), lost, "{part} is gone");
        world.kill(7);
        assert_eq!(world.state("a"), lost, "lost says more than lapsed");
        let mut world = claimed();
        let stored = world.holds.iter_mut().find(|stored| is_it(stored)).unwrap();
        stored.hold.token = Token(99);
        assert_eq!(world.state("a"), lost, "{part} went to another");
        let mut world = claimed();
        let stored = world.holds.iter_mut().find(|stored| is_it(stored)).unwrap();
        stored.hold.grant = runner("v");
        assert_eq!(world.state("a"), lost, "{part} is another's");
    }
    let mut world = claimed();
    world.kill(7);
    assert_eq!(world.state("a"), Some(Lapsed { part: resource("section:S") }), "dead");
}

#[test]
fn the_hold_of_a_task_is_that_of_its_claim() {
    let mut world = World::with(vec![in_section("a"), plain("b"), plain("free")]);
    let token = world.claim("w", "a").token;
    world.claim("v", "b");
    let holds = world.seen().holds;
    let found =
        |world: &World, task: &str| hold_of(world.task(task), &holds).map(|seen| seen.hold.clone());
    let own = found(&world, "a").unwrap();
    assert_eq!((own.want.resource, own.token), (resource("task:a"), token));
    assert_eq!(found(&world, "b").unwrap().want.resource, resource("task:b"));
    assert_eq!(found(&world, "free"), None);
    world.tasks[0].claim.as_mut().unwrap().token = Token(99);
    assert_eq!(found(&world, "a"), None, "the hold is of another claim");
}

#[test]
fn what_must_be_seen_depends_on_the_kind() {
    let tasks = |scope: TaskScope| Some(Scope::Tasks(scope));
    let in_progress = || TaskScope { in_progress: true, ..TaskScope::default() };
    for (name, expected) in [
        ("a-lock", None),
        ("task:a", tasks(TaskScope { ids: vec![id("a")], ..TaskScope::default() })),
        ("section:S", tasks(in_progress())),
        ("path:src/**", tasks(in_progress())),
    ] {
        assert_eq!(claims_look(&resource(name)), expected, "{name}");
    }
}

/// Whether this hold is refused because of a claim, seen as a verification sees it.
fn is_refused(world: &World, name: &str, token: Token) -> bool {
    let resource = resource(name);
    claims_look(&resource).is_some_and(|scope| {
        belongs_to_lost_claim(&world.show(&scope), &resource, token, &world.dead)
    })
}

#[test]
fn holds_of_a_lost_claim_are_refused_and_others_are_not() {
    let names = ["task:a", "path:a/**", "section:S"];
    let mut world = World::with(vec![in_section("a"), plain("b")]);
    let token = world.claim("w", "a").token;
    let other = world.claim("v", "b").token;
    for name in names {
        assert!(!is_refused(&world, name, token), "{name} is held");
    }
    world.break_first("path:a/**");
    for name in names {
        assert!(is_refused(&world, name, token), "{name}");
        assert!(!is_refused(&world, name, Token(token.0 + 100)), "{name}: another token");
    }
    assert!(!is_refused(&world, "path:b/**", token), "another path");
    assert!(!is_refused(&world, "section:T", token), "another section");
    assert!(!is_refused(&world, "task:b", other), "another claim");
    assert!(!is_refused(&world, "task:b", token), "another task");
    world.recover();
    for name in names {
        assert!(!is_refused(&world, name, token), "{name} belongs to no claim any more");
    }
}

#[test]
fn a_section_of_several_claims_is_good_while_one_of_them_stands() {
    for (broken, is_bad) in
        [(&["task:a"][..], false), (&["task:b"], false), (&["task:a", "task:b"], true)]
    {
        let mut world = World::with(vec![in_section("a"), in_section("b")]);
        let token = world.claim("w", "a").token;
        world.claim("w", "b");
        broken.iter().for_each(|name| world.break_first(name));
        assert_eq!(is_refused(&world, "section:S", token), is_bad, "{broken:?}");
    }
}

#[test]
fn what_is_shown_for_a_claim_is_enough_to_judge_it() {
    let mut world = World::with(vec![in_section("a"), in_section("b")]);
    world.claim("w", "a");
    let scope = claims_look(&resource("task:a")).unwrap();
    let seen = world.show(&scope);
    assert_eq!(claim_state(&seen, world.task("a"), &world.dead), Some(Held));
}

#[test]
fn the_claims_of_a_list_are_judged_as_each_alone() {
    let mut world =
        World::with(vec![in_section("lost"), plain("held"), plain("done"), plain("free")]);
    for name in ["lost", "held", "done"] {
        world.claim("w", name);
    }
    let listed = world.tasks.clone();
    world.break_first("section:S");
    world.finish_well("w", "done", complete());
    let scope = Scope::Tasks(TaskScope {
        ids: listed.iter().map(|task| task.id.clone()).collect(),
        ..TaskScope::default()
    });
    let seen = world.show(&scope);
    let claims = JudgedClaims::of(&seen, &world.dead);
    let state = |name: &str| claims.state(listed.iter().find(|task| task.id == id(name)).unwrap());
    assert_eq!(state("lost"), world.state("lost"));
    assert_eq!(state("lost"), Some(Lost { part: resource("section:S") }));
    assert_eq!(state("held"), Some(Held));
    assert_eq!(state("done"), None, "it has ended since it was listed");
    assert_eq!(state("free"), None);
    let lost: Vec<&str> = claims.lost().iter().map(|(task, _)| task.id.as_str()).collect();
    assert_eq!(lost, ["lost"]);

    let task = world.task("lost");
    let token = task.claim.as_ref().unwrap().token;
    for (part, is_held) in
        [("task:lost", true), ("path:lost/**", true), ("section:S", false), ("path:held/**", false)]
    {
        let found = claims.hold(task, &resource(part));
        let found = found.map(|seen| (seen.hold.want.resource.clone(), seen.hold.token));
        assert_eq!(found, is_held.then(|| (resource(part), token)), "{part}");
    }
}

/// Another program may write a task so.
#[test]
fn a_task_in_progress_without_a_claim_is_lost() {
    let mut world = World::with(vec![plain("a"), plain("b")]);
    world.tasks[0].status = Status::InProgress;
    let (seen, nothing) = (world.seen(), Lost { part: resource("task:a") });
    let claims = JudgedClaims::of(&seen, &world.dead);
    assert_eq!(claims.state(world.task("a")), Some(nothing.clone()));
    assert_eq!(claims.state(world.task("b")), None);
    assert_eq!(claims.lost(), [(&seen.tasks[0], nothing)]);
}
