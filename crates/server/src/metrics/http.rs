//! Metrics of requests and connections of this server.

use super::metric_types::{Counter1, call_buckets, counter, labelled};
use axum::http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// A route and a method. Routes are written as declared, without values of callers.
type RouteLabels = [(&'static str, String); 2];

/// The route of requests for which there is none.
const NO_ROUTE: &str = "none";

/// The metrics of requests and connections. Clones share them.
#[derive(Clone)]
pub(super) struct HttpMetrics {
    responses: Counter1,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    in_progress: Gauge,
    connections: Gauge,
    accepted: Counter,
}

impl HttpMetrics {
    pub(super) fn new(registry: &mut Registry) -> HttpMetrics {
        let responses = labelled(
            registry,
            "http_responses",
            "Responses of this server by status class",
            "class",
            &["1xx", "2xx", "3xx", "4xx", "5xx"],
        );
        let durations =
            Family::<RouteLabels, Histogram, fn() -> Histogram>::new_with_constructor(call_buckets);
        registry.register_with_unit(
            "http_request",
            "How long requests took until their response began, by route and method; some routes wait",
            Unit::Seconds,
            durations.clone(),
        );
        let gauge = |registry: &mut Registry, name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let in_progress =
            gauge(registry, "http_requests_in_progress", "Requests without a response yet");
        let connections = gauge(registry, "http_connections", "Open connections to this server");
        let accepted =
            counter(registry, "http_connections_accepted", "Connections that this server accepted");
        HttpMetrics { responses, durations, in_progress, connections, accepted }
    }

    pub(super) fn begin(&self) -> InProgress {
        self.in_progress.inc();
        InProgress { gauge: self.in_progress.clone() }
    }

    pub(super) fn connected(&self) -> InProgress {
        self.accepted.inc();
        self.connections.inc();
        InProgress { gauge: self.connections.clone() }
    }

    pub(super) fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        let class = match status.as_u16() / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.responses.get_or_create(&[("class", class)]).inc();
        let route = route.unwrap_or(NO_ROUTE).to_owned();
        let labels = [("route", route), ("method", known_method(method).to_owned())];
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

/// The method, or one word for all that callers make up.
fn known_method(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS") => known,
        _ => "other",
    }
}

/// Something that is counted until it is dropped.
pub(crate) struct InProgress {
    gauge: Gauge,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}
