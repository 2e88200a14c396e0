//! What is shown of each worker: whether it is registered, what it does, and what it holds.

use crate::support::{AskExt, View, World, ask, evidence_of, exclusive};
use tenure_core::registry::StoredWorker;
use tenure_core::{
    Ask, Evidence, HoldState, Liveness, Overview, RegisteredWorker, Scope, Snapshot, WallTime,
};

fn registered(id: &str, label: &str, evidence: Option<Evidence>) -> RegisteredWorker {
    let said = StoredWorker {
        label: label.into(),
        started_at: WallTime(0),
        evidence,
        section: None,
        labels: vec![],
        tasks: vec![],
        done: 0,
        failed: 0,
    };
    RegisteredWorker { id: id.into(), last_seen_at: WallTime(0), said }
}

/// A request under this label by this process.
fn by(number: u32, label: &str, process: Option<u32>, resource: &str) -> Ask {
    let ask =
        ask(number, &[exclusive(resource)]).owned_by(label).lasting_ms(u64::from(number) * 100);
    match process {
        Some(process) => ask.by_process(process),
        None => ask.untied(),
    }
}

/// Each worker as (label, id where it is registered, state, what it holds).
fn shown(world: &World, workers: &[RegisteredWorker]) -> Vec<String> {
    let seen = Snapshot { workers: workers.to_vec(), ..world.show(&Scope::Everything) };
    let overview = Overview::of(&seen, &world.dead);
    let line = |worker: &tenure_core::Worker<'_>| {
        let id = worker.registered.map_or("-", |registered| registered.id.as_str());
        let holds = worker.holds.iter().map(|hold| hold.seen.hold.want.resource.to_string());
        let holds = holds.collect::<Vec<_>>().join(" ");
        format!("{} {id} {}: {holds}", worker.label, worker.state())
    };
    overview.workers().iter().map(line).collect()
}

#[test]
fn a_worker_works_idles_holds_something_or_is_gone() {
    let mut world = World::new(View::Whole);
    world.must_grant(&by(1, "works", Some(1), "task:a"));
    world.must_grant(&by(2, "works", Some(1), "path:a/**"));
    world.must_grant(&by(3, "keeps", Some(3), "section:S"));
    world.must_grant(&by(4, "unregistered", Some(4), "deploy"));
    world.must_grant(&by(5, "unregistered too", None, "task:b"));
    world.must_grant(&by(6, "dies", Some(6), "task:c"));
    world.must_grant(&by(7, "dies unregistered", Some(7), "task:d"));
    [6, 7, 8].into_iter().for_each(|process| world.kill(process));
    let workers = [
        registered("1", "works", Some(evidence_of(1))),
        registered("3", "keeps", Some(evidence_of(3))),
        registered("6", "dies", Some(evidence_of(6))),
        registered("8", "dies idle", Some(evidence_of(8))),
        registered("9", "idles", None),
    ];
    let expected = [
        "works 1 working: task:a path:a/**",
        "keeps 3 idle: section:S",
        "dies 6 gone: task:c",
        "dies idle 8 gone: ",
        "idles 9 idle: ",
        "unregistered - holding: deploy",
        "unregistered too - working: task:b",
        "dies unregistered - gone: task:d",
    ];
    assert_eq!(shown(&world, &workers), expected);
}

#[test]
fn a_hold_is_that_of_the_worker_with_its_label_and_where_known_its_process() {
    let mut world = World::new(View::Whole);
    world.must_grant(&by(1, "alice", Some(1), "a"));
    world.must_grant(&by(2, "alice", Some(2), "b"));
    world.must_grant(&by(3, "alice", Some(3), "c"));
    world.must_grant(&by(4, "bob", Some(1), "d"));
    world.must_grant(&by(5, "bob", None, "e"));
    let elsewhere = Evidence { boot: "another".into(), ..evidence_of(3) };
    let workers = [
        registered("1", "alice", Some(evidence_of(1))),
        registered("2", "alice", Some(evidence_of(2))),
        registered("3", "alice", Some(elsewhere)),
        registered("4", "bob", Some(evidence_of(4))),
    ];
    let expected = [
        "alice 1 idle: a",
        "alice 2 idle: b",
        "alice 3 idle: ",
        "bob 4 idle: e",
        "alice - holding: c",
        "bob - holding: d",
    ];
    assert_eq!(shown(&world, &workers), expected);
    let unknown = [registered("5", "bob", None)];
    let expected = ["bob 5 idle: d e", "alice - holding: a b c"];
    assert_eq!(shown(&world, &unknown), expected);
}

#[test]
fn the_next_hold_to_lapse_is_one_that_counts_if_any_does() {
    let mut world = World::new(View::Whole);
    world.must_grant(&by(5, "alice", None, "long"));
    world.must_grant(&by(1, "alice", None, "lapsed"));
    world.must_grant(&by(3, "alice", None, "next"));
    let next = |world: &World| {
        let seen = world.show(&Scope::Everything);
        let overview = Overview::of(&seen, &world.dead);
        let hold = overview.workers()[0].next_to_lapse().unwrap();
        hold.hold.want.resource.to_string()
    };
    world.pass_ms(200);
    assert_eq!(next(&world), "next");
    world.pass_ms(1_000);
    assert_eq!(next(&world), "long", "the first of those that lapsed");
}

#[test]
fn each_state_of_a_hold_has_a_word() {
    let states = [HoldState::Held, HoldState::Lapsed, HoldState::Dead];
    assert_eq!(states.map(HoldState::word), ["held", "lapsed", "dead"]);
}

#[test]
fn a_registered_worker_counts_unless_it_was_proved_dead() {
    let mut world = World::new(View::Whole);
    world.kill(3);
    for (evidence, liveness, counts) in [
        (None, Liveness::Unknown, true),
        (Some(evidence_of(2)), Liveness::Alive, true),
        (Some(evidence_of(3)), Liveness::Dead, false),
    ] {
        let workers = vec![registered("1", "alice", evidence)];
        let seen = Snapshot { workers, ..world.show(&Scope::Everything) };
        let overview = Overview::of(&seen, &world.dead);
        let worker = &overview.workers()[0];
        assert_eq!((worker.liveness, worker.counts()), (liveness, counts));
        assert_eq!(overview.counts().workers, usize::from(counts), "{liveness:?}");
    }
}

#[test]
fn a_worker_whose_process_is_dead_is_not_at_work_whatever_it_left() {
    let mut world = World::new(View::Whole);
    world.must_grant(&by(5, "alice", None, "task:t"));
    world.kill(3);
    for (pid, state, liveness) in [(2, "working", Liveness::Alive), (3, "holding", Liveness::Dead)]
    {
        let workers = vec![registered("1", "alice", Some(evidence_of(pid)))];
        let seen = Snapshot { workers, ..world.show(&Scope::Everything) };
        let overview = Overview::of(&seen, &world.dead);
        let worker = &overview.workers()[0];
        assert_eq!((worker.state(), worker.liveness, worker.counts()), (state, liveness, true));
    }
}
