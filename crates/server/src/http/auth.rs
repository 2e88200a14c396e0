//! Authenticates a request by its token.

use super::keyring::Keyring;
use super::peer::Peer;
use crate::caller::Caller;
use crate::problem::Problem;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// How to authenticate.
const HINT: &str = "Send `Authorization: Bearer TOKEN`. The user who runs the server gets its token with \
    `tenure token show`, and creates tokens for others with `tenure token create`.";

/// Why a request is not authenticated.
pub(crate) enum NotAuthenticated {
    /// There was no token.
    Missing,
    /// The token is not valid.
    Wrong,
}

/// The caller of a request, if it is authenticated.
pub(crate) fn caller(
    keyring: &Keyring,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Caller, NotAuthenticated> {
    if keyring.needs_no_token(peer) {
        return Ok(Caller::local());
    }
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = given.next() else { return Err(NotAuthenticated::Missing) };
    let secret = secret(value).filter(|_| given.next().is_none());
    secret.and_then(|secret| keyring.caller(secret)).ok_or(NotAuthenticated::Wrong)
}

fn secret(value: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

impl IntoResponse for NotAuthenticated {
    fn into_response(self) -> Response {
        let (message, challenge) = match self {
            NotAuthenticated::Missing => ("this server requires a token", "Bearer"),
            NotAuthenticated::Wrong => {
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
