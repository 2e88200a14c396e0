//! Who works: holders by label, each with what it holds.

use tenure::core::Overview;
use tenure::{Client, Error};
use tenure_frontend::view::Worker;

/// Everybody who holds something now, in the order in which they began.
pub async fn workers(client: &Client) -> Result<Vec<Worker>, Error> {
    let seen = client.look_at_workers().await?;
    Ok(workers_in(&Overview::of(&seen, client.witness())))
}

/// Everybody who holds something in what was seen.
pub fn workers_in(overview: &Overview<'_>) -> Vec<Worker> {
    overview.workers().iter().map(Worker::new).collect()
}
