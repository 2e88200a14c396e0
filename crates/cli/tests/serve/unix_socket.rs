//! A socket for its owner alone, left behind by nobody for long.

use crate::http::{exchange, get};
use crate::server::{Server, token};
use crate::support::{PATIENCE, StoreLocation};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

fn ask(path: &Path, asked: crate::http::Ask) -> crate::http::Answer {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange(&mut stream, asked.text("anything").as_bytes())
}

#[test]
fn its_owner_may_ask() {
    let place = StoreLocation::new();
    let path = place.path("sock");
    let server = Server::start_on(&place, &["--unix", path.to_str().unwrap()]);
    assert_eq!(server.listening, [format!("unix:{}", path.display())]);
    let metadata = std::fs::metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(ask(&path, get("/healthz")).status, 200);
    assert_eq!(ask(&path, get("/v1/nothing")).status, 404);
    server.stop();
    assert!(!path.exists());
    let left = std::fs::read_dir(place.path(".")).unwrap().flatten();
    let left: Vec<_> =
        left.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".tnr")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn tokens_count_there_too() {
    let place = StoreLocation::new();
    let secret = token(&place, "ci", "read");
    let path = place.path("sock");
    let _server = Server::start(&place, &["--unix", path.to_str().unwrap()]);
    assert_eq!(ask(&path, get("/v1/nothing")).status, 401);
    assert_eq!(ask(&path, get("/v1/nothing").token(&secret)).status, 404);
}

#[test]
fn a_dead_servers_socket_is_replaced_and_a_living_ones_is_not() {
    let place = StoreLocation::new();
    let path = place.path("sock");
    let arguments = ["--unix", path.to_str().unwrap()];
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = Server::start_on(&place, &arguments);
    assert_eq!(ask(&path, get("/healthz")).status, 200);
    let ended = place.run(&["serve", "--json", arguments[0], arguments[1]]);
    assert_eq!((ended.code, ended.json()["error"]["code"].as_str()), (3, Some("IN_USE")));
    assert_eq!(ask(&path, get("/healthz")).status, 200);
    drop(server);
    Server::start_on(&place, &arguments).stop();
    std::fs::write(&path, "precious").unwrap();
    let ended = place.run(&["serve", "--json", arguments[0], arguments[1]]);
    assert_eq!((ended.code, ended.json()["error"]["code"].as_str()), (3, Some("LISTEN")));
    assert_eq!(place.read("sock"), "precious");
}
