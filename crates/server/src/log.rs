//! What a server logs and traces, as events and spans of `tracing`; the program that runs it decides on
//! the format.
//!
//! A log contains no secrets: of a request it has the method, the path without its query, the
//! status, the duration and the name of the token. Headers and bodies are never logged.

use crate::http::tokens::SECRET_PREFIX;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use std::time::Duration;
use tracing::Level;
use tracing::field::display;

/// The target of all that belongs in a server's log. Libraries that this server uses also emit
/// events, which may contain what callers sent: a log takes only this target.
pub const LOG: &str = "tenure::log";

/// The target of spans that are traced.
pub const TRACE: &str = "tenure::trace";

/// The target of measurements that are sent with traces.
pub const METRIC: &str = "tenure::metric";

/// The longest path in a log.
const PATH_CHARACTERS_MAX: usize = 200;

/// What the log says of a request.
pub(crate) struct LoggedRequest {
    method: Method,
    path: String,
}

impl LoggedRequest {
    /// `None` if requests are not logged.
    pub(crate) fn of(request: &Request) -> Option<LoggedRequest> {
        let is_logged = tracing::enabled!(target: LOG, Level::INFO);
        is_logged.then(|| LoggedRequest {
            method: request.method().clone(),
            path: loggable(request.uri().path()),
        })
    }

    /// Logs the response.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration, token: Option<&str>) {
        let LoggedRequest { method, path } = self;
        let duration_ms = (took.as_secs_f64() * 10_000.0).round() / 10.0;
        let (status, token) = (status.as_u16(), token.map(display));
        match status {
            500.. => {
                tracing::warn!(target: LOG, %method, %path, status, duration_ms, token, "request failed");
            }
            _ => {
                tracing::info!(target: LOG, %method, %path, status, duration_ms, token, "request");
            }
        }
    }
}

/// A path for a log: short, on one line, and without anything that looks like a token.
fn loggable(path: &str) -> String {
    let plain: String =
        path.chars().filter(|c| c.is_ascii_graphic()).take(PATH_CHARACTERS_MAX).collect();
    let mut parts = plain.split(SECRET_PREFIX);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_secret = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        shown.push_str(SECRET_PREFIX);
        shown.push('…');
        shown.push_str(part.trim_start_matches(is_secret));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_short_on_one_line_and_without_tokens() {
        for (path, shown) in [
            ("/v1/tasks/a-1", "/v1/tasks/a-1".to_owned()),
            ("/a\nb \u{7f}é", "/ab".to_owned()),
            ("/tnr_1f0c/x/tnr_-_9", "/tnr_…/x/tnr_…".to_owned()),
            (&format!("/{}", "a".repeat(500)), format!("/{}", "a".repeat(199))),
        ] {
            assert_eq!(loggable(path), shown, "{path:?}");
        }
    }
}
