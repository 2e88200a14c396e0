//! The API keeps its own description, tried by schemathesis: requests made from the document, good
//! and bad, get no answer of 500 and above and none that the document does not describe.
//!
//! `scripts/test` installs what this needs.

use axum::Extension;
use axum::extract::Request;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure::Client;
use tenure_server::api;
use tenure_server::app::App;
use tenure_server::caller::Caller;
use tokio::net::TcpListener;
use tokio::process::Command;

/// As long as answers wait here: long enough to take the way of waiting, short enough for thousands.
const WAIT_MAX: Duration = Duration::from_millis(20);

fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("target/needs/venv/bin/schemathesis");
    assert!(program.exists(), "{} is missing: scripts/test installs it", program.display());
    program
}

/// A server on a free port; gives its address.
async fn serve(url: &str) -> String {
    let client = Client::open(url).await.unwrap();
    let router = api::routes_waiting(App::new(client), WAIT_MAX)
        .into_router()
        .layer(Extension(Caller::local()))
        .layer(axum::middleware::map_request(make_key_new));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

/// Keys that are made up at random are short and repeat, and then nothing would be done: so each that
/// is a key at all gets something behind it.
async fn make_key_new(mut request: Request) -> Request {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
    let is_key = |key: &&str| {
        (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if let Some(key) = key.filter(is_key) {
        let new = format!("{key:.240}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        request.headers_mut().insert("idempotency-key", new.parse().unwrap());
    }
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_gets_an_answer_that_is_not_described() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(&format!("sqlite:{}", folder.path().join("tenure.db").display())).await;
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis.toml");
    let output = Command::new(program())
        .args(["--config-file", settings.to_str().unwrap(), "--no-color"])
        .args(["run", &format!("{address}/v1/openapi.json")])
        .current_dir(folder.path())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
