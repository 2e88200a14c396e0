//! Limits of request bodies and of response times.

use crate::problem::Problem;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use http_body_util::Limited;
use std::time::Duration;
use tenure::wire;
use tower_http::timeout::TimeoutBody;

/// The usual limit of a body.
const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// The default limit of bodies that carry many tasks.
pub const LARGE_BODY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The limit for responses to requests that do not wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The limit for responses to requests that wait, which is a minute at most.
const WAIT_WITHIN: Duration = Duration::from_secs(75);

/// How long a client may be silent in the middle of a body.
const BODY_SILENCE_MAX: Duration = Duration::from_secs(10);

/// Whether requests of this path may carry many tasks.
fn is_large(path: &str) -> bool {
    path == "/v1/tasks" || path.starts_with("/v1/store/")
}

/// Whether requests of this path may wait.
pub(crate) fn may_wait(path: &str) -> bool {
    const WAITS: [&str; 7] = [
        wire::WAIT,
        "/v1/locks/acquire",
        "/v1/locks/wait",
        "/v1/tasks/claim",
        "/v1/events",
        "/v1/stream",
        "/mcp",
    ];
    WAITS.contains(&path)
}

/// The time limit for a response.
pub(crate) fn time_limit(path: &str) -> Duration {
    if may_wait(path) { WAIT_WITHIN } else { ANSWER_WITHIN }
}

/// Refuses a body that is declared too long, and stops reading one that turns out to be.
pub(crate) fn limit_body(request: Request, large_max: u64) -> Result<Request, Problem> {
    let large = is_large(request.uri().path());
    let limit = if large { large_max } else { BODY_BYTES_MAX.min(large_max) };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    if request.body().is_end_stream() {
        return Ok(request);
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(request.map(|body| {
        let body = Box::pin(TimeoutBody::new(BODY_SILENCE_MAX, body));
        Body::new(Limited::new(body, limit))
    }))
}

fn too_large(limit: u64) -> Problem {
    let message = format!("the body is longer than {limit} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
        .hint("Send less at a time, or start the server with a larger --max-body.")
}

/// The response to a request that took too long.
pub(crate) fn too_slow() -> Problem {
    let message = "timed out; the request may still have taken effect";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "TIMEOUT", message)
        .hint("Check whether it did before you retry.")
}
