//! Connecting over TCP.

use crate::local_server::LocalServer;
use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// After this time without a word it is asked whether the other end is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Opens connections to whichever server has the address, or to one server of this user alone.
#[derive(Clone)]
pub(super) enum Dialer {
    Anyone(HttpConnector),
    Only(Arc<LocalServer>),
}

impl Dialer {
    pub(super) fn to(server: Option<LocalServer>) -> Dialer {
        match server {
            Some(server) => Dialer::Only(Arc::new(server)),
            None => Dialer::Anyone(anyone()),
        }
    }
}

fn anyone() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_keepalive(Some(KEEPALIVE));
    // Whether that is right is for the one who wraps it.
    connector.enforce_http(false);
    connector
}

/// Connects, and makes sure that it was the server that answered, and not another program that took
/// its port when it ended: requests carry the server's token.
async fn connect_to(server: &LocalServer) -> io::Result<TokioIo<TcpStream>> {
    let stream = timeout(CONNECT, TcpStream::connect(server.address))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    if !server.still_listens() {
        let message = "another program answers at its address; has the server ended?";
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, message));
    }
    stream.set_nodelay(true)?;
    Ok(TokioIo::new(stream))
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<TokioIo<TcpStream>>> + Send>>;

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Connecting;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Dialer::Anyone(connector) => connector.poll_ready(context).map_err(io::Error::other),
            Dialer::Only(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        match self {
            Dialer::Anyone(connector) => {
                let connecting = connector.call(uri);
                Box::pin(async move { connecting.await.map_err(io::Error::other) })
            }
            Dialer::Only(server) => {
                let server = server.clone();
                Box::pin(async move { connect_to(&server).await })
            }
        }
    }
}
