//! Connections, from their coming in to the end of the server.

use super::Note;
use super::listen::{Incoming, Listener};
use super::room::{Room, Seat};
use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tower::Service;

/// How long a client may take to send the head of a request, and may be silent between two: longer
/// than proxies keep a connection that nobody uses, so that they close it first.
const HEAD_WITHIN: Duration = Duration::from_secs(75);

/// How long it may take to agree on keys.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

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
    room: Room,
    graceful: GracefulShutdown,
    note: Note,
}

impl Connections {
    /// At most so many at once; see [`Room`].
    pub(crate) fn new(router: Router, most: usize, note: Note) -> Connections {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(BUFFER_BYTES_MAX)
            .max_headers(HEADERS_MAX);
        let room = Room::for_most(most);
        Connections { router, builder, room, graceful: GracefulShutdown::new(), note }
    }

    /// Accepts for ever.
    pub(crate) async fn accept(&self, listener: &Listener) {
        let mut failed = false;
        loop {
            match listener.accept().await {
                Ok(incoming) => {
                    failed = false;
                    // Not before there is somebody: a listener that nobody uses would keep a place.
                    let place = self.room.place().await;
                    if let Some(seat) = self.room.seat(place, incoming.address()) {
                        self.serve(incoming, seat);
                    }
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

    fn serve(&self, incoming: Incoming, seat: Seat) {
        let (router, builder) = (self.router.clone(), self.builder.clone());
        let watcher = self.graceful.watcher();
        tokio::spawn(async move {
            // How a connection ends concerns nobody but its client.
            let _ = converse(incoming, router, &builder, watcher).await;
            drop(seat);
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
) -> Option<()> {
    let (stream, peer) = timeout(HANDSHAKE_WITHIN, incoming.open()).await.ok()?.ok()?;
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer);
        let answer = router.clone().call(request);
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    watcher.watch(connection).await.ok()
}

/// Whether the one connection failed, and not the accepting.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | NotConnected | InvalidInput)
}
