//! Some seeds keep every promise, the same seeds give the same history, and mutants are caught.

use std::process::Command;
use tenure_sim::mutant::Mutant;
use tenure_sim::plan::{Pace, Plan};
use tenure_sim::report::{SeedReport, Totals, catch};
use tenure_sim::shrink::shrink;
use tenure_sim::simulation::simulate;
use tenure_sim::timeline::timeline;

/// Enough for every mutant; most need fewer than ten.
const SEEDS_PER_MUTANT: u64 = 150;

fn line(seeds: std::ops::Range<u64>) -> String {
    let mut totals = Totals::default();
    for seed in seeds {
        let report = SeedReport::of(seed, Pace::Steady);
        if let Some(violation) = report.violations.first() {
            let plan = Plan::of_seed(seed, Pace::Steady);
            let (plan, outcome) = shrink(&plan, None, violation.checker);
            panic!("{}", timeline(&plan, &outcome, violation.checker));
        }
        totals.add(&report);
    }
    totals.line()
}

#[test]
fn promises_are_kept_and_the_same_seeds_give_the_same_history() {
    let first = line(1..6);
    assert_eq!(first, line(1..6), "twice in one process");
    assert_ne!(first, line(2..7), "other seeds");
    for jobs in ["1", "3"] {
        let output = Command::new(env!("CARGO_BIN_EXE_tenure-sim"))
            .args(["--seeds", "5", "--jobs", jobs])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert_eq!(text.lines().last(), Some(first.as_str()), "in {jobs} threads");
    }
}

/// One mutant of each place where faults are made; CI runs all of them with `scripts/simulate --mutants`.
#[test]
fn mutants_are_caught() {
    let some = [Mutant::RenewForgets, Mutant::SuspendIsNotCounted, Mutant::SplitBrain];
    let survivors: Vec<&str> = some
        .iter()
        .filter(|mutant| catch(**mutant, Pace::Steady, 1, SEEDS_PER_MUTANT).is_none())
        .map(|mutant| mutant.name())
        .collect();
    assert_eq!(survivors, Vec::<&str>::new());
    assert!(Mutant::ALL.len() >= 40);
}

#[test]
fn a_failure_is_shrunk_to_what_is_needed_and_can_be_read() {
    let mutant = Mutant::LockNotWritten;
    let found = catch(mutant, Pace::Steady, 1, SEEDS_PER_MUTANT).unwrap();
    let plan = Plan::of_seed(found.seeds, Pace::Steady);
    let (smaller, outcome) = shrink(&plan, Some(mutant), found.checker);
    assert!(smaller.programs.len() < plan.programs.len(), "{}", smaller.programs.len());
    assert!(smaller.faults.len() <= plan.faults.len());
    let text = timeline(&smaller, &outcome, found.checker);
    assert!(text.contains("VIOLATION") && text.contains("holds"), "{text}");
}

/// A violation makes the command fail and print the seed; without one a mutant survives.
#[test]
fn the_command_reports_a_mutant_that_survives() {
    let output = Command::new(env!("CARGO_BIN_EXE_tenure-sim"))
        .args(["--mutants", "--seeds", "0"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let last = format!("mutants={} caught=0", Mutant::ALL.len());
    assert_eq!(text.lines().last(), Some(last.as_str()));
}

#[test]
fn the_parts_are_all_mutants_together() {
    let named = |part: &str| -> Vec<String> {
        let arguments = ["--mutants", "--seeds", "0", "--part", part];
        let output = Command::new(env!("CARGO_BIN_EXE_tenure-sim")).args(arguments).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let survivors = text.lines().filter(|line| line.contains("SURVIVED"));
        survivors.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
    };
    let mut found: Vec<String> = ["0/3", "4/3", "2/3"].into_iter().flat_map(named).collect();
    found.sort_unstable();
    let mut all: Vec<String> = Mutant::ALL.iter().map(|mutant| mutant.name().to_owned()).collect();
    all.sort_unstable();
    assert_eq!(found, all);
}

/// Without faults in the plan nothing goes wrong that is counted as one.
#[test]
fn a_plan_without_faults_has_none() {
    let plan = Plan { faults: vec![], trouble_permille: 0, ..Plan::of_seed(1, Pace::Steady) };
    let outcome = simulate(&plan, None);
    assert_eq!(outcome.faults, 0);
    assert!(outcome.violations.is_empty());
    assert!(outcome.acquisitions > 50, "{}", outcome.acquisitions);
}
