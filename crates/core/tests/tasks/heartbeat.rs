//! Signs of life of workers.

use crate::support::World;
use crate::support::tasks::*;
use std::time::Duration;
use tenure_core::rules::tasks::{ClaimAsk, Heartbeat, HeartbeatAsk, NewTask};
use tenure_core::{GrantId, Proof, Token};

fn ask(task: &str, proof: Proof) -> HeartbeatAsk {
    HeartbeatAsk { task: id(task), proof, token: None, ttl: None }
}

fn label(label: &str) -> Proof {
    Proof::Label(label.into())
}

/// How long each thing lasts, in seconds.
fn left(world: &World) -> Vec<(String, u64)> {
    let seen = world.seen();
    let mut left: Vec<(String, u64)> = seen
        .holds
        .iter()
        .map(|seen| (seen.hold.want.resource.to_string(), seen.left.as_secs()))
        .collect();
    left.sort();
    left
}

#[test]
fn all_leases_of_the_claim_start_anew() {
    // Whether the section is kept, the lease that is asked for, and how long the task and the
    // section last afterwards. A section that is kept has a lease of its own, never a shorter one.
    for (keeps, ttl, task, section) in [
        (true, None, 60, 600),
        (true, Some(90), 90, 600),
        (true, Some(10), 10, 600),
        (true, Some(900), 900, 900),
        (false, None, 60, 60),
        (false, Some(90), 90, 90),
        (false, Some(10), 10, 10),
    ] {
        let mut world = World::with(vec![in_section("a")]);
        let runner = keeps.then(|| runner("w"));
        world.try_claim(ClaimAsk { runner, ..claim_ask("w") }).unwrap();
        world.pass(TTL / 2);
        let ttl = ttl.map(Duration::from_secs);
        let events = world.events.len();
        let answer = world.act(&HeartbeatAsk { ttl, ..ask("a", label("w")) });
        let case = format!("{keeps} {ttl:?}");
        let Heartbeat::Renewed { task: shown, ttl, section: true } = answer else {
            panic!("{case}: {answer:?}")
        };
        assert_eq!(ttl, Duration::from_secs(task), "{case}");
        assert!(shown.claim.unwrap().grant.is_veiled(), "{case}");
        let expected = [("path:a/**", task), ("section:S", section), ("task:a", task)];
        assert_eq!(left(&world), expected.map(|(name, left)| (name.to_owned(), left)), "{case}");
        assert_eq!(world.events.len(), events, "renewals are no events");
    }
}

#[test]
fn it_is_said_whether_a_section_was_renewed() {
    let with_files = NewTask { files: vec!["x".into()], ..plain("a") };
    let with_section = NewTask { section: Some("S".into()), ..plain("a") };
    for (task, expected) in
        [(plain("a"), false), (with_files, false), (with_section, true), (in_section("a"), true)]
    {
        let mut world = World::with(vec![task]);
        world.claim("w", "a");
        let Heartbeat::Renewed { section, .. } = world.heartbeat("w", "a") else { panic!() };
        assert_eq!(section, expected);
    }
}

#[test]
fn only_the_worker_that_has_the_task_is_heard() {
    let mut world = World::with(vec![plain("a"), plain("free")]);
    let claimed = world.claim("w", "a");
    let wrong = Some(Token(claimed.token.0 + 1));
    for (task, proof, token, expected) in [
        ("none", label("w"), None, "not found"),
        ("free", label("w"), None, "not yours"),
        ("a", label("v"), None, "not yours"),
        ("a", Proof::Grant(GrantId::random()), None, "not yours"),
        ("a", label("w"), wrong, "not yours"),
        ("a", label("w"), None, "renewed"),
        ("a", label("w"), Some(claimed.token), "renewed"),
        ("a", Proof::Grant(claimed.grant), None, "renewed"),
    ] {
        let mut world = world.clone();
        world.pass(TTL / 2);
        let before = left(&world);
        let case = format!("{task} {proof:?} {token:?}");
        let answer = world.act(&HeartbeatAsk { token, ..ask(task, proof) });
        let said = match &answer {
            Heartbeat::NotFound => "not found",
            Heartbeat::NotYours(task) => {
                assert!(task.claim.as_ref().is_none_or(|claim| claim.grant.is_veiled()));
                "not yours"
            }
            Heartbeat::Renewed { .. } => "renewed",
            other => panic!("{case}: {other:?}"),
        };
        assert_eq!(said, expected, "{case}");
        assert_eq!(left(&world) != before, said == "renewed", "{case}");
    }
}

#[test]
fn a_claim_that_lapsed_or_lost_a_part_is_not_renewed() {
    for (part, breaks) in [("task:a", false), ("path:a/**", true), ("section:S", true)] {
        let mut world = World::with(vec![in_section("a")]);
        world.claim("w", "a");
        match breaks {
            true => world.break_first(part),
            false => world.pass(TTL),
        }
        let before = left(&world);
        let answer = world.heartbeat("w", "a");
        let Heartbeat::ClaimLost { part: lost, task } = answer else { panic!("{answer:?}") };
        let expected = if breaks { part } else { "path:a/**" };
        assert_eq!(lost.to_string(), expected);
        assert!(task.claim.unwrap().grant.is_veiled());
        assert_eq!(left(&world), before);
    }
    // Of the task itself there is nothing left to show.
    let mut world = World::with(vec![in_section("a")]);
    world.claim("w", "a");
    world.break_first("task:a");
    assert!(matches!(world.heartbeat("w", "a"), Heartbeat::NotYours(_)));
}
