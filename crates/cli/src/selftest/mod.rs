//! What `tenure selftest` does: real processes contend, some are killed, and whether they excluded
//! each other is judged by the times at which they say that they entered and left, not by tenure.
//!
//! In reading order: a `Trial` is one thing that is tried; `scratch` is where; `crew` are the
//! processes and `worker` is one of them; `contender` is how it gets its turns, `churn` what is
//! tried without turns; `judge` decides, and `report` words it.

mod churn;
mod contender;
mod crew;
mod error;
mod judge;
mod report;
mod scratch;
mod trial;
mod worker;

pub(crate) use error::SelftestError;
pub(crate) use report::{LIMITS, Report};
pub(crate) use scratch::Scratch;
pub(crate) use trial::Trial;
pub(crate) use worker::work;

use std::time::Duration;

/// How hard to try.
pub(crate) struct Effort {
    /// How many processes contend.
    pub(crate) processes: usize,
    /// How long, for all trials together.
    pub(crate) span: Duration,
    /// Whether lock files of other programs are in the store: to change one, it must be swapped or
    /// replaced without a gap, in which those programs would take it for free.
    pub(crate) strict: bool,
    /// Whether the store is never asked, so that exclusion must be found missing; for tests.
    pub(crate) without_lock: bool,
}

/// Tries everything; `tell` hears what comes next.
pub(crate) fn run(
    scratch: &Scratch,
    effort: &Effort,
    mut tell: impl FnMut(Trial),
) -> Result<Report, SelftestError> {
    let mut report = Report::default();
    for trial in Trial::EACH {
        tell(trial);
        let outcome = crew::run(trial, scratch, effort)?;
        report.checks.push(report::Check::of(trial, outcome, effort.strict));
    }
    Ok(report)
}
