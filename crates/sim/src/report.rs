//! Many seeds, and all mutants.

use crate::history::Violation;
use crate::mutant::Mutant;
use crate::plan::{Pace, Plan};
use crate::simulation::{simulate, simulate_until_violation};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// What came of one seed.
pub struct SeedReport {
    /// Which seed.
    pub seed: u64,
    /// How often a program was told that it holds something.
    pub acquisitions: u64,
    /// How many faults happened.
    pub faults: u64,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    simulated: Duration,
    digest: [u8; 32],
}

impl SeedReport {
    /// Simulates this seed.
    pub fn of(seed: u64, pace: Pace) -> SeedReport {
        let outcome = simulate(&Plan::of_seed(seed, pace), None);
        SeedReport {
            seed,
            acquisitions: outcome.acquisitions,
            faults: outcome.faults,
            violations: outcome.violations,
            simulated: outcome.simulated,
            digest: outcome.history.digest(),
        }
    }
}

/// What came of many seeds.
#[derive(Default)]
pub struct Totals {
    /// How many seeds.
    pub seeds: u64,
    /// How often a program was told that it holds something.
    pub acquisitions: u64,
    /// How many faults happened.
    pub faults: u64,
    /// How many promises were broken.
    pub violations: u64,
    /// How much time passed for the simulated machines.
    pub simulated: Duration,
    digest: Sha256,
}

impl Totals {
    /// Adds what came of a seed. The digest depends on the order.
    pub fn add(&mut self, report: &SeedReport) {
        self.seeds += 1;
        self.acquisitions += report.acquisitions;
        self.faults += report.faults;
        self.violations += report.violations.len() as u64;
        self.simulated += report.simulated;
        self.digest.update(report.digest);
    }

    /// The line that ends a run.
    pub fn line(&self) -> String {
        let digest: String =
            self.digest.clone().finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "seeds={} acquisitions={} faults={} violations={} digest={digest}",
            self.seeds, self.acquisitions, self.faults, self.violations
        )
    }
}

/// How a mutant was noticed.
pub struct Caught {
    /// Which checker noticed first.
    pub checker: &'static str,
    /// After how many seeds.
    pub seeds: u64,
    /// What it saw.
    pub text: String,
}

/// Simulates a mutant with one seed after another until a checker notices it, up to this many.
pub fn catch(mutant: Mutant, pace: Pace, first_seed: u64, seeds_max: u64) -> Option<Caught> {
    (0..seeds_max).find_map(|count| {
        let plan = Plan::of_seed(first_seed + count, pace);
        let outcome = simulate_until_violation(&plan, Some(mutant));
        let found = outcome.violations.into_iter().next()?;
        Some(Caught { checker: found.checker, seeds: count + 1, text: found.text })
    })
}
