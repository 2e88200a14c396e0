//! Measures claiming and completing tasks.
//!
//! `task_supply` adds tasks. The measurements are `rate` (per second), `depth` (cost of a long list) and
//! `claimd` (compared with claimd).

mod claimd;
mod depth;
mod rate;
mod task_supply;

pub(super) use depth::{WARM_UP, latencies};
pub(super) use rate::{baseline_commits, duel, pairs};
pub(super) use task_supply::{TaskSupply, counts};

use crate::report::Report;
use crate::{BenchError, BenchSetup};

/// The number of tasks in a batch.
const BATCH: usize = 100;

pub(super) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    if let Some(url) = setup.given_store() {
        task_supply::refuse_used(url)?;
    }
    depth::measure(setup, report)?;
    rate::measure(setup, report)?;
    claimd::measure(setup, report)
}
