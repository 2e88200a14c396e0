//! Metrics for Prometheus.
//!
//! They come from three places: `store.rs` measures each call of this server to its store,
//! `event_counts.rs` follows the store's events, whichever process caused them, and `gauges.rs`
//! reads the store at each scrape. Nothing is changed. No label has a value that callers choose,
//! except the sections of tasks, of which at most [`SECTIONS_MAX`] are shown.

mod event_counts;
mod gauges;
mod metric_types;
mod store;
#[cfg(test)]
mod tests;

pub use gauges::SECTIONS_MAX;
pub use store::Metered;

use crate::http::limits::Limits;
use crate::routes::{Access, Routes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use event_counts::{EventCounts, EventFollower};
use metric_types::{Counter1, counter, labelled};
use parking_lot::Mutex;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use store::StoreMetrics;
use tenure::Client;
use tenure::store::Store;

/// The prefix of all names.
const PREFIX: &str = "tenure";

/// The content type of the text.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of one server.
///
/// First [`meter`](Metrics::meter) its store, then [`watch`](Metrics::watch) the client of that
/// store; [`routes`] serves scrapes.
pub struct Metrics {
    registry: Registry,
    started: Instant,
    store: StoreMetrics,
    history: EventCounts,
    refused_tokens: Counter,
    requests: Counter1,
    client: OnceLock<Client>,
    follower: Mutex<Option<EventFollower>>,
}

impl Metrics {
    /// Metrics that are all zero.
    pub fn new() -> Arc<Metrics> {
        let mut registry = Registry::with_prefix(PREFIX);
        let refused_tokens = counter(
            &mut registry,
            "refused_tokens",
            "Grants and tokens that this server refused: lost, unknown or fenced",
        );
        let requests = labelled(
            &mut registry,
            "http_responses",
            "Responses of this server by status class",
            "class",
            &["1xx", "2xx", "3xx", "4xx", "5xx"],
        );
        Arc::new(Metrics {
            started: Instant::now(),
            store: StoreMetrics::new(&mut registry, refused_tokens.clone()),
            history: EventCounts::new(&mut registry),
            refused_tokens,
            requests,
            registry,
            client: OnceLock::new(),
            follower: Mutex::new(None),
        })
    }

    /// Wraps the store to measure its calls. For
    /// [`ClientBuilder::wrap`](tenure::ClientBuilder::wrap).
    pub fn meter(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Metered::new(store, self.store.clone()))
    }

    /// Counts the events of this client's store from now on, until the metrics are dropped. Call it
    /// within a runtime, and once; a second client is ignored.
    pub fn watch(&self, client: Client) {
        if self.client.set(client.clone()).is_ok() {
            let follower = EventFollower::start(client, self.history.clone());
            *self.follower.lock() = Some(follower);
        }
    }

    /// Counts a grant or token that was refused without a renewal: by verify, finish, release and
    /// similar.
    pub fn refused_token(&self) {
        self.refused_tokens.inc();
    }

    /// Counts an HTTP response.
    pub fn answered(&self, status: StatusCode) {
        let class = match status.as_u16() / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.requests.get_or_create(&[("class", class)]).inc();
    }

    /// All metrics as OpenMetrics text. If the store does not answer, its gauges are omitted and
    /// `tenure_store_up` is 0.
    pub async fn text(&self) -> Result<String, std::fmt::Error> {
        let gauges = gauges::registry(self.client.get(), self.started.elapsed()).await;
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &gauges)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// `GET /metrics`.
pub fn routes(metrics: Arc<Metrics>) -> Routes {
    Routes::new().route("/metrics", Access::Known, Limits::Quick, get(scrape)).with_state(metrics)
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text().await {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
