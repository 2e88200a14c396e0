//! Headers, error bodies and stream limits that all HTTP responses share.

use super::keyring::Keyring;
use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;

/// How much of a library's error text is passed on.
const WORDS_BYTES_MAX: usize = 4096;

/// How often the token of a stream is checked again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Headers that keep browsers from guessing a type, showing a response in a frame of another page,
/// giving it to another site, or sending its address to others.
const PROTECTIONS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds the protective headers that the handler did not set.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in PROTECTIONS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Converts a library's error response to `application/problem+json`.
pub(crate) async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    if !failed || is_json(response.headers()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let words = words(&parts.headers, body).await;
    let problem = Problem::new(status, code(status), words.unwrap_or_else(|| sentence(status)));
    let mut response = problem.into_response();
    // For example Allow and Retry-After.
    for (name, value) in &parts.headers {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            response.headers_mut().append(name, value.clone());
        }
    }
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    kind == "application/json" || kind.ends_with("+json")
}

async fn words(headers: &HeaderMap, body: Body) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    if !kind.starts_with("text/plain") {
        return None;
    }
    let body = http_body_util::Limited::new(body, WORDS_BYTES_MAX).collect().await.ok()?;
    let words = String::from_utf8(body.to_bytes().into()).ok()?;
    Some(words.trim().to_owned()).filter(|words| !words.is_empty())
}

fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "METHOD_NOT_ALLOWED",
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "TIMEOUT",
        StatusCode::PAYLOAD_TOO_LARGE => "TOO_LARGE",
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "FORBIDDEN",
        status if status.is_client_error() => "USAGE",
        _ => "INTERNAL",
    }
}

fn sentence(status: StatusCode) -> String {
    match status {
        StatusCode::NOT_FOUND => "no such path".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => "this path does not support this method".to_owned(),
        _ => status.canonical_reason().unwrap_or("the request was refused").to_lowercase(),
    }
}

/// The response after a panic or another internal error.
pub(crate) fn internal_error() -> Problem {
    let message = "internal server error; the request may still have taken effect";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
}

/// The response to a waiting request when the server shuts down.
pub(crate) fn shutting_down() -> Response {
    let problem = Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "SHUTTING_DOWN",
        "the server is shutting down",
    )
    .hint("Repeat the request: a waiter with a grant keeps its place.");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(1));
    response
}

/// The response to a caller when all connections are in use.
pub(crate) fn too_many_connections() -> Response {
    let message = "all connections of this server are in use";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "BUSY", message)
        .hint("Retry in a moment, or start the server with a larger --max-connections.");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Ends a stream when the server shuts down, or when its caller's token is no longer valid.
pub(crate) fn bounded_stream(
    response: Response,
    app: App,
    keyring: Arc<Keyring>,
    caller: Caller,
) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let end = async move {
        let revoked = async {
            while keyring.still_admits(&caller) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! { () = app.stopped() => {}, () = revoked => {} }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(end))))
}
