//! Commands killed at random moments leave nothing that hinders those who come after them.

use crate::support::{Dice, Engine, Running, Signal, StoreLocation};
use std::time::{Duration, Instant};

const ROUNDS_PER_STORE: usize = 2;
const COMMANDS_PER_ROUND: usize = 5;

/// Leases here are short: a detached one that was taken just before its taker was killed is nobody's
/// until it lapses, and that is as it should be.
const COMMANDS: [&[&str]; 9] = [
    &["run", "-n", "a", "--", "true"],
    &["run", "-w", "5", "a", "b", "--", "true"],
    &["run", "-w", "5", "--ttl", "10m", "b", "--", "sh", "-c", "sleep 0.01"],
    &["run", "-w", "5", "-s", "c", "--", "true"],
    &["acquire", "-w", "5", "--ttl", "200ms", "a"],
    &["acquire", "-n", "--as", "bob", "--ttl", "200ms", "b", "c"],
    &["release", "--as", "bob", "b", "c"],
    &["locks", "cleanup"],
    &["break", "c", "--force", "--reason", "test"],
];

/// How long an undisturbed command takes here, so that kills hit every part of it.
fn usual_time(place: &StoreLocation) -> Duration {
    let mut times: Vec<Duration> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            assert_eq!(place.run(&["run", "-n", "a", "--", "true"]).code, 0);
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[2]
}

#[derive(Default)]
struct Tally {
    killed: usize,
    done: usize,
}

/// Starts a few commands at once and kills each after a time of its own.
fn round(place: &StoreLocation, dice: &mut Dice, usual: Duration, tally: &mut Tally) {
    let begun = Instant::now();
    let mut victims: Vec<(Duration, Running)> = (0..COMMANDS_PER_ROUND)
        .map(|_| {
            let running = place.start(COMMANDS[dice.below(COMMANDS.len())]);
            let longest = usual * COMMANDS_PER_ROUND as u32 / 2;
            let after = Duration::from_micros(dice.below(longest.as_micros() as usize) as u64);
            (begun.elapsed() + after, running)
        })
        .collect();
    victims.sort_by_key(|(at, _)| *at);
    for (at, mut running) in victims {
        std::thread::sleep(at.saturating_sub(begun.elapsed()));
        match running.has_ended() {
            true => tally.done += 1,
            false => tally.killed += 1,
        }
        running.signal(Signal::KILL);
        let ended = running.end();
        assert!([0, 4, 5, 6, 8, 137].contains(&ended.code), "{ended:?}");
        assert!(!ended.text().contains("database is locked"), "{ended:?}");
    }
}

/// Whether everything still works: the store is whole, and each lock can be taken.
fn check(place: &StoreLocation) {
    let ended = place.run(&["doctor"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for lock in ["a", "b", "c"] {
        let ended = place.run(&["run", "-w", "50", lock, "--", "true"]);
        assert_eq!(ended.code, 0, "{lock}: {ended:?}");
    }
    let ended = place.run(&["run", "-n", "a", "b", "c", "--", "true"]);
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn kill_at_random_points_over_500_runs_never_leaves_a_stuck_lock_or_a_broken_database() {
    kill_at_random_points(Engine::Sqlite, 50);
}

#[test]
fn kill_at_random_points_over_200_runs_never_leaves_a_stuck_lock_or_a_broken_journal() {
    kill_at_random_points(Engine::Files, 20);
}

fn kill_at_random_points(engine: Engine, stores: usize) {
    let mut dice = Dice::new();
    let usual = usual_time(&StoreLocation::with(engine));
    let mut tally = Tally::default();
    for _ in 0..stores {
        // A new folder each time, so that the making of a store is hit as well.
        let place = StoreLocation::with(engine);
        for _ in 0..ROUNDS_PER_STORE {
            round(&place, &mut dice, usual, &mut tally);
        }
        check(&place);
    }
    println!("{} killed, {} done before; a command takes {usual:.1?}", tally.killed, tally.done);
}
