//! The id of a request, which is in its response and in every log line about it.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// The header of the id, in requests and responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted from a caller: a UUID, a ULID or a trace id fits.
const CALLERS_ID_MAX: usize = 64;

/// The id of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// The caller's id if it is short and harmless in a log, else a new one.
    pub(crate) fn of(headers: &HeaderMap) -> RequestId {
        let mut given = headers.get_all(REQUEST_ID).iter();
        let first = given.next().filter(|id| is_harmless(id.as_bytes()) && given.next().is_none());
        first.map_or_else(RequestId::random, |id| RequestId(id.clone()))
    }

    fn random() -> RequestId {
        let id = uuid::Uuid::new_v4().simple().to_string();
        // Hexadecimal digits are valid in a header.
        RequestId(HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("-")))
    }

    /// The value for the response.
    pub(crate) fn header(self) -> HeaderValue {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or("-"))
    }
}

/// Whether an id is short, has only characters that mean nothing to logs and shells, and is no
/// token of a server, which would then be in the log.
fn is_harmless(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    (1..=CALLERS_ID_MAX).contains(&id.len())
        && id.iter().all(is_plain)
        && !id.starts_with(super::tokens::SECRET_PREFIX.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&[u8]]) -> String {
        let mut headers = HeaderMap::new();
        for given in given {
            headers.append(REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
        }
        RequestId::of(&headers).to_string()
    }

    #[test]
    fn a_callers_id_is_kept_if_it_is_harmless() {
        for id in ["7", "0b1f3c1e-6a3c-4a58-8e37-2f7a1f1e3f11", "ci_job.42-a", &"a".repeat(64)] {
            assert_eq!(of(&[id.as_bytes()]), id);
        }
    }

    #[test]
    fn other_ids_are_replaced() {
        let long = "a".repeat(65);
        let cases: [&[&[u8]]; 11] = [
            &[],
            &[b""],
            &[long.as_bytes()],
            &[b"a b"],
            &[b"a\tb"],
            &[b"a=b"],
            &[b"$(reboot)"],
            &[b"\"quoted\""],
            &[b"\xff"],
            &[b"tnr_1f0c"],
            &[b"one", b"two"],
        ];
        for given in cases {
            let id = of(given);
            assert_eq!(id.len(), 32, "{given:?} gives {id}");
            assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{given:?} gives {id}");
        }
        assert_ne!(of(&[]), of(&[]));
    }
}
