//! Limits of request bodies and of response times.

use crate::problem::Problem;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use http_body_util::Limited;
use std::time::Duration;
use tower_http::timeout::TimeoutBody;

/// The usual limit of a body.
const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// The default limit of bodies that carry many tasks.
pub const LARGE_BODY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a server waits for answers and for clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The limit for responses to requests that do not wait.
    pub(crate) answer: Duration,
    /// The limit for responses to requests that wait.
    pub(crate) wait: Duration,
    /// How long a client may be silent in the middle of a body.
    pub(crate) body_silence: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            answer: Duration::from_secs(30),
            // A request may wait for a minute.
            wait: Duration::from_secs(75),
            body_silence: Duration::from_secs(10),
        }
    }
}

/// How long the answer to a request may take, and how long its body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// The answer comes at once, and the body is short.
    Quick,
    /// The caller may ask to wait; the body is short.
    Waits,
    /// The answer comes at once, and the body may carry many tasks.
    Large,
}

impl Limits {
    /// How long the answer may take.
    pub(crate) fn time(self, times: &Times) -> Duration {
        if self.may_wait() { times.wait } else { times.answer }
    }

    /// Whether an answer that waits is called off when the server ends.
    pub(crate) fn may_wait(self) -> bool {
        self == Limits::Waits
    }

    /// The longest body, where those that carry many tasks may have this many bytes.
    fn body_bytes(self, large_max: u64) -> u64 {
        match self {
            Limits::Large => large_max,
            Limits::Quick | Limits::Waits => BODY_BYTES_MAX.min(large_max),
        }
    }
}

/// Refuses a body that is declared too long, and stops reading one that turns out to be.
pub(crate) fn limit_body(
    request: Request,
    limits: Limits,
    large_max: u64,
    silence_max: Duration,
) -> Result<Request, Problem> {
    let limit = limits.body_bytes(large_max);
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
        let body = Box::pin(TimeoutBody::new(silence_max, body));
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
    let message = "timed out: the outcome is not known, the request may still take effect";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "OUTCOME_UNKNOWN", message).hint(
        "Look whether it did before you send it again. A request with an Idempotency-Key can be sent \
         again as it is: it is carried out once.",
    )
}
