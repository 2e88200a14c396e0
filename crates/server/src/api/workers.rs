//! Who works: holders by label, each with what it holds.

use serde_json::Value;
use tenure::core::Overview;
use tenure::{Client, Error};
use tenure_frontend::view;

/// Everybody who holds something now, as JSON, in the order in which they began.
pub async fn workers(client: &Client) -> Result<Vec<Value>, Error> {
    let seen = client.look_everywhere().await?;
    Ok(workers_in(&Overview::of(&seen, client.witness())))
}

/// Everybody who holds something in what was seen.
pub fn workers_in(overview: &Overview<'_>) -> Vec<Value> {
    overview.workers().iter().map(view::worker_json).collect()
}
