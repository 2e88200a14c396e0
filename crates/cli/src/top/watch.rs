//! Looks whenever something changed, beside whoever draws.

use super::model::Board;
use crate::context::Context;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::Client;
use tokio::sync::watch;

/// What is known, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) board: Arc<Board>,
    pub(crate) health: Health,
    pub(crate) looked_at: Instant,
}

/// How far what is shown can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It is what the store says.
    Live,
    /// Nobody has held anything here yet.
    NoStore,
    /// The store does not answer; what is shown is what it said last.
    Trouble(String),
}

impl Sight {
    pub(crate) fn nothing() -> Sight {
        Sight { board: Arc::default(), health: Health::NoStore, looked_at: Instant::now() }
    }

    fn troubled(&self, message: String) -> Sight {
        Sight { health: Health::Trouble(message), ..self.clone() }
    }
}

/// How long to leave a store alone that gave an error, or that is not there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Renewals are no change, so leases are looked at again after a third of the shortest, within
/// these bounds.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Between two looks at a store that changes all the time.
const BREATH: Duration = Duration::from_millis(100);

/// Follows the store until nobody watches any more.
pub(crate) async fn follow(context: &Context, first: Option<Client>, sights: watch::Sender<Sight>) {
    let mut client = first;
    loop {
        let known = sights.borrow().clone();
        if client.is_none() {
            match context.watcher().await {
                Ok(opened) => client = opened,
                Err(failure) => drop(sights.send(known.troubled(failure.message))),
            }
        }
        let Some(open) = &client else {
            tokio::time::sleep(LOOK_AGAIN).await;
            continue;
        };
        match Board::look(open, &known.board).await {
            Ok(board) => {
                let (revision, patience) = (board.revision, patience(&board));
                let sight = Sight {
                    board: Arc::new(board),
                    health: Health::Live,
                    looked_at: Instant::now(),
                };
                if sights.send(sight).is_err() {
                    return;
                }
                tokio::time::sleep(BREATH).await;
                // An error shows at the next look.
                let _ = open.changed(revision, patience).await;
            }
            Err(error) => {
                if sights.send(known.troubled(error.to_string())).is_err() {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

fn patience(board: &Board) -> Duration {
    let shortest = board.locks.iter().map(|held| held.seen.hold.ttl).min();
    shortest.map_or(LOOK_EVERY.1, |ttl| (ttl / 3).clamp(LOOK_EVERY.0, LOOK_EVERY.1))
}
