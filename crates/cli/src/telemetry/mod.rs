//! What an operator learns from a running process: its log, and its traces and metrics.
//!
//! - `log` — the log of a server, on standard error.
//! - `otlp`, `http_client` — sends traces and metrics to a collector.
//! - `trace_context` — which span others go on from; `requests` — spans of requests to a server.
//!
//! Nothing is started unless it is asked for: then all spans and events cost a look at an atomic.

mod http_client;
mod log;
mod otlp;
mod requests;
mod trace_context;

pub(crate) use log::{LogFormat, LogOptions};
pub(crate) use trace_context::{adopt_from_environment, adopt_from_headers};

use crate::failure::Failure;
use otlp::Export;
use parking_lot::Mutex;
use requests::TracedRequests;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenure::server_support::Observer;
use tenure::store::Store;
use tenure_server::traced_store::TracedStore;
use trace_context::{TRACEPARENT_VARIABLE, traceparent};
use tracing::Span;
use tracing_subscriber::layer::SubscriberExt;

/// How long a command that ends waits for the collector.
const LAST_EXPORT: Duration = Duration::from_secs(3);

/// What is sent, and where spans of the background belong, if traces are sent at all.
static SENDING: OnceLock<Sending> = OnceLock::new();

struct Sending {
    export: Export,
    background: Arc<Mutex<Span>>,
}

/// Starts to log and to send, as asked. Call it once, before anything is logged or traced.
pub(crate) fn start(log: Option<&LogOptions>, sends: bool) -> Result<(), Failure> {
    if log.is_none() && !sends {
        return Ok(());
    }
    let export = sends.then(Export::start).transpose()?;
    let subscriber = tracing_subscriber::registry()
        .with(log.map(log::layer))
        .with(export.as_ref().map(Export::layer));
    // A second call changes nothing: the first one stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some(export) = export {
        let background = Arc::new(Mutex::new(Span::none()));
        let _ = SENDING.set(Sending { export, background });
    }
    Ok(())
}

/// The variable that tells a command which span it goes on from, if traces are sent.
pub(crate) fn trace_variable(span: &Span) -> Option<(OsString, OsString)> {
    traceparent(span).map(|value| (TRACEPARENT_VARIABLE.into(), value.into()))
}

/// Sends what is left. Call it before the process ends.
pub(crate) fn end() {
    if let Some(sending) = SENDING.get() {
        *sending.background.lock() = Span::none();
        sending.export.shutdown();
    }
}

/// Traces the calls to this store, if traces are sent.
pub(crate) fn traced(store: Arc<dyn Store>) -> Arc<dyn Store> {
    if SENDING.get().is_some() { TracedStore::wrap(store) } else { store }
}

/// Traces requests to a server, if traces are sent.
pub(crate) fn request_observer() -> Observer {
    match SENDING.get() {
        Some(sending) => {
            let background = sending.background.clone();
            Observer::new(Arc::new(TracedRequests { background }))
        }
        None => Observer::default(),
    }
}

/// Makes this span the parent of what happens in the background from now on, such as renewals.
pub(crate) fn belongs_to(span: &Span) {
    if let Some(sending) = SENDING.get() {
        *sending.background.lock() = span.clone();
    }
}

#[expect(clippy::disallowed_methods, reason = "variables of OpenTelemetry, which are no settings")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
