//! Pages of others cannot make a browser ask, not even where no token is needed.

use crate::http::{ask, get};
use crate::server::Server;
use crate::support::StoreLocation;

#[test]
fn a_foreign_name_is_not_answered() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth"]);
    let port = server.address().rsplit_once(':').unwrap().1.to_owned();
    for path in ["/", "/healthz", "/v1/snapshot", "/mcp", "/metrics"] {
        for host in ["evil.example", &format!("evil.example:{port}"), "localhost:1"] {
            let answer = server.ask(get(path).header("Host", host));
            assert_eq!((answer.status, answer.code().as_str()), (421, "HOST"), "{path} {host}");
        }
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}")] {
        assert_eq!(server.ask(get("/healthz").header("Host", &host)).status, 200);
    }
    let bare = server.send(b"GET /healthz HTTP/1.0\r\n\r\n".as_slice());
    assert_eq!(bare.status, 421, "{bare:?}");
}

#[test]
fn a_foreign_page_is_not_answered() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth", "--host", "locks.example.org"]);
    for origin in ["http://evil.example", "null", "http://localhost:1", "https://locks.example"] {
        for method in ["GET", "POST", "OPTIONS"] {
            let answer = server.ask(ask(method, "/v1/locks/break").header("Origin", origin));
            assert_eq!((answer.status, answer.code().as_str()), (403, "ORIGIN"), "{origin}");
        }
    }
    for site in ["cross-site", "same-site"] {
        let page = ask("POST", "/v1/locks/break").header("Sec-Fetch-Site", site);
        assert_eq!(server.ask(page).code(), "ORIGIN");
        let image = get("/v1/locks").header("Sec-Fetch-Site", site);
        assert_eq!(server.ask(image).code(), "ORIGIN");
        let link = get("/").header("Sec-Fetch-Site", site).header("Sec-Fetch-Mode", "navigate");
        assert_eq!(server.ask(link).status, 200);
    }
    let own = format!("http://{}", server.address());
    let given = get("/healthz").header("Host", "locks.example.org");
    for fine in [get("/healthz").header("Origin", &own), given] {
        assert_eq!(server.ask(fine).status, 200);
    }
}

#[test]
fn no_answer_invites_other_sites() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth"]);
    let own = format!("http://{}", server.address());
    let preflight = ask("OPTIONS", "/v1/locks")
        .header("Origin", &own)
        .header("Access-Control-Request-Method", "POST");
    for asked in [get("/healthz"), get("/nothing"), get("/").header("Origin", &own), preflight] {
        let answer = server.ask(asked);
        let head = answer.head.to_ascii_lowercase();
        assert!(!head.contains("access-control"), "{answer:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
    }
}
