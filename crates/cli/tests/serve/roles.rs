//! Every route without a token, with a wrong one, and with one that is too weak.

use crate::http::{Ask, get};
use crate::routes::{ROUTES, Route};
use crate::server::{Server, token, token_file};
use crate::support::{Signal, StoreLocation, until};
use serde_json::Value;

const ROLES: [&str; 3] = ["read", "work", "admin"];

/// How one would ask with a secret that is not known, in all forms.
fn with_wrong_tokens(ask: &Ask, good: &str) -> Vec<Ask> {
    let header = |value: &str| ask.clone().header("Authorization", value);
    vec![
        ask.clone().token("tnr_0000"),
        ask.clone().token(&good[..good.len() - 1]),
        ask.clone().token(&format!("{good}0")),
        ask.clone().token(&good.to_ascii_uppercase()),
        header(&format!("Basic {good}")),
        header(good),
        header("Bearer"),
        header("Bearer "),
        header(&format!("Bearer {good} {good}")),
        header("Bearer x").header("Authorization", &format!("Bearer {good}")),
        Ask { path: format!("{}?token={good}&access_token={good}", ask.path), ..ask.clone() },
        ask.clone().header("Cookie", &format!("token={good}")),
    ]
}

#[test]
fn every_route_asks_for_a_token_that_counts() {
    let place = StoreLocation::new();
    let good = token(&place, "good", "admin");
    let server = Server::start(&place, &[]);
    for route in ROUTES {
        let answer = server.ask(route.ask());
        if route.needs.is_none() {
            assert!([200, 404].contains(&answer.status), "{route:?}: {answer:?}");
            continue;
        }
        assert_eq!((answer.status, answer.code().as_str()), (401, "UNAUTHORIZED"), "{route:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{route:?}");
        for wrong in with_wrong_tokens(&route.ask(), &good) {
            let answer = server.ask(wrong);
            assert_eq!((answer.status, answer.code().as_str()), (401, "UNAUTHORIZED"), "{route:?}");
            assert!(!answer.body.contains(&good[4..]), "{answer:?}");
        }
    }
    // Nor is it told what else there is.
    for path in ["/v1", "/v1/nothing", "/mcp", "/.tenure/tokens", "//", "/assets", "/v1/store/x"] {
        assert_eq!(server.ask(get(path)).status, 401, "{path}");
    }
}

#[test]
fn every_route_asks_for_its_role() {
    let place = StoreLocation::new();
    let secrets = ROLES.map(|role| token(&place, role, role));
    let server = Server::start(&place, &[]);
    for route in ROUTES {
        let Some(needs) = route.needs else { continue };
        let enough = ROLES.iter().position(|role| *role == needs).unwrap();
        for (role, secret) in secrets.iter().enumerate() {
            // A stream would not end.
            if route.path == "/v1/stream" {
                continue;
            }
            let answer = server.ask(route.ask().token(secret));
            let what = format!("{route:?} as {}: {answer:?}", ROLES[role]);
            match role < enough {
                true => assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (403, "FORBIDDEN"),
                    "{what}"
                ),
                false => {
                    assert!(![401, 403].contains(&answer.status) && answer.status < 500, "{what}")
                }
            }
        }
    }
}

/// A route that nobody thought of here would not be tried.
#[test]
fn every_route_of_the_document_is_tried() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let document = server.ask(get("/v1/openapi.json")).json();
    let paths = document["paths"].as_object().expect("paths");
    let tried = |method: &str, path: &str| {
        let same = |route: &Route| route.method == method && fits(path, route.path);
        assert!(ROUTES.iter().any(same), "{method} {path} is not tried");
    };
    for (path, item) in paths {
        let methods = item.as_object().expect("methods").keys();
        for method in methods.map(|method| method.to_ascii_uppercase()) {
            if ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str()) {
                tried(&method, path);
            }
        }
    }
}

/// Whether a path of the document, with names in braces, is that of a route.
fn fits(pattern: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    let same = |(one, other): (&&str, &&str)| one == other || one.starts_with('{');
    pattern.len() == path.len() && pattern.iter().zip(&path).all(same)
}

#[test]
fn what_is_revoked_does_not_count_any_more() {
    let place = StoreLocation::new();
    let (one, other) = (token(&place, "one", "read"), token(&place, "other", "read"));
    let server = Server::start(&place, &[]);
    let status = |secret: &str| server.ask(get("/v1/nothing").token(secret)).status;
    assert_eq!((status(&one), status(&other)), (404, 404));
    place.json(&["token", "revoke", "one"]);
    until("the end of the token", || (status(&one) == 401).then_some(()));
    assert_eq!(status(&other), 404);
    let new = token(&place, "new", "read");
    until("the new token", || (status(&new) == 404).then_some(()));
    std::fs::remove_file(token_file(&place)).unwrap();
    until("the end of all tokens", || (status(&other) == 401).then_some(()));
    assert_eq!(server.ask(get("/v1/nothing")).status, 401);
}

#[test]
fn secrets_are_not_told_to_the_log() {
    let place = StoreLocation::new();
    let secret = token(&place, "ci", "admin");
    let server = Server::start(&place, &["--log", "-v"]);
    for asked in [
        get("/v1/nothing").token(&secret),
        get(&format!("/v1/nothing?token={secret}")),
        get("/v1/nothing").header("Authorization", &secret),
        get("/v1/nothing").header("Cookie", &secret),
        crate::http::ask("POST", "/v1/nothing").token(&secret).body(format!("{secret:?}")),
    ] {
        server.ask(asked);
    }
    server.signal(Signal::TERM);
    let ended = server.end();
    assert!(ended.stderr.contains("method=GET path=/v1/nothing status=404 "), "{ended:?}");
    assert!(ended.stderr.contains(" token=ci\n"), "{ended:?}");
    assert!(!ended.stderr.contains(&secret[4..]), "{ended:?}");
    let listed = place.run(&["token", "list", "--json"]);
    let data: Value = listed.json();
    assert_eq!(data["data"]["tokens"][0]["name"], "ci");
    assert!(!listed.text().contains(&secret[4..]) && !listed.text().contains("sha256"));
}
