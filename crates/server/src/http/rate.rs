//! Limits the requests per second of each caller.

use super::peer::Peer;
use crate::caller::Caller;
use crate::problem::Problem;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::net::IpAddr;
use std::num::NonZeroU32;

/// The default limit for a caller with a token, or from another machine. Many workers may share a
/// token, and a runaway one must not stop the others.
const DEFAULT_PER_SECOND: NonZeroU32 = NonZeroU32::new(5_000).expect("not zero");

/// How many seconds' worth of requests may come in a burst.
const BURST_SECONDS: NonZeroU32 = NonZeroU32::new(2).expect("not zero");

/// Identifies a caller.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Token(String),
    Address(Option<IpAddr>),
}

/// Counts the requests of each caller.
pub(crate) struct Rate {
    limiter: DefaultKeyedRateLimiter<Key>,
    clock: DefaultClock,
    /// Whether the limit was configured: then it applies to callers on this machine too.
    chosen: bool,
}

impl Rate {
    pub(crate) fn new(per_second: Option<NonZeroU32>) -> Rate {
        let each = per_second.unwrap_or(DEFAULT_PER_SECOND);
        let quota = Quota::per_second(each).allow_burst(each.saturating_mul(BURST_SECONDS));
        let (limiter, clock) = (RateLimiter::keyed(quota), DefaultClock::default());
        Rate { limiter, clock, chosen: per_second.is_some() }
    }

    /// Counts a request, and refuses it if there were too many. A caller without a valid token is
    /// counted by its address.
    pub(crate) fn check(&self, peer: &Peer, caller: Option<&Caller>) -> Result<(), Box<Response>> {
        let name = caller.and_then(|caller| caller.name.clone());
        if name.is_none() && !self.chosen && peer.is_local() {
            return Ok(());
        }
        let key = name.map_or_else(|| Key::Address(peer.address()), Key::Token);
        self.limiter.check_key(&key).map_err(|later| {
            let wait = later.wait_time_from(self.clock.now());
            Box::new(too_many(wait.as_secs() + 1))
        })
    }

    /// Forgets callers that made no request for a while.
    pub(crate) fn forget_old(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

fn too_many(seconds: u64) -> Response {
    let message = "too many requests from this caller";
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message)
        .hint(format!("Retry in {seconds} s."));
    let mut response = problem.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}
