//! Reads the store whenever it changed, in the background of the view.

use super::model::ViewData;
use crate::context::Context;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::Client;
use tokio::sync::watch;

/// The latest data and when it was read.
#[derive(Clone, Debug)]
pub(crate) struct LatestData {
    pub(crate) data: Arc<ViewData>,
    pub(crate) health: Health,
    pub(crate) looked_at: Instant,
}

/// Whether the data is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It is current.
    Live,
    /// There is no store yet.
    NoStore,
    /// The store does not answer; this is the last known data.
    Trouble(String),
}

impl LatestData {
    pub(crate) fn nothing() -> LatestData {
        LatestData { data: Arc::default(), health: Health::NoStore, looked_at: Instant::now() }
    }

    fn troubled(&self, message: String) -> LatestData {
        LatestData { health: Health::Trouble(message), ..self.clone() }
    }
}

/// The pause after an error, or while there is no store.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A renewal is not a change, so leases are read again after a third of the shortest one, within
/// these bounds.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The pause between two reads of a store that changes all the time.
const BREATH: Duration = Duration::from_millis(100);

/// Follows the store until the receiver is gone.
pub(crate) async fn follow(
    context: &Context,
    first: Option<Client>,
    updates: watch::Sender<LatestData>,
) {
    let mut client = first;
    loop {
        let known = updates.borrow().clone();
        if client.is_none() {
            match context.watcher().await {
                Ok(opened) => client = opened,
                Err(failure) => drop(updates.send(known.troubled(failure.message))),
            }
        }
        let Some(open) = &client else {
            tokio::time::sleep(LOOK_AGAIN).await;
            continue;
        };
        match ViewData::look(open, &known.data).await {
            Ok(data) => {
                let (revision, patience) = (data.revision, patience(&data));
                let latest = LatestData {
                    data: Arc::new(data),
                    health: Health::Live,
                    looked_at: Instant::now(),
                };
                if updates.send(latest).is_err() {
                    return;
                }
                tokio::time::sleep(BREATH).await;
                // An error shows up at the next read.
                let _ = open.changed(revision, patience).await;
            }
            Err(error) => {
                if updates.send(known.troubled(error.to_string())).is_err() {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

fn patience(data: &ViewData) -> Duration {
    let shortest = data.locks.iter().map(|held| held.seen.hold.ttl).min();
    shortest.map_or(LOOK_EVERY.1, |ttl| (ttl / 3).clamp(LOOK_EVERY.0, LOOK_EVERY.1))
}
