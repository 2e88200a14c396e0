//! Makes a plan that breaks a promise as small as possible.

use crate::mutant::Mutant;
use crate::plan::Plan;
use crate::simulation::{Outcome, simulate_until_violation};

/// How many simulations shrinking may take.
const TRIES_MAX: usize = 300;

/// Takes out of a plan what is not needed to break the same promise, and returns what is left with
/// what came of it.
pub fn shrink(plan: &Plan, mutant: Option<Mutant>, checker: &str) -> (Plan, Outcome) {
    let mut smallest = plan.clone();
    let mut outcome = simulate_until_violation(&smallest, mutant);
    let mut tries = 0;
    loop {
        let mut is_smaller = false;
        for candidate in candidates(&smallest) {
            if tries == TRIES_MAX {
                return (smallest, outcome);
            }
            tries += 1;
            let tried = simulate_until_violation(&candidate, mutant);
            if tried.violations.iter().any(|found| found.checker == checker) {
                (smallest, outcome) = (candidate, tried);
                is_smaller = true;
                break;
            }
        }
        if !is_smaller {
            return (smallest, outcome);
        }
    }
}

/// The plan without one of its parts, the largest parts first.
fn candidates(plan: &Plan) -> Vec<Plan> {
    let mut found = Vec::new();
    if plan.faults.len() > 3 {
        let half = plan.faults.len() / 2;
        found.push(Plan { faults: plan.faults[..half].to_vec(), ..plan.clone() });
        found.push(Plan { faults: plan.faults[half..].to_vec(), ..plan.clone() });
    }
    if plan.trouble_permille > 0 {
        found.push(Plan { trouble_permille: 0, ..plan.clone() });
    }
    for index in 0..plan.programs.len() {
        let mut without = plan.clone();
        without.programs.remove(index);
        found.push(without);
    }
    for index in 0..plan.faults.len() {
        let mut without = plan.clone();
        without.faults.remove(index);
        found.push(without);
    }
    if plan.drifts_ppm.iter().any(|drift| *drift != 0) {
        let drifts_ppm = vec![0; plan.drifts_ppm.len()];
        found.push(Plan { drifts_ppm, ..plan.clone() });
    }
    found
}
