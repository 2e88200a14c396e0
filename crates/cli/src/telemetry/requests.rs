//! Traces the requests of this program to a tenure server.

use super::trace_context::traceparent;
use parking_lot::Mutex;
use std::sync::Arc;
use tenure::server_support::{ObservedRequest, RequestObserver};
use tenure::store::StoreError;
use tenure_server::log::TRACE;
use tracing::Span;
use tracing::field::Empty;

/// Makes a span of each request.
pub(super) struct TracedRequests {
    /// The parent of requests that come from a task in the background, such as renewals.
    pub(super) background: Arc<Mutex<Span>>,
}

struct TracedRequest(Span);

impl RequestObserver for TracedRequests {
    fn begin(&self, path: &str) -> Box<dyn ObservedRequest> {
        let current = Span::current();
        let parent = if current.is_none() { self.background.lock().clone() } else { current };
        Box::new(TracedRequest(tracing::info_span!(
            target: TRACE,
            parent: &parent,
            "request",
            "otel.name" = %format_args!("POST {path}"),
            "otel.kind" = "client",
            "otel.status_code" = Empty,
            "http.request.method" = "POST",
            "url.path" = path,
            "error.type" = Empty,
        )))
    }
}

impl ObservedRequest for TracedRequest {
    fn traceparent(&self) -> Option<String> {
        traceparent(&self.0)
    }

    fn failed(&self, error: &StoreError) {
        self.0.record("otel.status_code", "ERROR");
        self.0.record("error.type", tenure_server::metrics::error_kind(error));
    }
}
