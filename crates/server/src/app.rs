//! The state that all handlers share.

use crate::caller::Caller;
use crate::clock::ServerClock;
use crate::metrics::Metrics;
use axum::http::HeaderMap;
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
    /// Makes the span of a request a child of its caller's, if traces are sent.
    pub(crate) adopt_parent: Option<AdoptParent>,
    pub(crate) clock: ServerClock,
    phase: Arc<watch::Sender<Phase>>,
}

/// Makes a span a child of the one that the headers of a request name.
pub type AdoptParent = fn(&tracing::Span, &HeaderMap);

/// The phases of a server's life, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// It serves, but asks load balancers to send no more requests.
    Draining,
    /// It accepts no more requests, and tells waiting ones to respond now.
    Stopping,
}

impl App {
    /// The state of a server over this client's store.
    pub fn new(client: Client) -> App {
        App::counting(client, Metrics::new())
    }

    /// As [`App::new`], with the metrics that measure the client's store.
    pub fn counting(client: Client, metrics: Arc<Metrics>) -> App {
        let phase = Arc::new(watch::Sender::new(Phase::Serving));
        let (started, rescuer) = (Arc::new(Instant::now()), Rescuer::off());
        let clock = ServerClock::new();
        App { client, started, metrics, place: None, rescuer, adopt_parent: None, clock, phase }
    }

    /// The same server, in this project.
    pub fn in_place(self, place: Option<StoreLocation>) -> App {
        App { place: place.map(Arc::new), ..self }
    }

    /// The same with another rescuer. By default nothing is rescued.
    pub fn rescuing(self, rescuer: Rescuer) -> App {
        App { rescuer, ..self }
    }

    /// The same, with requests that go on the traces of their callers.
    pub fn adopting(self, adopt_parent: Option<AdoptParent>) -> App {
        App { adopt_parent, ..self }
    }

    /// Reports the server as not ready, although it still serves: it will shut down soon.
    pub fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// Whether the server will shut down, or does.
    pub fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }

    /// The same server for a request of this caller: events of its changes name the caller's token,
    /// and only labels that the token may use are accepted.
    pub fn acting_for(&self, caller: &Caller) -> App {
        App { client: self.client.through(&caller.token()), ..self.clone() }
    }

    /// Tells waiting requests to respond now, because the server shuts down.
    pub fn stop(&self) {
        self.enter(Phase::Stopping);
    }

    /// Enters a phase; none comes back.
    fn enter(&self, next: Phase) {
        self.phase.send_if_modified(|phase| {
            let is_new = next > *phase;
            *phase = next.max(*phase);
            is_new
        });
    }

    /// Resolves when the server shuts down. A handler that waits for something else also waits for
    /// this, and then responds as if its time were over: the caller repeats the request and keeps
    /// its place in the queue.
    pub async fn stopped(&self) {
        let mut phase = self.phase.subscribe();
        // The sender is part of this state, so the channel stays open.
        let _ = phase.wait_for(|phase| *phase == Phase::Stopping).await;
    }
}
