//! The HTTP client that sends telemetry.

use crate::exit::Exit;
use crate::failure::Failure;
use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::fmt;
use std::time::Duration;
use tenure_server::outgoing::{self, OutgoingClient};
use tokio::runtime::{Builder, Runtime};

/// How long one request to the collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer that is read: collectors answer with a few bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// A client with a runtime of its own: the SDK sends from its own threads, also when the runtime of the
/// command has ended.
pub(super) struct CollectorClient {
    client: OutgoingClient,
    runtime: &'static Runtime,
}

impl CollectorClient {
    pub(super) fn new() -> Result<CollectorClient, Failure> {
        let failed = |error: &dyn fmt::Display| {
            let message = format!("cannot send telemetry: {error}");
            Failure::new(Exit::Error, "TELEMETRY", message)
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("telemetry")
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?;
        let client = outgoing::client().map_err(|error| failed(&error))?;
        // It lives as long as the process: a runtime cannot be dropped within another one.
        Ok(CollectorClient { client, runtime: Box::leak(Box::new(runtime)) })
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CollectorClient(..)")
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let send = async move {
            let (parts, body) = request.into_parts();
            let request = Request::from_parts(parts, Full::new(body));
            let (parts, body) = client.request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(parts, body))
        };
        let sent = self.runtime.spawn(async move { tokio::time::timeout(PATIENCE, send).await });
        sent.await??
    }
}
