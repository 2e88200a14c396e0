//! The HTTP client for requests that a program sends on its own: webhooks and telemetry. It follows no
//! redirects.

use axum::body::Bytes;
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

/// A client for `http://` and `https://`.
pub type OutgoingClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client that trusts the certificate authorities of the system. Where there are none, as in an empty
/// container, it trusts none, and only `http://` works.
pub fn client() -> Result<OutgoingClient, rustls::Error> {
    let provider = || rustls::crypto::ring::default_provider().into();
    let builder =
        || ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let tls = match builder()?.try_with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(_) => builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    };
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
