//! Accepts and serves connections until the server shuts down.

use super::connection_limit::{ConnectionLimit, ConnectionSlot, RequestInProgress};
use super::listen::{Incoming, Listener};
use crate::log::LOG;
use crate::metrics::Metrics;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tower::Service;

/// How long a client may take to send the head of its first request. Clients connect when they have
/// a request.
const FIRST_HEAD_WITHIN: Duration = Duration::from_secs(5);

/// How long a client may take to send the head of a later request, or be silent between two: longer
/// than proxies keep idle connections, so that they close first.
const HEAD_WITHIN: Duration = Duration::from_secs(75);

/// The limit of a TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// The longest request head, and the most memory for a connection. Browsers send up to 16 KiB.
const BUFFER_BYTES_MAX: usize = 32 * 1024;

/// The most headers of a request.
const HEADERS_MAX: usize = 100;

/// The pause when the system has no file descriptor for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections and serves them.
pub(crate) struct Connections {
    router: Router,
    builder: http1::Builder,
    limit: ConnectionLimit,
    graceful: GracefulShutdown,
    metrics: Arc<Metrics>,
}

impl Connections {
    /// At most this many connections at once; see [`ConnectionLimit`].
    pub(crate) fn new(router: Router, most: usize, metrics: Arc<Metrics>) -> Connections {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(BUFFER_BYTES_MAX)
            .max_headers(HEADERS_MAX);
        let limit = ConnectionLimit::new(most);
        Connections { router, builder, limit, graceful: GracefulShutdown::new(), metrics }
    }

    /// Accepts connections forever.
    pub(crate) async fn accept(&self, listener: &Listener) {
        let mut failed = false;
        loop {
            match listener.accept().await {
                Ok(incoming) => {
                    failed = false;
                    let slot = self.limit.slot(incoming.source()).await;
                    self.serve(incoming, Arc::new(slot));
                }
                Err(error) if is_the_clients(&error) => {}
                Err(error) => {
                    if !failed {
                        tracing::warn!(target: LOG, %error, "Cannot accept a connection");
                    }
                    failed = true;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn serve(&self, incoming: Incoming, slot: Arc<ConnectionSlot>) {
        let (router, builder) = (self.router.clone(), self.builder.clone());
        let watcher = self.graceful.watcher();
        let connected = self.metrics.connected();
        tokio::spawn(async move {
            // An error of one connection matters only to its client.
            tokio::select! {
                _ = converse(incoming, router, &builder, watcher, &slot) => {}
                () = slot.closed() => {}
            }
            drop(connected);
        });
    }

    /// Stops accepting requests; resolves when all in progress are answered.
    pub(crate) fn drain(self) -> impl Future<Output = ()> {
        self.graceful.shutdown()
    }
}

async fn converse(
    incoming: Incoming,
    router: Router,
    builder: &http1::Builder,
    watcher: Watcher,
    slot: &Arc<ConnectionSlot>,
) -> Option<()> {
    let (stream, peer) = timeout(HANDSHAKE_WITHIN, incoming.open()).await.ok()?.ok()?;
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let answering = slot.answer();
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(slot.clone());
        let answer = router.clone().call(request);
        async move {
            let answer = answer.await.unwrap_or_else(|never| match never {});
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _answering: answering }))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = watcher.watch(connection) => ended.ok(),
        () = no_request_in_time(slot) => None,
    }
}

/// Resolves when a client has sent no request in time.
async fn no_request_in_time(slot: &ConnectionSlot) {
    sleep(FIRST_HEAD_WITHIN).await;
    if slot.has_sent_request() {
        std::future::pending().await
    }
}

/// A response; its connection is not idle until it ends.
struct Answer {
    body: Body,
    _answering: RequestInProgress,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether only this connection failed, and not accepting in general.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | NotConnected | InvalidInput)
}
