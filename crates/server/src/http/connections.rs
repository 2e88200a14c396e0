//! Connections, from their coming in to the end of the server.

use super::Note;
use super::connection_limit::{Answering, ConnectionLimit, Place};
use super::listen::{Incoming, Listener};
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
/// something to ask.
const FIRST_HEAD_WITHIN: Duration = Duration::from_secs(5);

/// How long it may take to send the head of a later request, and may be silent between two: longer
/// than proxies keep a connection that nobody uses, so that they close it first.
const HEAD_WITHIN: Duration = Duration::from_secs(75);

/// How long it may take to agree on keys.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// The longest head, and what is kept for a connection at most. Browsers send up to 16 KiB.
const BUFFER_BYTES_MAX: usize = 32 * 1024;

/// Most headers of a request.
const HEADERS_MAX: usize = 100;

/// How long to wait when the system has no descriptor for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections and serves them.
pub(crate) struct Connections {
    router: Router,
    builder: http1::Builder,
    limit: ConnectionLimit,
    graceful: GracefulShutdown,
    note: Note,
}

impl Connections {
    /// At most so many at once; see [`ConnectionLimit`].
    pub(crate) fn new(router: Router, most: usize, note: Note) -> Connections {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(BUFFER_BYTES_MAX)
            .max_headers(HEADERS_MAX);
        let limit = ConnectionLimit::new(most);
        Connections { router, builder, limit, graceful: GracefulShutdown::new(), note }
    }

    /// Accepts for ever.
    pub(crate) async fn accept(&self, listener: &Listener) {
        let mut failed = false;
        loop {
            match listener.accept().await {
                Ok(incoming) => {
                    failed = false;
                    let place = self.limit.place(incoming.source()).await;
                    self.serve(incoming, Arc::new(place));
                }
                Err(error) if is_the_clients(&error) => {}
                Err(error) => {
                    if !failed {
                        (self.note)(&format!("No connection can be accepted: {error}"));
                    }
                    failed = true;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn serve(&self, incoming: Incoming, place: Arc<Place>) {
        let (router, builder) = (self.router.clone(), self.builder.clone());
        let watcher = self.graceful.watcher();
        tokio::spawn(async move {
            // How a connection ends concerns nobody but its client.
            tokio::select! {
                _ = converse(incoming, router, &builder, watcher, &place) => {}
                () = place.closed() => {}
            }
        });
    }

    /// Takes no more requests; returns when all are answered.
    pub(crate) fn drain(self) -> impl Future<Output = ()> {
        self.graceful.shutdown()
    }
}

async fn converse(
    incoming: Incoming,
    router: Router,
    builder: &http1::Builder,
    watcher: Watcher,
    place: &Arc<Place>,
) -> Option<()> {
    let (stream, peer) = timeout(HANDSHAKE_WITHIN, incoming.open()).await.ok()?.ok()?;
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let answering = place.answer();
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(place.clone());
        let answer = router.clone().call(request);
        async move {
            let answer = answer.await.unwrap_or_else(|never| match never {});
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _answering: answering }))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = watcher.watch(connection) => ended.ok(),
        () = says_nothing(place) => None,
    }
}

/// Returns when a client has sent no request in time.
async fn says_nothing(place: &Place) {
    sleep(FIRST_HEAD_WITHIN).await;
    if place.has_asked() {
        std::future::pending().await
    }
}

/// An answer, until whose end its connection is not idle.
struct Answer {
    body: Body,
    _answering: Answering,
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

/// Whether the one connection failed, and not the accepting.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | NotConnected | InvalidInput)
}
