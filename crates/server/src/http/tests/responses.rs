//! What all answers have in common.

use crate::http::responses::{as_problem, protect};
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};

async fn body(response: Response) -> Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn refusals_of_libraries_get_the_form_of_ours() {
    let allow = [(header::ALLOW, "GET")];
    let response = (StatusCode::METHOD_NOT_ALLOWED, allow, Body::empty()).into_response();
    let response = as_problem(response).await;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    assert_eq!(response.headers()[header::ALLOW], "GET");
    let body = body(response).await;
    assert_eq!(body["code"], "METHOD_NOT_ALLOWED");
    assert_eq!(body["status"], 405);
}

#[tokio::test]
async fn their_words_are_kept_if_they_are_few() {
    let response = (StatusCode::UNPROCESSABLE_ENTITY, "no field `x`").into_response();
    let problem = body(as_problem(response).await).await;
    assert_eq!((&problem["code"], &problem["detail"]), (&json!("USAGE"), &json!("no field `x`")));
    let response = (StatusCode::BAD_REQUEST, "x".repeat(10_000)).into_response();
    let problem = body(as_problem(response).await).await;
    assert_eq!(problem["detail"], "bad request");
}

#[tokio::test]
async fn what_has_a_form_keeps_it() {
    let own = axum::Json(json!({ "jsonrpc": "2.0" }));
    let response = as_problem((StatusCode::BAD_REQUEST, own).into_response()).await;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    let fine = as_problem("fine".into_response()).await;
    assert_eq!(fine.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
}

#[test]
fn a_handlers_own_headers_win() {
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, "max-age=60".parse().unwrap());
    protect(&mut headers);
    assert_eq!(headers[header::CACHE_CONTROL], "max-age=60");
    assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
    assert!(!headers.keys().any(|name| name.as_str().starts_with("access-control")));
}
