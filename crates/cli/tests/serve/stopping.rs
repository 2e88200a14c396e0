//! A server ends when it is asked to, after what it was asked before.

use crate::http::{ask, get, read};
use crate::server::Server;
use crate::support::{Signal, StoreLocation};
use std::io::{Read, Write};

#[test]
fn a_request_in_flight_is_answered() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth"]);
    let body = r#"{"tasks":[{"title":"begun before the end"}]}"#;
    let text = ask("POST", "/v1/tasks").header("expect", "100-continue").body(body);
    let text = text.text(server.address());
    let (first, rest) = text.split_at(text.len() - 10);
    let mut stream = server.connect();
    stream.write_all(first.as_bytes()).unwrap();
    // It says so when it waits for the rest.
    let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut said = vec![0; go_on.len()];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(said, go_on, "{}", String::from_utf8_lossy(&said));
    server.signal(Signal::TERM);
    let gone = || std::net::TcpStream::connect(server.address()).is_err();
    crate::support::until("an end to new connections", || gone().then_some(()));
    stream.write_all(rest.as_bytes()).unwrap();
    let answer = read(&mut stream);
    assert_eq!(answer.status, 201, "{answer:?}");
    let ended = server.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(place.json(&["tasks", "list"])["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn whoever_waits_is_told_to_come_back() {
    let place = StoreLocation::new();
    place.acquire(&["db", "--ttl", "10m"]);
    let server = Server::start(&place, &["--no-auth", "--grace", "10m"]);
    let mut waiting =
        ["/v1/events?after=1000000&wait_ms=60000", "/v1/locks/wait?resource=db&wait_ms=60000"].map(
            |path| {
                let mut stream = server.connect();
                stream.write_all(get(path).text(server.address()).as_bytes()).unwrap();
                stream
            },
        );
    let mut page = server.connect();
    page.write_all(get("/v1/stream").text(server.address()).as_bytes()).unwrap();
    let mut begun = [0; 12];
    page.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    server.is_alive();
    // It would give them ten minutes.
    server.stop();
    for stream in &mut waiting {
        let answer = read(stream);
        assert!([200, 503].contains(&answer.status), "{answer:?}");
    }
    let mut rest = Vec::new();
    page.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "a stream that was cut off");
}

#[test]
fn idle_connections_do_not_keep_it() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth", "--grace", "10m"]);
    let _silent: Vec<_> = (0..10).map(|_| server.connect()).collect();
    let mut kept = server.connect();
    let text = get("/healthz").text(server.address()).replace("Connection: close\r\n", "");
    kept.write_all(text.as_bytes()).unwrap();
    let mut begun = [0; 12];
    kept.read_exact(&mut begun).unwrap();
    server.stop();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth", "--grace", "10m"]);
    let mut stream = server.connect();
    let text = ask("POST", "/v1/tasks").body("{}").text(server.address());
    stream.write_all(&text.as_bytes()[..text.len() - 1]).unwrap();
    server.is_alive();
    server.signal(Signal::INT);
    let gone = || std::net::TcpStream::connect(server.address()).is_err();
    crate::support::until("an end to new connections", || gone().then_some(()));
    server.stop();
}

#[test]
fn patience_has_an_end() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth", "--grace", "100ms"]);
    let mut stream = server.connect();
    let text = ask("POST", "/v1/tasks").body("{}").text(server.address());
    stream.write_all(&text.as_bytes()[..text.len() - 1]).unwrap();
    server.is_alive();
    server.stop();
}
