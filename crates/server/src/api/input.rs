//! What a handler is given of a request, or a problem that says what is wrong with it.

use super::values::{Label, Object, SectionName, TaskName};
use crate::caller::Caller;
use crate::json_errors;
use crate::problem::Problem;
use crate::routes::unknown_caller;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

/// What was sent makes no sense.
pub fn usage(message: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "USAGE", message)
}

/// JSON that was sent.
pub struct Body<T>(pub T);

/// JSON that may have been sent; nothing, and null, means an empty object.
pub struct MaybeBody<T>(pub T);

/// Who asks.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ByBody {
    /// Who does it, for the audit log.
    #[serde(rename = "as")]
    pub label: Option<Label>,
}

/// What stands behind the `?`.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        require_json(request.headers())?;
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        parse(&bytes).map(|Object(body)| Body(body))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for MaybeBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<MaybeBody<T>, Problem> {
        let headers = request.headers().clone();
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        let given = match bytes.is_empty() {
            true => None,
            false => {
                require_json(&headers)?;
                parse(&bytes)?
            }
        };
        given.map_or_else(|| parse(b"{}"), Ok).map(|Object(body)| MaybeBody(body))
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim).unwrap_or_default();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "the body must be JSON, with the content type application/json";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", message))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    json_errors::read(bytes).map_err(usage)
}

/// The body could not be read.
pub fn unread(rejection: BytesRejection) -> Problem {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = "the body is larger than this server accepts";
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
        }
        _ => usage(rejection.body_text()),
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Params<T>, Problem> {
        let refused =
            |rejection: QueryRejection| usage(json_errors::of_query(&rejection.body_text()));
        Query::try_from_uri(&parts.uri).map(|Query(params)| Params(params)).map_err(refused)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TaskName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<TaskName, Problem> {
        let id = Path::<TaskName>::from_request_parts(parts, state).await;
        id.map(|Path(id)| id).map_err(|rejection| usage(rejection.body_text()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SectionName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<SectionName, Problem> {
        let name = Path::<SectionName>::from_request_parts(parts, state).await;
        name.map(|Path(name)| name).map_err(|rejection| usage(rejection.body_text()))
    }
}

/// The caller, whose role the route has checked.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(unknown_caller)
    }
}
