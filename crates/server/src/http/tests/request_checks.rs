//! The way of a request past the checks: panics, limits, streams, and the end of the server.

use crate::app::App;
use crate::caller::{Caller, Role};
use crate::http::hosts::Hosts;
use crate::http::keyring::{Keyring, WithoutTokenFile};
use crate::http::limits::{Limits, Times};
use crate::http::own_token::CreatedToken;
use crate::http::peer::Peer;
use crate::http::rate::Rate;
use crate::http::request_checks::{RequestChecks, router};
use crate::http::tokens::TokenFile;
use crate::routes::{Access, Routes};
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_util::StreamExt;
use http_body_util::BodyExt;
use serde_json::Value;
use std::future::pending;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tenure::Client;
use tenure::Secret;
use tenure::server_support::local_server::ServerFolder;
use tenure::world::{Clock, SystemClock};
use tower::ServiceExt;

pub(super) struct Scene {
    _folder: TempDir,
    file: TokenFile,
    app: App,
    checks: Arc<RequestChecks>,
    router: Router,
}

impl Scene {
    async fn new() -> Scene {
        Scene::with(None).await
    }

    async fn with(rate: Option<u32>) -> Scene {
        Scene::without_token_file(rate, |_| WithoutTokenFile::LetIn).await
    }

    async fn without_token_file(
        rate: Option<u32>,
        without_token_file: impl FnOnce(&Path) -> WithoutTokenFile,
    ) -> Scene {
        Scene::build(routes(), rate, without_token_file, Times::default()).await
    }

    /// A server that does not wait for long.
    async fn in_a_hurry() -> Scene {
        let brief = Duration::from_millis(100);
        let times = Times { answer: brief, wait: brief, body_silence: brief };
        Scene::build(routes(), None, |_| WithoutTokenFile::LetIn, times).await
    }

    /// A server with these routes that lets in everybody on this machine.
    pub(super) async fn of(routes: Routes) -> Scene {
        Scene::build(routes, None, |_| WithoutTokenFile::LetIn, Times::default()).await
    }

    async fn build(
        routes: Routes,
        rate: Option<u32>,
        without_token_file: impl FnOnce(&Path) -> WithoutTokenFile,
        times: Times,
    ) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::at(folder.path().join("tokens"));
        let keyring = Keyring::open(file.clone(), Arc::new(SystemClock)).unwrap();
        let keyring = keyring.without_token_file(without_token_file(folder.path()));
        let app = App::new(Client::open("memory:").await.unwrap());
        let checks = Arc::new(RequestChecks {
            app: app.clone(),
            hosts: Hosts::default(),
            tls: None,
            keyring: Arc::new(keyring),
            rate: Rate::new(rate.map(|rate| NonZeroU32::new(rate).unwrap())),
            body_bytes_max: 2 * 1024 * 1024,
            times,
        });
        let router = router(routes, checks.clone());
        Scene { _folder: folder, file, app, checks, router }
    }

    pub(super) fn token(&self, name: &str, role: Role, lifetime: Option<Duration>) -> String {
        let made = self.file.create(name, role, SystemClock.wall(), lifetime).unwrap();
        self.checks.keyring.refresh().unwrap();
        made.secret
    }

    pub(super) async fn ask(&self, request: Request) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> Response {
        self.ask(request("GET", path, Body::empty())).await
    }
}

