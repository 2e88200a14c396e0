//! The official SDKs, over standard streams and over HTTP.

use crate::support::{Running, StoreLocation, TENURE};
use std::path::{Path, PathBuf};
use tenure_server::app::App;
use tenure_server::caller::Caller;
use tenure_server::mcp;

/// What `scripts/test` installed for tests. Links stay as they are: a Python knows by its own path
/// which packages it has.
pub fn needs(what: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a root");
    let path = root.join("target/needs").join(what);
    assert!(path.exists(), "{} is missing: run scripts/test, which makes it", path.display());
    path
}

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(name)
}

fn fine(place: &StoreLocation, program: &Path, arguments: &[&str]) {
    let mut command = place.command(program);
    command.args(arguments);
    if program.ends_with("node") {
        command.env("NODE_FOLDER", needs("node"));
    }
    let ended = Running::start(command).end();
    assert!(ended.code == 0 && ended.stdout.ends_with("fine\n"), "{}", ended.text());
}

fn python(place: &StoreLocation, arguments: &[&str]) {
    let script = script("drive.py");
    let arguments = [&[script.to_str().expect("a path")], arguments].concat();
    fine(place, &needs("venv/bin/python"), &arguments);
}

fn node(place: &StoreLocation, arguments: &[&str]) {
    let script = script("drive.mjs");
    let arguments = [&[script.to_str().expect("a path")], arguments].concat();
    fine(place, Path::new("node"), &arguments);
}

/// A server of `/mcp` on a free port of this machine, for as long as the test runs.
fn http(place: &StoreLocation) -> String {
    let (url, (tell, told)) = (place.url(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async move {
            let client = tenure::Client::open(&url).await.expect("a store");
            let router =
                mcp::routes(App::new(client)).into_router().layer(axum::Extension(Caller::local()));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address")).expect("a test that listens");
            axum::serve(listener, router).await.expect("a server");
        });
    });
    format!("http://{}/mcp", told.recv().expect("a server's address"))
}

#[test]
fn python_over_stdio_with_the_handshake() {
    let place = StoreLocation::new();
    python(&place, &["legacy", "stdio", TENURE, &place.url()]);
}

#[test]
fn python_over_stdio_without_the_handshake() {
    let place = StoreLocation::new();
    python(&place, &["auto", "stdio", TENURE, &place.url()]);
}

#[test]
fn python_over_http_with_sessions() {
    let place = StoreLocation::new();
    python(&place, &["legacy", "http", &http(&place)]);
}

#[test]
fn python_over_http_without_sessions() {
    let place = StoreLocation::new();
    python(&place, &["auto", "http", &http(&place)]);
}

#[test]
fn typescript_over_stdio() {
    let place = StoreLocation::new();
    node(&place, &["stdio", TENURE, &place.url()]);
}

#[test]
fn typescript_over_http() {
    let place = StoreLocation::new();
    node(&place, &["http", &http(&place)]);
}
