//! Each route for each role.

use crate::kit::{Server, caller, request};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use tenure_server::caller::Role;

/// What the role that a route needs is, by what its description says.
fn needs(method: &str, path: &str) -> Role {
    const WORK: [&str; 14] = [
        "/v1/locks/acquire",
        "/v1/locks/renew",
        "/v1/locks/release",
        "/v1/tasks",
        "/v1/tasks/claim",
        "/v1/tasks/{id}/start",
        "/v1/tasks/{id}/heartbeat",
        "/v1/tasks/{id}/complete",
        "/v1/tasks/{id}/fail",
        "/v1/tasks/{id}/review",
        "/v1/tasks/{id}/snooze",
        "/v1/tasks/{id}/release",
        "/v1/tasks/{id}/notes",
        "/v1/tasks/{id}/approve",
    ];
    match (method, path) {
        ("get", _) => Role::Read,
        ("post", "/v1/tasks/{id}/reject") => Role::Work,
        ("post", path) if WORK.contains(&path) => Role::Work,
        _ => Role::Admin,
    }
}

#[tokio::test]
async fn each_route_is_for_some_roles_and_not_for_others() {
    let server = Server::new().await;
    let document = server.get("/v1/openapi.json").await.good();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|_| path != "/v1/stream") {
            for role in Role::ALL {
                let status = try_as(&server, method, path, role).await;
                let refused = status == StatusCode::FORBIDDEN;
                assert_eq!(
                    refused,
                    role < needs(method, path),
                    "{method} {path} as {role}: {status}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 90, "the document has lost its paths: {tried}");
}

/// With a body that makes no sense anywhere: whoever may not is told so first.
async fn try_as(server: &Server, method: &str, path: &str, role: Role) -> StatusCode {
    let method: Method = method.to_uppercase().parse().unwrap();
    let body = (method != Method::GET).then(|| json!({ "nonsense": 1 }));
    let path = path.replace("{id}", "none").replace("{name}", "none");
    let answer = server.send(request(method, &path, body), caller(role)).await;
    if answer.status == StatusCode::FORBIDDEN {
        answer.refused(403, "FORBIDDEN");
    }
    answer.status
}

#[tokio::test]
async fn nobody_is_let_in_by_accident() {
    let server = Server::new().await;
    let router = server.restarted();
    let response =
        tower::ServiceExt::oneshot(router, request(Method::GET, "/v1/locks", None)).await;
    assert_eq!(response.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_same_form() {
    let server = Server::new().await;
    server.get("/v1/nothing").await.refused(404, "NO_SUCH_ROUTE");
    server.delete("/v1/locks").await.refused(405, "METHOD_NOT_ALLOWED");
    let body: Value = json!({});
    server.post("/v1/openapi.json", body).await.refused(405, "METHOD_NOT_ALLOWED");
}
