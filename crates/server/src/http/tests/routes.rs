//! What the routes of a whole server declare, and that the checks keeps to it.

use super::request_checks::{Scene, code, request};
use crate::api;
use crate::app::App;
use crate::caller::Role;
use crate::http::limits::Limits;
use crate::http::routes;
use axum::body::Body;
use axum::http::{StatusCode, header};
use tenure::Client;

async fn declared(wanted: impl Fn(&str, bool, Limits) -> bool) -> Vec<String> {
    let routes = routes(&App::new(Client::open("memory:").await.unwrap()));
    let (_, declarations) = routes.into_parts();
    let found = declarations.iter().filter(|(path, it)| wanted(path, it.is_open, it.limits));
    found.map(|(path, _)| path.to_owned()).collect()
}

#[tokio::test]
async fn every_path_of_the_document_is_declared() {
    let all = declared(|_, _, _| true).await;
    let document = api::openapi();
    assert!(document.paths.paths.len() > 20);
    for path in document.paths.paths.keys() {
        assert!(all.contains(path), "{path}");
    }
}

#[tokio::test]
async fn only_the_page_and_the_health_of_the_server_need_no_token() {
    let open = declared(|path, is_open, _| is_open && !path.starts_with("/assets/")).await;
    assert_eq!(open, ["/", "/favicon.ico", "/favicon.svg", "/healthz", "/readyz"]);
    let closed = declared(|path, is_open, _| !is_open && path.starts_with("/assets/")).await;
    assert!(closed.is_empty(), "{closed:?}");
}

#[tokio::test]
async fn few_routes_wait_or_take_many_tasks() {
    let waits = declared(|_, _, limits| limits == Limits::Waits).await;
    let expected = [
        "/mcp",
        "/v1/events",
        "/v1/locks/acquire",
        "/v1/locks/wait",
        "/v1/store/wait",
        "/v1/stream",
        "/v1/tasks/claim",
    ];
    assert_eq!(waits, expected);
    let large = declared(|_, _, limits| limits == Limits::Large).await;
    assert!(large.contains(&"/v1/tasks".to_owned()), "{large:?}");
    let others = large.iter().filter(|path| !path.starts_with("/v1/store/"));
    assert_eq!(others.count(), 1, "{large:?}");
}

#[tokio::test]
async fn every_route_asks_for_a_token_and_refuses_what_is_too_long() {
    let app = App::new(Client::open("memory:").await.unwrap());
    let paths: Vec<(String, bool)> = {
        let (_, declarations) = routes(&app).into_parts();
        declarations.iter().map(|(path, it)| (path.to_owned(), it.is_open)).collect()
    };
    let scene = Scene::of(routes(&app)).await;
    let secret = scene.token("ci", Role::Admin, None);
    for (path, is_open) in paths {
        let path = path.replace(['{', '}', '*'], "");
        for known in [false, true] {
            let mut asked = request("POST", &path, Body::empty());
            // More than any route of this scene takes.
            asked.headers_mut().insert(header::CONTENT_LENGTH, (3 * 1024 * 1024).into());
            if known {
                let value = format!("Bearer {secret}").parse().unwrap();
                asked.headers_mut().insert(header::AUTHORIZATION, value);
            }
            let response = scene.ask(asked).await;
            let status = match known || is_open {
                true => StatusCode::PAYLOAD_TOO_LARGE,
                false => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(response.status(), status, "{path}");
            assert!(["TOO_LARGE", "UNAUTHORIZED"].contains(&code(response).await.as_str()));
        }
    }
}
