//! What becomes of the lock and of the command when `tenure run` is killed with SIGKILL.

use crate::support::{Engine, Running, Signal, StoreLocation, is_alive, signal, until};
use std::time::Instant;
use tenure::blocking::Client;

/// A `tenure run` whose lease would last long, once its command's group is known to the store.
fn start(place: &StoreLocation, script: &str) -> Running {
    let holder = place.start(&["run", "--ttl", "10m", "x", "--", "sh", "-c", script]);
    place.wait_for("ready");
    let client = Client::open(&place.url()).expect("the store");
    until("the group to be known", || {
        let seen = client.run(client.asynchronous().look_everywhere()).expect("a look");
        let evidence = seen.holds.iter().map(|seen| seen.hold.holder.evidence.as_ref());
        let mut groups = evidence.map(|evidence| evidence.and_then(|evidence| evidence.group));
        groups.all(|group| group.is_some()).then_some(())
    });
    holder
}

fn waits_for_it(place: &StoreLocation) -> Running {
    let waiter = place.start(&["run", "-w", "50", "x", "--", "true"]);
    until("the waiter in the queue", || {
        (place.why("x")["waiters"].as_array()?.len() == 1).then_some(())
    });
    waiter
}

#[test]
fn the_command_dies_with_its_tenure_and_the_lock_is_free_long_before_the_lease_ends() {
    let place = StoreLocation::new();
    let holder = start(&place, "echo $$ >$D/command; touch $D/ready; exec sleep 300");
    let command = place.number("command");
    let waiter = waits_for_it(&place);
    let killed_at = Instant::now();
    holder.kill();
    let ended = waiter.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("is dead"), "{ended:?}");
    println!("taken over {:.1?} after the kill", killed_at.elapsed());
    assert!(!is_alive(command));
    place.is_deserted();
}

#[test]
fn what_the_command_started_dies_with_its_tenure_before_another_holds() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let place = StoreLocation::with(engine);
        let script = "sleep 300 & echo $! >$D/grandchild; touch $D/ready; wait";
        let holder = start(&place, script);
        let grandchild = place.number("grandchild");
        holder.kill();
        let ended = place.run(&["run", "-w", "50", "x", "--", "true"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!is_alive(grandchild));
        place.is_deserted();
    }
}

/// Kills the process that would end the command's group.
fn kill_guardian(place: &StoreLocation) {
    let is_guardian = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "guards-commands"
    };
    let guardian = place.processes().into_iter().find(is_guardian).expect("a guardian");
    signal(guardian, Signal::KILL);
    until("the end of the guardian", || (!is_alive(guardian)).then_some(()));
}

#[test]
fn a_grandchild_that_outlives_the_guardian_too_keeps_the_lock_until_it_ends_and_not_longer() {
    let place = StoreLocation::new();
    let script = "sleep 300 & echo $! >$D/grandchild; echo $$ >$D/command; touch $D/ready; wait";
    let holder = start(&place, script);
    let (command, grandchild) = (place.number("command"), place.number("grandchild"));
    kill_guardian(&place);
    holder.kill();
    until("the end of the command", || (!is_alive(command)).then_some(()));
    assert!(is_alive(grandchild));

    let ended = place.run(&["run", "-n", "x", "--", "true"]);
    assert_eq!(ended.code, 6, "{ended:?}");
    assert_eq!(place.why("x")["holders"][0]["is_stale"], false);
    let why = place.run(&["why", "x"]).stdout;
    let left = format!("has ended; of what it started still runs: sleep ({grandchild})");
    assert!(why.contains(&left) && why.contains("freed when all of that has ended"), "{why}");
    let waiter = waits_for_it(&place);
    assert!(is_alive(grandchild));
    signal(grandchild, Signal::KILL);
    let killed_at = Instant::now();
    let ended = waiter.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    println!("taken over {:.1?} after the grandchild's end", killed_at.elapsed());
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
}

#[test]
fn a_lock_whose_holder_died_unnoticed_is_free_to_the_next_who_asks() {
    let place = StoreLocation::new();
    let holder = start(&place, "echo $$ >$D/command; touch $D/ready; exec sleep 300");
    let command = place.number("command");
    holder.kill();
    until("the end of the command", || (!is_alive(command)).then_some(()));
    assert_eq!(place.why("x")["holders"][0]["is_stale"], true);
    let ended = place.run(&["--json", "acquire", "-n", "x"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.json()["data"]["reason"], "claimed_dead");
}

#[test]
fn a_nested_tenure_and_its_command_die_with_the_outer_one() {
    let place = StoreLocation::new();
    let script =
        "exec $T run --ttl 10m y -- sh -c 'echo $$ >$D/command; touch $D/ready; exec sleep 300'";
    let holder = start(&place, script);
    assert!(is_alive(place.number("command")));
    holder.kill();
    for lock in ["x", "y"] {
        let ended = place.run(&["run", "-w", "50", lock, "--", "true"]);
        assert_eq!(ended.code, 0, "{lock}: {ended:?}");
    }
    place.is_deserted();
}

#[test]
fn a_command_that_cannot_be_started_leaves_the_lock_free() {
    let place = StoreLocation::new();
    place.touch("file");
    for (command, code) in [("no-such-program", 127), ("./file", 126)] {
        let ended = place.run(&["run", "--ttl", "10m", "x", "--", command]);
        assert_eq!(ended.code, code, "{ended:?}");
        assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
    }
}

#[test]
fn a_polite_signal_is_passed_on_and_the_lock_is_given_back() {
    let place = StoreLocation::new();
    let script = "trap 'exit 5' TERM; touch $D/ready; while :; do sleep 0.02; done";
    let holder = start(&place, script);
    holder.signal(Signal::TERM);
    assert_eq!(holder.end().code, 5);
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
    place.is_deserted();
}

#[test]
fn a_worker_whose_guardian_was_killed_goes_on_and_gets_another() {
    let place = StoreLocation::new();
    for title in ["first", "second"] {
        assert_eq!(place.run(&["tasks", "add", title]).code, 0);
    }
    let script = "if [ ! -e $D/first ]; then touch $D/first; until [ -e $D/go ]; do sleep 0.02; done; \
        else sleep 300 & echo $! >$D/grandchild; touch $D/second; wait; fi";
    let worker = place.start(&["work", "--until-empty", "--", "sh", "-c", script]);
    place.wait_for("first");
    kill_guardian(&place);
    place.touch("go");
    place.wait_for("second");
    let grandchild = place.number("grandchild");
    worker.kill();
    until("the end of the grandchild", || (!is_alive(grandchild)).then_some(()));
}
