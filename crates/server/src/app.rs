//! What all handlers share.

use std::sync::Arc;
use std::time::Instant;
use tenure::Client;

/// A server's state. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The door to the store.
    pub client: Client,
    /// Since when the server runs.
    pub started: Arc<Instant>,
}

impl App {
    /// The state of a server over this client's store.
    pub fn new(client: Client) -> App {
        App { client, started: Arc::new(Instant::now()) }
    }
}
