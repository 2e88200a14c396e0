//! A server that could be misused does not start, and says why.

use crate::http::get;
use crate::server::{Server, token, token_file};
use crate::support::{Ended, StoreLocation};
use std::os::unix::fs::PermissionsExt;

fn refused(place: &StoreLocation, arguments: &[&str], code: &str) -> Ended {
    let ended = place.run(&[&["serve", "--json"], arguments].concat());
    assert_eq!(ended.code, 3, "{ended:?}");
    assert_eq!(ended.json()["error"]["code"], code, "{ended:?}");
    ended
}

#[test]
fn other_machines_are_not_let_in_without_tokens() {
    let place = StoreLocation::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.7:0"] {
        let ended = refused(&place, &["--listen", address], "NO_TOKENS");
        let hint = ended.json()["error"]["hint"].to_string();
        assert!(hint.contains("tenure token create NAME --role work"), "{hint}");
    }
    // Not even if one of several addresses is this machine's own, or if all tokens were revoked.
    refused(&place, &["--listen", "127.0.0.1:0", "--listen", "0.0.0.0:0"], "NO_TOKENS");
    token(&place, "ci", "work");
    place.json(&["token", "revoke", "ci"]);
    refused(&place, &["--listen", "0.0.0.0:0"], "NO_TOKENS");
    place.json(&["token", "create", "old", "--role", "work", "--expires", "1ms"]);
    std::thread::sleep(std::time::Duration::from_millis(5));
    refused(&place, &["--listen", "0.0.0.0:0"], "NO_TOKENS");
}

#[test]
fn with_tokens_they_are_asked_for() {
    let place = StoreLocation::new();
    let secret = token(&place, "ci", "read");
    let server = Server::start_on(&place, &["--listen", "0.0.0.0:0"]);
    let port = server.address().rsplit_once(':').unwrap().1;
    let host = format!("127.0.0.1:{port}");
    let ask = |ask: crate::http::Ask| {
        crate::http::exchange(&mut crate::http::connect(&host), ask.text(&host).as_bytes())
    };
    assert_eq!(ask(get("/healthz")).status, 200);
    assert_eq!(ask(get("/v1/nothing")).status, 401);
    assert_eq!(ask(get("/v1/nothing").token(&secret)).status, 404);
}

#[test]
fn a_file_that_was_named_must_be_there_and_be_safe() {
    let place = StoreLocation::new();
    let named = place.path("named");
    let named = named.to_str().unwrap();
    refused(&place, &["--listen", "127.0.0.1:0", "--tokens", named], "NO_TOKENS");
    token(&place, "ci", "work");
    let file = token_file(&place);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    refused(&place, &["--listen", "127.0.0.1:0"], "TOKENS");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&file, "nonsense\n").unwrap();
    refused(&place, &["--listen", "127.0.0.1:0"], "TOKENS");
}

#[test]
fn what_cannot_be_listened_on_is_named() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    refused(&place, &["--listen", server.address()], "LISTEN");
    refused(&place, &["--listen", "nonsense"], "LISTEN");
    refused(&place, &["--listen", "127.0.0.1:99999"], "LISTEN");
    refused(&place, &["--listen", "127.0.0.1:0", "--host", "a b"], "HOST");
}

#[test]
fn several_addresses_lead_to_one_server() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--listen", "localhost:0"]);
    assert_eq!(server.listening.len(), 2);
    for address in &server.listening {
        let address = address.strip_prefix("http://").unwrap();
        let mut stream = crate::http::connect(address);
        let answer = crate::http::exchange(&mut stream, get("/readyz").text(address).as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[test]
fn a_store_in_memory_lives_with_its_server() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--store", "memory:"]);
    assert_eq!(server.ask(get("/readyz")).body, "ok\n");
}
