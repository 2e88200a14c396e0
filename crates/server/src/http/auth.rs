//! Who asks: the token that a request carries.

use super::keyring::Keyring;
use super::peer::Peer;
use crate::caller::Caller;
use crate::problem::Problem;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// What anybody may ask for: whether the server lives, and the page, which has nothing in it.
const OPEN: [&str; 5] = ["/healthz", "/readyz", "/", "/favicon.ico", "/favicon.svg"];

/// The same for all below: the page's parts.
const OPEN_BELOW: &str = "/assets/";

/// Whether anybody may ask for this.
pub(crate) fn is_open(path: &str) -> bool {
    OPEN.contains(&path) || path.starts_with(OPEN_BELOW)
}

/// How to get in.
const HINT: &str = "Send `Authorization: Bearer TOKEN`. The user who runs the server sees its token with \
    `tenure token show`, and makes tokens for others with `tenure token create`.";

/// Why nobody is let in.
pub(crate) enum Unknown {
    /// There was no token.
    Missing,
    /// There was one, and it does not count.
    Wrong,
}

/// Who asks, if that is known.
pub(crate) fn caller(
    keyring: &Keyring,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Caller, Unknown> {
    if keyring.needs_no_token(peer) {
        return Ok(Caller::local());
    }
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = given.next() else { return Err(Unknown::Missing) };
    let secret = secret(value).filter(|_| given.next().is_none());
    secret.and_then(|secret| keyring.caller(secret)).ok_or(Unknown::Wrong)
}

fn secret(value: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

impl IntoResponse for Unknown {
    fn into_response(self) -> Response {
        let (message, challenge) = match self {
            Unknown::Missing => ("this server asks for a token", "Bearer"),
            Unknown::Wrong => {
                ("the token is unknown, revoked or expired", "Bearer error=\"invalid_token\"")
            }
        };
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message).hint(HINT);
        let mut response = problem.into_response();
        let challenge = HeaderValue::from_static(challenge);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        response
    }
}
