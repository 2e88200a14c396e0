//! Connections to one server, used again and again.
//!
//! All of them live on one background runtime: a connection is served by the runtime that opened it,
//! and must not stand still or end with the caller's. So one client can be used from several
//! runtimes, and from threads that have none.

use super::dial::Dialer;
use crate::local_server::LocalServer;
use crate::platform::fork::between_forks;
use crate::url::Address;
use crate::world::{PerProcess, background_runtime};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::{Client, Error, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;
use std::{io, panic};
use tokio::task::JoinSet;

/// How long a connection is kept that nothing uses: less than servers do, so that none is used that
/// is about to end.
const IDLE: Duration = Duration::from_secs(60);

/// How to reach the server.
pub(super) struct Connections {
    connector: Connector,
    /// A process forked from this one must not use its connections.
    here: PerProcess<Sender>,
}

enum Connector {
    Tcp(Dialer),
    Tls(HttpsConnector<Dialer>),
    Socket(socket::Connector),
}

/// Sends a request over a connection that is free, or over a new one.
type Sender = Arc<dyn Fn(Request<Full<Bytes>>) -> ResponseFuture + Send + Sync>;

/// An answer, with its body unless that broke off.
pub(super) type Answer = Response<Result<Bytes, hyper::Error>>;

/// Why there is no answer.
pub(super) enum SendError {
    /// The background runtime could not be started.
    NoRuntime(io::Error),
    /// The request could not be sent, or its answer did not come.
    Request(Error),
}

/// Why a server cannot even be tried: a reason and a hint.
pub(super) type Unusable = (String, &'static str);

impl Connections {
    /// Connections to this address; to this very server, if one is given.
    pub(super) fn new(
        address: &Address,
        ca_file: Option<&Path>,
        server: Option<LocalServer>,
    ) -> Result<Connections, Unusable> {
        let dialer = Dialer::to(server);
        let connector = match address {
            Address::Url(url) if url.starts_with("https:") => {
                Connector::Tls(over_tls(dialer, ca_file)?)
            }
            Address::Url(_) => Connector::Tcp(dialer),
            Address::Socket(path) => Connector::Socket(socket::Connector::to(path)),
        };
        Ok(Connections { connector, here: PerProcess::new() })
    }

    /// Sends a request. If this future is dropped, the request is cancelled.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, SendError> {
        let runtime = background_runtime().map_err(SendError::NoRuntime)?;
        let sender = self.sender();
        let exchange = async move {
            let (parts, body) = sender(request).await.map_err(SendError::Request)?.into_parts();
            Ok(Response::from_parts(parts, body.collect().await.map(|body| body.to_bytes())))
        };
        // Ends with this future, if that is dropped.
        let mut task = JoinSet::new();
        task.spawn_on(between_forks(exchange), &runtime);
        match task.join_next().await.expect("one task was spawned") {
            Ok(answer) => answer,
            Err(error) => panic::resume_unwind(error.into_panic()),
        }
    }

    fn sender(&self) -> Sender {
        let make = || match &self.connector {
            Connector::Tcp(connector) => sender(connector.clone()),
            Connector::Tls(connector) => sender(connector.clone()),
            Connector::Socket(connector) => sender(connector.clone()),
        };
        self.here.get_or_init(make).clone()
    }
}

fn sender(connector: impl Connect + Clone + Send + Sync + 'static) -> Sender {
    let client = Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .build(connector);
    Arc::new(move |request| client.request(request))
}

fn over_tls(dialer: Dialer, ca_file: Option<&Path>) -> Result<HttpsConnector<Dialer>, Unusable> {
    provide_cryptography();
    let builder = HttpsConnectorBuilder::new();
    let builder = match ca_file {
        Some(file) => {
            let roots = roots(file).map_err(|reason| {
                let reason = format!("{} cannot be used: {reason}", file.display());
                (reason, "Give a file with certificates in PEM form.")
            })?;
            let config = ClientConfig::builder().with_root_certificates(roots);
            builder.with_tls_config(config.with_no_client_auth())
        }
        None => builder.try_with_platform_verifier().map_err(|error| {
            (error.to_string(), "Name the certificates to trust by TENURE_SERVER_CA_FILE.")
        })?,
    };
    Ok(builder.https_only().enable_http1().wrap_connector(dialer))
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("it has no certificate".to_owned()),
        false => Ok(roots),
    }
}

/// The same as all of this program uses, unless the program chose another before.
fn provide_cryptography() {
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

mod socket {
    use hyper::Uri;
    use hyper_util::rt::TokioIo;
    use std::future::Future;
    use std::io;
    use std::path::Path;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll};
    use tokio::net::UnixStream;
    use tower_service::Service;

    /// Connects to a socket in the file system, whatever the address says.
    #[derive(Clone)]
    pub(super) struct Connector(Arc<Path>);

    impl Connector {
        pub(super) fn to(path: &Path) -> Connector {
            Connector(Arc::from(path))
        }
    }

    impl Service<Uri> for Connector {
        type Response = TokioIo<UnixStream>;
        type Error = io::Error;
        type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Uri) -> Self::Future {
            let path = self.0.clone();
            Box::pin(async move { UnixStream::connect(&path).await.map(TokioIo::new) })
        }
    }
}
