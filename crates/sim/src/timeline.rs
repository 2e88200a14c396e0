//! A broken promise as a timeline that a person can read.

use crate::history::{Line, Violation};
use crate::plan::Plan;
use crate::simulation::Outcome;
use std::fmt::Write;

/// How many lines before the violation are shown at most.
const LINES_MAX: usize = 60;

/// Describes the first violation of a plan: what the plan is, and what led to it.
pub fn timeline(plan: &Plan, outcome: &Outcome, checker: &str) -> String {
    let mut text = String::new();
    let Some(violation) = outcome.violations.iter().find(|found| found.checker == checker) else {
        return text;
    };
    let _ = writeln!(text, "seed {} breaks {}: {}", plan.seed, violation.checker, violation.text);
    let programs: Vec<String> = plan
        .programs
        .iter()
        .map(|program| {
            format!("{:?}{} on machine {}", program.kind, program.number, program.machine)
                .to_lowercase()
        })
        .collect();
    let _ = writeln!(text, "programs: {}", programs.join(", "));
    let _ = writeln!(
        text,
        "drift in ppm: {:?}; calls in trouble: {} of 1000",
        plan.drifts_ppm, plan.trouble_permille
    );
    for (at, fault) in &plan.faults {
        let _ = writeln!(text, "planned {:>9.3}s  {fault}", at.as_secs_f64());
    }
    let lines: Vec<&Line> = outcome
        .history
        .lines
        .iter()
        .filter(|line| line.at <= violation.at && matters(line, violation))
        .collect();
    let skipped = lines.len().saturating_sub(LINES_MAX);
    if skipped > 0 {
        let _ = writeln!(text, "({skipped} earlier lines)");
    }
    for line in &lines[skipped..] {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Whether a line tells of what the violation is about: the same program or resource, or a fault.
fn matters(line: &Line, violation: &Violation) -> bool {
    let about: Vec<&str> =
        violation.text.split([' ', ',', ';']).filter(|word| word.len() > 1).collect();
    let is_named = |word: &str| {
        about.contains(&word)
            || ["q", "a", "b", "s", "n"].contains(&word)
                && violation.text.split(' ').any(|one| one == word)
    };
    line.text.starts_with("FAULT")
        || ["machine", "store", "program", "operator", "VIOLATION", "simulation"]
            .iter()
            .any(|one| line.who.starts_with(one))
        || is_named(&line.who)
        || line.text.split(' ').any(|word| {
            is_named(word) && word.contains(|c: char| c == ':' || c == '-' || word.len() == 1)
        })
}
