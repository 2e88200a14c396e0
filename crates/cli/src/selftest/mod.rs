//! The implementation of `tenure selftest`. Real processes contend and some are killed; whether
//! they excluded each other is decided from the times that they recorded, not by tenure.
//!
//! In reading order: `trial` lists what is tested, `scratch` is the folder, `processes` runs the
//! processes and `worker` is one of them, `contender` takes turns, `file_replacement` tests without turns,
//! `exclusion_check` decides, and `report` formats the result.

mod contender;
mod error;
mod exclusion_check;
mod file_replacement;
mod processes;
mod report;
mod scratch;
mod trial;
mod worker;

pub(crate) use error::SelftestError;
pub(crate) use exclusion_check::check_turns;
pub(crate) use report::{LIMITS, Report};
pub(crate) use scratch::Scratch;
pub(crate) use trial::Trial;
pub(crate) use worker::work;

use std::time::Duration;

/// The size of the test.
pub(crate) struct TestSize {
    /// The number of processes.
    pub(crate) processes: usize,
    /// The duration of all trials together.
    pub(crate) span: Duration,
    /// Whether the store holds lock files of other programs. To change such a file it must be
    /// swapped or replaced without a gap, during which those programs would consider it free.
    pub(crate) strict: bool,
    /// Whether no lock is taken, so that the selftest must fail; for tests.
    pub(crate) without_lock: bool,
}

/// Runs all trials; `tell` is called before each.
pub(crate) fn run(
    scratch: &Scratch,
    size: &TestSize,
    mut tell: impl FnMut(Trial),
) -> Result<Report, SelftestError> {
    let mut report = Report::default();
    for trial in Trial::EACH {
        tell(trial);
        let outcome = processes::run(trial, scratch, size)?;
        report.checks.push(report::Check::of(trial, outcome, size.strict));
    }
    Ok(report)
}
