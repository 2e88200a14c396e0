//! Errors of the API: `application/problem+json`, with the error codes of the command line.

use crate::api::schema;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tenure::Error;
use tenure_frontend::refusal::{Refusal, RefusalKind};

/// The error code of a response, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub &'static str);

impl Code {
    /// Whether a grant or token was refused: lost, unknown or fenced.
    pub fn is_refused_token(self) -> bool {
        matches!(self.0, "LEASE_LOST" | "TOKEN_REFUSED" | "NOT_YOURS")
    }
}

/// An error response.
#[derive(Debug)]
pub struct Problem {
    /// The status of the response.
    pub status: StatusCode,
    /// A word for programs.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// More for programs.
    pub details: Value,
}

impl Problem {
    /// An error with this status.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, code, message: message.into(), hint: None, details: Value::Null }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// What is sent.
    pub fn body(&self) -> schema::Problem {
        schema::Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().map(str::to_owned),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            detail: self.message.clone(),
            hint: self.hint.clone(),
            details: Some(self.details.clone()).filter(|details| !details.is_null()),
        }
    }
}

/// The status by which HTTP says a kind of refusal.
fn status(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::Usage => StatusCode::BAD_REQUEST,
        // The store's trouble, not the caller's.
        RefusalKind::StoreUnusable | RefusalKind::StoreFailed => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::NotAllowed => StatusCode::FORBIDDEN,
        RefusalKind::Contradiction
        | RefusalKind::Locked
        | RefusalKind::Lost
        | RefusalKind::WrongStatus => StatusCode::CONFLICT,
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let Refusal { kind, code, message, hint, details, more: _ } = refusal;
        Problem { status: status(kind), code, message, hint, details }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::from(Refusal::from(error))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response.extensions_mut().insert(Code(self.code));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_refusal_has_its_status() {
        let statuses = RefusalKind::ALL.map(|kind| (kind, status(kind).as_u16()));
        let expected = [
            (RefusalKind::Usage, 400),
            (RefusalKind::Contradiction, 409),
            (RefusalKind::StoreUnusable, 503),
            (RefusalKind::StoreFailed, 503),
            (RefusalKind::NotFound, 404),
            (RefusalKind::NotAllowed, 403),
            (RefusalKind::Locked, 409),
            (RefusalKind::Lost, 409),
            (RefusalKind::WrongStatus, 409),
        ];
        assert_eq!(statuses, expected);
    }
}