fn routes() -> Routes {
    let endless = async || {
        let frames = futures_util::stream::once(async { Ok::<_, std::io::Error>("data: x\n\n") });
        let body = Body::from_stream(frames.chain(futures_util::stream::pending()));
        ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
    };
    let who = async |Extension(caller): Extension<Caller>| format!("{caller:?}");
    let (known, quick, waits) = (Access::Known, Limits::Quick, Limits::Waits);
    Routes::new()
        .route("/", Access::Anyone, quick, get(who))
        .route("/who", known, quick, get(who))
        .route("/panic", known, quick, get(async || -> &'static str { panic!("a mistake") }))
        .route("/slow", known, quick, get(async || -> &'static str { pending().await }))
        .route("/wait", known, waits, get(async || -> &'static str { pending().await }))
        .route("/stream", known, waits, get(endless))
        .route("/echo", known, quick, post(async |body: Bytes| body.len().to_string()))
        .route("/large", known, Limits::Large, post(async |body: Bytes| body.len().to_string()))
}

pub(super) fn request(method: &str, path: &str, body: Body) -> Request {
    let request = Request::builder().method(method).uri(path).header("host", "localhost:7070");
    let mut request = request.body(body).unwrap();
    let [remote, local] = ["127.0.0.1:5000", "127.0.0.1:7070"].map(|it| it.parse().unwrap());
    request.extensions_mut().insert(Peer::Tcp { remote, local, tls: false });
    request
}

fn bearer(path: &str, secret: &str) -> Request {
    let mut request = request("GET", path, Body::empty());
    let value = format!("Bearer {secret}").parse().unwrap();
    request.headers_mut().insert(header::AUTHORIZATION, value);
    request
}

async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.into()).unwrap()
}

pub(super) async fn code(response: Response) -> String {
    let body: Value = serde_json::from_str(&text(response).await).unwrap();
    body["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_servers_own_token_lets_its_user_in_and_nobody_else() {
    let store = "memory:".parse().unwrap();
    let scene = Scene::without_token_file(None, |folder| {
        let folder = ServerFolder::at(folder.join("servers"));
        WithoutTokenFile::Own(Box::new(CreatedToken::get(&folder, &store, false).unwrap().token()))
    })
    .await;
    let folder = ServerFolder::at(scene._folder.path().join("servers"));
    let secret = folder.token(&store).unwrap().unwrap();
    assert_eq!(scene.get("/who").await.status(), StatusCode::UNAUTHORIZED);
    let wrong = scene.ask(bearer("/who", "tnr_wrong")).await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
    assert!(text(scene.ask(bearer("/who", secret.reveal())).await).await.contains("Admin"));
    // A socket tells who is at the other end.
    let own = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(folder.path()).unwrap());
    for (user, status) in [(Some(own), 200), (Some(own + 1), 401), (None, 401)] {
        let mut asked = request("GET", "/who", Body::empty());
        asked.extensions_mut().insert(Peer::Unix { user });
        assert_eq!(scene.ask(asked).await.status().as_u16(), status, "{user:?}");
    }
    // Renewed by another server of the store: the old one does not count any more.
    folder.replace_token(&store, &Secret::new("tnr_new")).unwrap();
    scene.checks.keyring.refresh_own().unwrap();
    let old = scene.ask(bearer("/who", secret.reveal())).await;
    assert_eq!(old.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(scene.ask(bearer("/who", "tnr_new")).await.status(), StatusCode::OK);
    // As soon as there is a file of tokens, only those count.
    let given = scene.token("ci", Role::Read, None);
    let own = scene.ask(bearer("/who", "tnr_new")).await;
    assert_eq!(own.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(scene.ask(bearer("/who", &given)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn without_authentication_this_machine_may_do_all() {
    let scene = Scene::new().await;
    assert!(text(scene.get("/who").await).await.contains("Admin"));
    let mut foreign = request("GET", "/who", Body::empty());
    let [remote, local] = ["192.0.2.9:5000", "127.0.0.1:7070"].map(|it| it.parse().unwrap());
    foreign.extensions_mut().insert(Peer::Tcp { remote, local, tls: false });
    assert_eq!(scene.ask(foreign).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn with_tokens_each_caller_is_known_by_its_own() {
    let scene = Scene::new().await;
    let secret = scene.token("ci", Role::Work, None);
    let response = scene.get("/who").await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
    assert_eq!(code(response).await, "UNAUTHORIZED");
    let wrong = scene.ask(bearer("/who", "tnr_wrong")).await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
    let known = text(scene.ask(bearer("/who", &secret)).await).await;
    assert!(known.contains("ci") && known.contains("Work"), "{known}");
    // The page is open to all callers, and gives no more than read access.
    assert!(text(scene.get("/").await).await.contains("Read"));
    let mut twice = bearer("/who", &secret);
    let other = "Bearer x".parse().unwrap();
    twice.headers_mut().append(header::AUTHORIZATION, other);
    assert_eq!(scene.ask(twice).await.status(), StatusCode::UNAUTHORIZED);
}

/// A log in memory.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged by this thread until the guard is dropped, one JSON object per line.
fn log() -> (Arc<Mutex<Vec<u8>>>, tracing::subscriber::DefaultGuard) {
    let Written(written) = Written::default();
    let writer = Written(written.clone());
    let lines = tracing_subscriber::fmt().json().with_writer(move || writer.clone());
    let lines = lines.flatten_event(true).with_max_level(tracing::Level::TRACE).finish();
    (written, tracing::subscriber::set_default(lines))
}

fn lines(written: &Mutex<Vec<u8>>) -> Vec<Value> {
    let written = written.lock().unwrap();
    let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[tokio::test]
async fn a_request_has_one_id_in_its_answer_and_in_the_log_and_no_secret_there() {
    let scene = Scene::new().await;
    let secret = scene.token("ci", Role::Work, None);
    let (written, _guard) = log();
    let mut asked = bearer(&format!("/who?secret={secret}"), &secret);
    asked.headers_mut().insert("x-request-id", "job-7".parse().unwrap());
    assert_eq!(scene.ask(asked).await.headers()["x-request-id"], "job-7");
    let made = scene.ask(bearer(&format!("/{secret}"), "tnr_wrong")).await;
    let made = made.headers()["x-request-id"].to_str().unwrap().to_owned();
    scene.ask(bearer("/panic", &secret)).await;
    // A log takes only its own target; measurements have another.
    let log: Vec<Value> =
        lines(&written).into_iter().filter(|line| line["target"] == crate::log::LOG).collect();
    let line = |n: usize, key: &str| log[n][key].as_str().unwrap_or_default().to_owned();
    assert_eq!(log.len(), 3, "{log:?}");
    assert_eq!(log[0]["span"]["request_id"], "job-7");
    assert_eq!((line(0, "method"), line(0, "path")), ("GET".to_owned(), "/who".to_owned()));
    assert_eq!((&log[0]["status"], line(0, "token")), (&Value::from(200), "ci".to_owned()));
    assert_eq!(log[1]["span"]["request_id"], made);
    assert_eq!((&log[1]["status"], line(1, "path")), (&Value::from(401), "/tnr_…".to_owned()));
    assert_eq!((line(0, "level"), line(2, "level")), ("INFO".to_owned(), "WARN".to_owned()));
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    assert!(!text.contains(&secret[4..]), "{text}");
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let scene = Scene::new().await;
    let response = scene.get("/panic").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(code(response).await, "INTERNAL");
    assert_eq!(scene.get("/who").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_answer_that_does_not_come_ends() {
    let scene = Scene::in_a_hurry().await;
    let response = scene.get("/slow").await;
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(code(response).await, "OUTCOME_UNKNOWN");
}

#[tokio::test]
async fn a_body_that_does_not_come_ends() {
    let times = Times { body_silence: Duration::from_millis(100), ..Times::default() };
    let scene = Scene::build(routes(), None, |_| WithoutTokenFile::LetIn, times).await;
    let frames = futures_util::stream::once(async { Ok::<_, std::io::Error>("begun") });
    let body = Body::from_stream(frames.chain(futures_util::stream::pending()));
    let response = scene.ask(request("POST", "/echo", body)).await;
    // Not the limit of the answer, which would be 504.
    assert!(response.status().is_client_error(), "{response:?}");
}

#[tokio::test]
async fn bodies_have_an_end() {
    let scene = Scene::new().await;
    let mib = 1024 * 1024;
    for (path, length, fits) in [
        ("/echo", mib, true),
        ("/echo", mib + 1, false),
        ("/large", 2 * mib, true),
        ("/large", 2 * mib + 1, false),
    ] {
        for whole in [true, false] {
            let bytes = Bytes::from(vec![b'x'; length]);
            let mut asked = match whole {
                true => request("POST", path, Body::from(bytes)),
                false => {
                    let frames = futures_util::stream::iter([Ok::<_, std::io::Error>(bytes)]);
                    request("POST", path, Body::from_stream(frames))
                }
            };
            if whole {
                asked.headers_mut().insert(header::CONTENT_LENGTH, length.into());
            }
            let response = scene.ask(asked).await;
            match fits {
                true => assert_eq!(response.status(), StatusCode::OK, "{path} {length}"),
                false => {
                    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE, "{path}");
                    assert_eq!(code(response).await, "TOO_LARGE");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_response_to_a_body_that_is_not_read_closes_the_connection() {
    let scene = Scene::new().await;
    // With a token file, strangers are refused.
    let secret = scene.token("ci", Role::Work, None);
    let closes = async |request| {
        let response = scene.ask(request).await;
        (response.status().as_u16(), response.headers().get(header::CONNECTION).is_some())
    };
    let with_token = |method: &str, path: &str, length: usize| {
        let mut request = request(method, path, Body::from(vec![b'x'; length]));
        let value = format!("Bearer {secret}").parse().unwrap();
        request.headers_mut().insert(header::AUTHORIZATION, value);
        request.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        request
    };
    assert_eq!(closes(request("POST", "/echo", Body::from("x"))).await, (401, true));
    assert_eq!(closes(with_token("POST", "/none", 100)).await, (404, true));
    assert_eq!(closes(with_token("PATCH", "/echo", 100)).await, (405, true));
    assert_eq!(closes(with_token("POST", "/echo", 1024 * 1024 + 1)).await, (413, true));
    assert_eq!(closes(with_token("POST", "/echo", 100)).await, (200, false));
    assert_eq!(closes(with_token("GET", "/none", 0)).await, (404, false));
}

#[tokio::test]
async fn one_caller_may_not_ask_too_often() {
    let scene = Scene::with(Some(5)).await;
    let mut refused = None;
    for _ in 0..11 {
        refused = Some(scene.get("/who").await);
    }
    let refused = refused.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(code(refused).await, "RATE_LIMITED");
    // Another one may.
    let secret = scene.token("ci", Role::Read, None);
    assert_eq!(scene.ask(bearer("/who", &secret)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn nobody_on_this_machine_is_counted_unless_told() {
    let scene = Scene::new().await;
    for _ in 0..11_000 {
        assert!(
            scene.checks.rate.check(&Peer::Unix { user: None }, Some(&Caller::local())).is_ok()
        );
    }
}

#[tokio::test]
async fn whoever_waits_is_told_that_the_server_ends() {
    let scene = Scene::new().await;
    let app = scene.app.clone();
    let (waited, ()) = tokio::join!(scene.get("/wait"), async { app.stop() });
    assert_eq!(waited.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(waited.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(code(waited).await, "SHUTTING_DOWN");
}

#[tokio::test]
async fn a_stream_ends_with_the_server() {
    let scene = Scene::new().await;
    let mut body = scene.get("/stream").await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    scene.app.stop();
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let scene = Scene::new().await;
    let secret = scene.token("page", Role::Read, None);
    let response = scene.ask(bearer("/stream", &secret)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    scene.file.revoke("page").unwrap();
    scene.checks.keyring.refresh().unwrap();
    assert!(body.frame().await.is_none());
}
