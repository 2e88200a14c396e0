//! To which names a server answers, and whose pages may ask it.

use crate::http::hosts::{Host, Hosts};
use crate::http::peer::Peer;
use axum::http::{HeaderMap, HeaderName, Method, Uri};

fn peer(local: &str, tls: bool) -> Peer {
    Peer::Tcp { remote: "203.0.113.9:5000".parse().unwrap(), local: local.parse().unwrap(), tls }
}

fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        headers.append(HeaderName::from_static(name), value.parse().unwrap());
    }
    headers
}

/// The code of the refusal, if it is refused.
fn code(
    peer: &Peer,
    method: Method,
    uri: &str,
    list: &[(&'static str, &str)],
) -> Option<&'static str> {
    let given =
        ["locks.example.org", "proxy.example.org:8443"].map(|name| Host::parse(name).unwrap());
    let hosts = Hosts::new(given.into());
    let uri: Uri = uri.parse().unwrap();
    hosts.check(peer, &method, &uri, &headers(list)).err().map(|problem| problem.code)
}

fn host(peer: &Peer, host: &str) -> Option<&'static str> {
    code(peer, Method::GET, "/", &[("host", host)])
}

#[test]
fn own_names_are_answered() {
    let loopback = peer("127.0.0.1:7070", false);
    for name in [
        "127.0.0.1:7070",
        "localhost:7070",
        "LocalHost.:7070",
        "[::1]:7070",
        "locks.example.org",
        "locks.example.org:1234",
        "Proxy.Example.Org:8443",
    ] {
        assert_eq!(host(&loopback, name), None, "{name}");
    }
    assert_eq!(host(&peer("192.0.2.7:7070", false), "192.0.2.7:7070"), None);
    assert_eq!(host(&peer("[::ffff:192.0.2.7]:7070", false), "192.0.2.7:7070"), None);
    assert_eq!(host(&peer("[2001:db8::1]:7070", false), "[2001:db8::1]:7070"), None);
    assert_eq!(host(&peer("127.0.0.1:80", false), "localhost"), None);
    assert_eq!(host(&peer("127.0.0.1:443", true), "localhost"), None);
}

#[test]
fn foreign_names_are_not() {
    let loopback = peer("127.0.0.1:7070", false);
    for name in [
        "evil.example",
        "evil.example:7070",
        "localhost",
        "localhost:7071",
        "localhost.evil.example:7070",
        "127.0.0.1.evil.example:7070",
        "192.0.2.7:7070",
        "proxy.example.org",
        "proxy.example.org:7070",
        "user@localhost:7070",
        "localhost:7070:7070",
        "localhost:",
        "[::1]7070",
        "[localhost]:7070",
        "0x7f.1:7070",
        "",
    ] {
        assert_eq!(host(&loopback, name), Some("HOST"), "{name}");
    }
    assert_eq!(code(&loopback, Method::GET, "/", &[]), Some("HOST"));
    let twice = [("host", "localhost:7070"), ("host", "evil.example")];
    assert_eq!(code(&loopback, Method::GET, "/", &twice), Some("HOST"));
    let uri = "http://evil.example/";
    assert_eq!(code(&loopback, Method::GET, uri, &[("host", "localhost:7070")]), Some("HOST"));
}

#[test]
fn only_own_pages_may_ask() {
    let loopback = peer("127.0.0.1:7070", false);
    let origin = |origin| {
        code(&loopback, Method::GET, "/", &[("host", "localhost:7070"), ("origin", origin)])
    };
    for own in ["http://localhost:7070", "http://127.0.0.1:7070", "https://locks.example.org"] {
        assert_eq!(origin(own), None, "{own}");
    }
    for foreign in [
        "http://evil.example",
        "http://localhost:3000",
        "http://localhost",
        "null",
        "",
        "chrome-extension://abcdef",
        "file://",
        "http://localhost:7070.evil.example",
        "http://localhost:7070/",
    ] {
        assert_eq!(origin(foreign), Some("ORIGIN"), "{foreign}");
    }
}

#[test]
fn foreign_sites_may_only_link_here() {
    for peer in [peer("127.0.0.1:7070", false), Peer::Unix { user: None }] {
        let ask = |method, site, mode| {
            let mode = ("sec-fetch-mode", mode);
            code(&peer, method, "/", &[("host", "localhost:7070"), ("sec-fetch-site", site), mode])
        };
        assert_eq!(ask(Method::POST, "cross-site", "no-cors"), Some("ORIGIN"));
        assert_eq!(ask(Method::POST, "cross-site", "navigate"), Some("ORIGIN"));
        assert_eq!(ask(Method::GET, "cross-site", "no-cors"), Some("ORIGIN"));
        assert_eq!(ask(Method::GET, "cross-site", "navigate"), None);
        assert_eq!(ask(Method::POST, "same-origin", "cors"), None);
        assert_eq!(ask(Method::POST, "none", "cors"), None);
    }
}

#[test]
fn whoever_may_open_the_socket_may_call_it_anything() {
    assert_eq!(host(&Peer::Unix { user: None }, "anything"), None);
    assert_eq!(code(&Peer::Unix { user: None }, Method::GET, "/", &[]), None);
}
