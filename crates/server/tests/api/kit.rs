//! A server without a network: requests go straight to the router.

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use axum::{Extension, Router};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use tenure::Client;
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tower::ServiceExt;

/// A server over a store of its own.
pub struct Server {
    pub client: Client,
    pub app: App,
    router: Router,
    _folder: TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub kind: String,
    pub replayed: bool,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON of an answer that must be a success.
    #[track_caller]
    pub fn good(&self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        assert_eq!(self.kind, "application/json", "{self:?}");
        self.json()
    }

    /// The JSON of an answer that must be this refusal.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.kind, "application/problem+json", "{self:?}");
        let body = self.json();
        assert_eq!(body["code"], code, "{self:?}");
        assert_eq!(body["status"], status, "{self:?}");
        body
    }
}

pub fn caller(role: Role) -> Caller {
    Caller::new(Some(&format!("the-{role}")), role)
}

impl Server {
    pub async fn new() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
        Server::over(Client::open(&url).await.unwrap(), folder)
    }

    /// A server over this store, which is in this folder.
    pub fn over(client: Client, folder: TempDir) -> Server {
        let app = App::new(client.clone());
        let router = tenure_server::api::routes(app.clone()).into_router();
        Server { client, app, router, _folder: folder }
    }

    /// Another server over the same store, with a memory of its own.
    pub fn restarted(&self) -> Router {
        tenure_server::api::routes(App::new(self.client.clone())).into_router()
    }

    pub async fn send(&self, request: Request<Body>, caller: Caller) -> Answer {
        send(self.router.clone(), request, caller).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, None), Caller::local()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(request(Method::POST, path, Some(body)), Caller::local()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(request(Method::PUT, path, Some(body)), Caller::local()).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(request(Method::PATCH, path, Some(body)), Caller::local()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, None), Caller::local()).await
    }

    /// Takes a lock, and gives what the holder is told.
    pub async fn acquire(&self, resource: &str, more: Value) -> Value {
        let mut body = json!({ "resources": [resource] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/v1/locks/acquire", body).await.good()
    }

    /// Adds a task, and gives its id.
    pub async fn add(&self, task: Value) -> String {
        let added = self.post("/v1/tasks", json!({ "tasks": [task] })).await.good();
        added["tasks"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Claims a task, and gives what the claimer is told.
    pub async fn claim(&self, body: Value) -> Value {
        let claimed = self.post("/v1/tasks/claim", body).await.good();
        assert_eq!(claimed["tasks"].as_array().unwrap().len(), 1, "{claimed}");
        claimed["tasks"][0].clone()
    }

    /// Returns when so many wait for something.
    pub async fn until_waiting(&self, count: usize) {
        loop {
            let seen = self.client.look_everywhere().await.unwrap();
            if seen.waiters.len() == count {
                return;
            }
            self.client.changed(seen.revision, Duration::from_millis(100)).await.unwrap();
        }
    }
}

pub fn request(method: Method, path: &str, body: Option<Value>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    match body {
        None => request.body(Body::empty()).unwrap(),
        Some(body) => {
            let request = request.header("content-type", "application/json");
            request.body(Body::from(body.to_string())).unwrap()
        }
    }
}

pub async fn send(router: Router, request: Request<Body>, caller: Caller) -> Answer {
    read(router.layer(Extension(caller)).oneshot(request).await.unwrap()).await
}

async fn read(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let header = |name: &str| {
        let value = parts.headers.get(name);
        value.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    let (kind, replayed) = (header("content-type"), header("idempotency-replayed") == "true");
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Answer { status: parts.status, kind, replayed, text }
}
