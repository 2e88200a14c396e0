//! The W3C trace context, in variables and headers: which span this program's spans belong to, and which
//! span its commands and servers go on from.

use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The name of the header.
const TRACEPARENT: &str = "traceparent";

/// The variable in which programs pass their span on to the programs that they start.
pub(super) const TRACEPARENT_VARIABLE: &str = "TRACEPARENT";

/// One value, as a carrier of a trace context.
struct Value(Option<String>);

impl Extractor for Value {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.as_deref().filter(|_| key == TRACEPARENT)
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

impl Injector for Value {
    fn set(&mut self, key: &str, value: String) {
        if key == TRACEPARENT {
            self.0 = Some(value);
        }
    }
}

/// The span as others are told of it; none if it is not traced.
pub(super) fn traceparent(span: &Span) -> Option<String> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let mut value = Value(None);
    let is_valid = context.span().span_context().is_valid();
    TraceContextPropagator::new().inject_context(&context, &mut value);
    value.0.filter(|_| is_valid)
}

/// Makes the span a child of the one in this process's environment, if there is one.
pub(crate) fn adopt_from_environment(span: &Span) {
    let given = Value(super::variable(TRACEPARENT_VARIABLE));
    if given.0.is_some() {
        // A span that is not traced takes no parent.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&given));
    }
}

/// Makes the span of a request a child of the one that its caller names.
pub(crate) fn adopt_from_headers(span: &Span, headers: &axum::http::HeaderMap) {
    if headers.contains_key(TRACEPARENT) {
        let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        let _ = span.set_parent(context);
    }
}
