//! What is too large, or no HTTP at all, is refused, and the server goes on.

use crate::http::{ask, get};
use crate::server::Server;
use crate::support::StoreLocation;

const MIB: usize = 1024 * 1024;

#[test]
fn bodies() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth", "--max-body", "2097152"]);
    let long = format!("\"{}\"", "x".repeat(MIB));
    let longer = format!("\"{}\"", "x".repeat(2 * MIB));
    for (path, body) in [("/v1/locks/acquire", long), ("/v1/tasks", longer)] {
        let answer = server.ask(ask("POST", path).body(body));
        assert_eq!((answer.status, answer.code().as_str()), (413, "TOO_LARGE"), "{path}");
    }
    // One that only says how long it is, and one that does not end.
    let head = "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let head = head.replace("localhost", server.address());
    let lie = format!("{head}Content-Length: 99999999999\r\n\r\n");
    assert_eq!(server.send(lie.as_bytes()).status, 413);
    let chunk = format!("{:x}\r\n{}\r\n", MIB, "x".repeat(MIB));
    let endless = format!("{head}Transfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(4));
    let answer = server.send(endless.as_bytes());
    assert!((400..500).contains(&answer.status), "{answer:?}");
    server.is_alive();
}

#[test]
fn heads() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth"]);
    let long = get("/healthz").header("X-Long", &"x".repeat(100_000));
    assert_eq!(server.ask(long).status, 431);
    let many = (0..200).fold(get("/healthz"), |ask, n| ask.header(&format!("X-{n}"), "x"));
    assert_eq!(server.ask(many).status, 431);
    let path = server.ask(get(&format!("/{}", "x".repeat(100_000))));
    assert!([414, 431].contains(&path.status), "{path:?}");
    let token = get("/v1/locks").token(&"x".repeat(20_000));
    assert!(server.ask(token).status < 500);
    server.is_alive();
}

#[test]
fn what_is_no_http() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth"]);
    let own = server.address();
    for text in [
        "nonsense\r\n\r\n".to_owned(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nHost: {own}\r\nBad Header\r\n\r\n"),
        format!("POST /v1/tasks HTTP/1.1\r\nHost: {own}\r\nContent-Length: -1\r\n\r\n"),
        format!(
            "POST /v1/tasks HTTP/1.1\r\nHost: {own}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
        ),
    ] {
        let answer = server.send(text.as_bytes());
        assert!((400..500).contains(&answer.status), "{text:?}: {answer:?}");
    }
    server.is_alive();
}
