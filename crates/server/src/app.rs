//! The state that all handlers share.

use crate::metrics::Metrics;
use std::sync::Arc;
use std::time::Instant;
use tenure::Client;
use tenure::place::StoreLocation;
use tenure_frontend::rescue::Rescuer;
use tokio::sync::watch;

/// A server's state. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The client of the store.
    pub client: Client,
    /// When the server started.
    pub started: Arc<Instant>,
    /// The metrics of the server.
    pub metrics: Arc<Metrics>,
    /// The folder that paths are relative to, if the server runs in a project.
    pub place: Option<Arc<StoreLocation>>,
    /// Takes over the unfinished work of workers of this machine.
    pub rescuer: Rescuer,
    /// Whether the server is shutting down.
    stopping: Arc<watch::Sender<bool>>,
}

impl App {
    /// The state of a server over this client's store.
    pub fn new(client: Client) -> App {
        App::counting(client, Metrics::new())
    }

    /// As [`App::new`], with the metrics that measure the client's store.
    pub fn counting(client: Client, metrics: Arc<Metrics>) -> App {
        let stopping = Arc::new(watch::Sender::new(false));
        let (started, rescuer) = (Arc::new(Instant::now()), Rescuer::off());
        App { client, started, metrics, place: None, rescuer, stopping }
    }

    /// The same server, in this project.
    pub fn in_place(self, place: Option<StoreLocation>) -> App {
        App { place: place.map(Arc::new), ..self }
    }

    /// The same with another rescuer. By default nothing is rescued.
    pub fn rescuing(self, rescuer: Rescuer) -> App {
        App { rescuer, ..self }
    }

    /// Tells waiting requests to respond now, because the server shuts down.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Resolves when the server shuts down. A handler that waits for something else also waits for
    /// this, and then responds as if its time were over: the caller repeats the request and keeps
    /// its place in the queue.
    pub async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender is part of this state, so the channel stays open.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }
}
