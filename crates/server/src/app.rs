//! What all handlers share.

use crate::metrics::Metrics;
use std::sync::Arc;
use std::time::Instant;
use tenure::Client;
use tokio::sync::watch;

/// A server's state. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The door to the store.
    pub client: Client,
    /// Since when the server runs.
    pub started: Arc<Instant>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Whether the server is about to end.
    stopping: Arc<watch::Sender<bool>>,
}

impl App {
    /// The state of a server over this client's store.
    pub fn new(client: Client) -> App {
        App::counting(client, Metrics::new())
    }

    /// The same, with the numbers that the client's store is measured by.
    pub fn counting(client: Client, metrics: Arc<Metrics>) -> App {
        let stopping = Arc::new(watch::Sender::new(false));
        App { client, started: Arc::new(Instant::now()), metrics, stopping }
    }

    /// Asks whoever waits to answer now: the server is about to end.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Returns when the server is about to end. A handler that waits for something else waits for
    /// this beside it, and then answers as if its time were up: the caller comes back, and finds
    /// its place in the queue.
    pub async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender is here, so that there is an end to wait for.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }
}
