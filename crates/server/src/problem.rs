//! Errors of the API: `application/problem+json`, with the error codes of the command line.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tenure::Error;
use tenure::core::rules::tasks::{AddError, SectionError};
use tenure_frontend::exit::Exit;
use tenure_frontend::refusal::Refusal;

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
    /// Code, message and hint.
    pub refusal: Refusal,
}

impl Problem {
    /// An error with this status.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, refusal: Refusal::new(Exit::Error, code, message) }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.refusal.hint = Some(hint.into());
        self
    }

    /// The body of the response.
    pub fn body(&self) -> Value {
        let Refusal { code, message, hint, details, .. } = &self.refusal;
        let mut body = Map::new();
        body.insert("type".to_owned(), json!("about:blank"));
        body.insert("title".to_owned(), json!(self.status.canonical_reason()));
        body.insert("status".to_owned(), json!(self.status.as_u16()));
        body.insert("code".to_owned(), json!(code));
        body.insert("detail".to_owned(), json!(message));
        if let Some(hint) = hint {
            body.insert("hint".to_owned(), json!(hint));
        }
        if !details.is_null() {
            body.insert("details".to_owned(), details.clone());
        }
        Value::Object(body)
    }
}

/// The HTTP status of each exit code.
fn status(exit: Exit, code: &str) -> StatusCode {
    match exit {
        // These are problems of the store, not of the caller.
        Exit::Error if ["OUTCOME_UNKNOWN", "STORE_CONTENDED"].contains(&code) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Exit::Ok => StatusCode::OK,
        Exit::Usage => StatusCode::BAD_REQUEST,
        Exit::Configuration => StatusCode::SERVICE_UNAVAILABLE,
        Exit::NotFound => StatusCode::NOT_FOUND,
        Exit::Refused => StatusCode::FORBIDDEN,
        Exit::Error | Exit::Locked | Exit::Lost | Exit::CheckFailed => StatusCode::CONFLICT,
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        Problem { status: status(refusal.exit, refusal.code), refusal }
    }
}

/// Whether the present state, not the request, is the reason.
fn is_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::Add(AddError::Exists { .. } | AddError::NoSuchDependency { .. })
            | Error::Section(SectionError::Cycle { .. })
    )
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let is_conflict = is_conflict(&error);
        let mut problem = Problem::from(Refusal::from(error));
        if is_conflict {
            problem.status = StatusCode::CONFLICT;
        }
        problem
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
        response.extensions_mut().insert(Code(self.refusal.code));
        response
    }
}
