//! The log of a server: one JSON object per line, each request with the id that its answer has, and
//! no secrets.

use crate::http::{ask, get};
use crate::server::{Server, token};
use crate::support::{Signal, StoreLocation};
use serde_json::{Value, json};

/// The log of a server that ended, and all that it printed.
fn log_of(server: Server) -> (Vec<Value>, String) {
    server.signal(Signal::TERM);
    let ended = server.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let lines = ended.stderr.lines();
    let lines = lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
    (lines.collect(), ended.text())
}

fn of_request<'a>(log: &'a [Value], id: &str) -> Vec<&'a Value> {
    log.iter().filter(|line| line["span"]["request_id"] == id).collect()
}

#[test]
fn each_request_is_logged_with_the_id_in_its_answer() {
    let place = StoreLocation::new();
    let secret = token(&place, "ci", "work");
    let server = Server::start(&place, &["--log-format", "json"]);
    let given = server.ask(get("/v1/locks").token(&secret).header("X-Request-Id", "build-42"));
    assert_eq!(given.header("x-request-id"), Some("build-42"), "{given:?}");
    let harmful = "a b; rm -rf /";
    let answers = [
        get("/v1/locks").token(&secret),
        get("/v1/locks").token(&secret).header("X-Request-Id", harmful),
        get("/v1/locks"),
        get("/nothing").token(&secret),
        get("/healthz"),
        get("/v1/locks").token(&secret).header("Host", "evil.example"),
    ];
    let answers = answers.map(|asked| server.ask_as_given(asked));
    let ids: Vec<&str> = answers.iter().map(|it| it.header("x-request-id").unwrap()).collect();
    let (log, text) = log_of(server);
    let line = of_request(&log, "build-42")[0];
    let expected = json!({ "method": "GET", "path": "/v1/locks", "status": 200, "token": "ci" });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&line[field], value, "{line}");
    }
    assert_eq!((&line["level"], &line["message"]), (&json!("INFO"), &json!("request")), "{line}");
    assert!(line["duration_ms"].is_number() && line["timestamp"].is_string(), "{line}");
    for (id, answer) in ids.iter().zip(&answers) {
        let lines = of_request(&log, id);
        assert_eq!(lines.len(), 1, "{id} in {text}");
        assert_eq!(lines[0]["status"], answer.status, "{text}");
    }
    assert!(!text.contains(harmful), "{text}");
    for message in ["listening", "draining", "stopped"] {
        assert!(log.iter().any(|line| line["message"] == message), "no {message:?} in {text}");
    }
}

#[test]
fn no_secret_is_logged_in_any_format() {
    for format in ["json", "text"] {
        let place = StoreLocation::new();
        let (_, grant) = place.acquire(&["db", "--ttl", "10m"]);
        let secret = token(&place, "ci", "admin");
        let server = Server::start(&place, &["--log-format", format, "-v"]);
        let release = json!({ "grant": grant }).to_string();
        for asked in [
            get("/v1/locks").token(&secret),
            get(&format!("/v1/locks?token={secret}")).token(&secret),
            get(&format!("/{secret}")).token(&secret),
            get("/v1/locks").header("Authorization", &secret),
            get("/v1/locks").token(&secret).header("X-Request-Id", &secret),
            get(&format!("/v1/locks/verify?resource=db&grant={grant}")).token(&secret),
            get(&format!("http://user:{}@localhost/v1/locks", &secret[4..])).token(&secret),
            ask("POST", "/v1/locks/release").token(&secret).body(format!("{{{secret:?}")),
            ask("POST", "/v1/locks/release").token(&secret).body(release),
        ] {
            server.ask_as_given(asked);
        }
        server.signal(Signal::TERM);
        let ended = server.end();
        assert!(ended.stderr.contains("/v1/locks/release"), "{ended:?}");
        for hidden in [&secret[4..], grant.as_str()] {
            assert!(!ended.text().contains(hidden), "{hidden} in {ended:?}");
        }
    }
}

#[test]
fn without_a_log_only_trouble_is_told() {
    let place = StoreLocation::new();
    let secret = token(&place, "ci", "read");
    let server = Server::start(&place, &[]);
    server.ask(get("/v1/locks").token(&secret));
    server.signal(Signal::TERM);
    assert_eq!(server.end().stderr, "");
}
