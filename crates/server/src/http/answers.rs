//! What all answers have in common.

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

/// So much of what a library says about a mistake is passed on.
const WORDS_BYTES_MAX: usize = 4096;

/// How often it is looked whether the token of a stream still counts.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What browsers must not do with any answer: guess its type, show it in a frame of another page,
/// hand it to another site, tell others its address.
const PROTECTIONS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds the headers that protect an answer in a browser, where the handler set none.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in PROTECTIONS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Gives a refusal in a library's words the form of all others.
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
    // Such as Allow and Retry-After.
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
        StatusCode::NOT_FOUND => "there is nothing at this path".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => "this path does not take this method".to_owned(),
        _ => status.canonical_reason().unwrap_or("the request was refused").to_lowercase(),
    }
}

/// The answer to a request in which something went wrong that must not.
pub(crate) fn broken() -> Problem {
    let message = "the server made a mistake; what was asked may still have been done";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
}

/// The answer to a request that waits while the server ends.
pub(crate) fn stopping() -> Response {
    let problem = Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "SHUTTING_DOWN",
        "the server is about to end",
    )
    .hint("Ask again: whoever waits under a grant keeps its place.");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(1));
    response
}

/// The answer to a caller for whom there is no place beside those that are being answered.
pub(crate) fn full() -> Response {
    let message = "all connections of this server are in use";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "BUSY", message)
        .hint("Ask again in a moment, or start the server with a larger --max-connections.");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Ends a stream when the server ends, or when its caller's token does not count any more.
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
