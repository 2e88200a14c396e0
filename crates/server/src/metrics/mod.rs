//! Metrics for Prometheus.
//!
//! They come from four places: `store.rs` measures each call of this server to its store, `http.rs`
//! each request; `follower.rs` follows the store's events, whichever process caused them, measures
//! durations (`spans.rs`), counts (`event_counts.rs`) and keeps rates for charts (`rates.rs`);
//! `gauges.rs` and `process.rs` read the store and `/proc` at each scrape. Nothing is changed. No
//! label has a value that callers choose, except the sections of tasks, of which at most
//! [`SECTIONS_MAX`] are shown.

mod event_counts;
mod exposition;
mod follower;
mod gauges;
mod http;
mod metric_types;
mod process;
pub(crate) mod rates;
mod spans;
mod store;
#[cfg(test)]
mod tests;

pub use gauges::SECTIONS_MAX;
pub(crate) use http::InProgress;
pub use store::{Metered, error_kind};

use crate::http::limits::Limits;
use crate::routes::{Access, Routes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use event_counts::EventCounts;
use exposition::Format;
use follower::EventFollower;
use http::HttpMetrics;
use metric_types::{Counter1, counter, labelled};
use parking_lot::Mutex;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rates::Rates;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::StoreMetrics;
use tenure::Client;
use tenure::store::Store;

/// The prefix of all names.
const PREFIX: &str = "tenure";

/// The metrics of one server.
///
/// First [`meter`](Metrics::meter) its store, then [`watch`](Metrics::watch) the client of that
/// store; [`routes`] serves scrapes.
pub struct Metrics {
    registry: Registry,
    started: Instant,
    store: StoreMetrics,
    events: EventCounts,
    rates: Rates,
    refused_tokens: Counter,
    http: HttpMetrics,
    webhooks: Counter1,
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
        Arc::new(Metrics {
            started: Instant::now(),
            store: StoreMetrics::new(&mut registry, refused_tokens.clone()),
            events: EventCounts::new(&mut registry),
            rates: Rates::new(),
            refused_tokens,
            http: HttpMetrics::new(&mut registry),
            webhooks: labelled(
                &mut registry,
                "webhook_messages",
                "Messages to webhooks: delivered, failed (given up), dropped (the queue was full)",
                "outcome",
                &["delivered", "failed", "dropped"],
            ),
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

    /// Counts the events of this client's store from now on, until the metrics are dropped; rates also
    /// know the stored events of the last day. Call it within a runtime, and once; a second client is
    /// ignored.
    pub fn watch(&self, client: Client) {
        if self.client.set(client.clone()).is_ok() {
            let follower = EventFollower::start(client, self.events.clone(), self.rates.clone());
            *self.follower.lock() = Some(follower);
        }
    }

    /// Counts a grant or token that was refused without a renewal: by verify, finish, release and
    /// similar.
    pub fn refused_token(&self) {
        self.refused_tokens.inc();
    }

    /// Counts an HTTP response, and how long it took. The route is the declared one.
    pub fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        self.http.answered(route, method, status, took);
    }

    /// Counts a request as in progress until the result is dropped.
    pub(crate) fn request(&self) -> InProgress {
        self.http.begin()
    }

    /// Counts a connection until the result is dropped.
    pub(crate) fn connected(&self) -> InProgress {
        self.http.connected()
    }

    /// Counts a message to a webhook.
    pub(crate) fn webhook(&self, outcome: &'static str) {
        self.webhooks.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// The rates of the last hour and day.
    pub(crate) fn rates(&self) -> &Rates {
        &self.rates
    }

    /// All metrics as OpenMetrics text. If the store does not answer, its gauges are omitted and
    /// `tenure_store_up` is 0.
    pub async fn text(&self) -> Result<String, std::fmt::Error> {
        let gauges = gauges::registry(self.client.get(), self.started.elapsed()).await;
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &gauges)?;
        encode_registry(&mut text, &process::registry())?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// `GET /metrics`.
pub fn routes(metrics: Arc<Metrics>) -> Routes {
    Routes::new().route("/metrics", Access::Known, Limits::Quick, get(scrape)).with_state(metrics)
}

async fn scrape(State(metrics): State<Arc<Metrics>>, headers: HeaderMap) -> Response {
    let format = Format::accepted(&headers);
    match metrics.text().await {
        Ok(text) => {
            let headers = [(header::CONTENT_TYPE, format.content_type()), (header::VARY, "accept")];
            (headers, format.encode(text)).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
