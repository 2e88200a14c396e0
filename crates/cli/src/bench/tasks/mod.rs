//! Claiming and completing tasks: how many per second, how much a long list costs, and beside whom.
//!
//! `stock` makes tasks. Then the measurements: `rate`, `depth`, `peer`.

mod depth;
mod peer;
mod rate;
mod stock;

pub(super) use depth::latencies;
pub(super) use rate::{duel, floor_commits, pairs};
pub(super) use stock::{Stock, counts};

use super::report::Report;
use super::{BenchError, Ground};

/// How many tasks make a batch.
const BATCH: usize = 100;

pub(super) fn measure(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    if let Some(url) = ground.given_store() {
        stock::refuse_used(url)?;
    }
    depth::measure(ground, report)?;
    rate::measure(ground, report)?;
    peer::measure(ground, report)
}
