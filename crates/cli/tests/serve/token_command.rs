//! `tenure token`: shown once, listed without secrets, made by many at once.

use crate::http::ask;
use crate::server::{Server, token_file};
use crate::support::{Running, StoreLocation};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn names(place: &StoreLocation) -> Vec<String> {
    let tokens = place.json(&["token", "list"])["tokens"].clone();
    let name = |token: &Value| token["name"].as_str().unwrap().to_owned();
    tokens.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_secret_is_shown_once() {
    let place = StoreLocation::new();
    assert_eq!(place.run(&["token", "list"]).stdout, "No tokens\n");
    let made = place.run(&["token", "create", "ci", "--role", "work", "--expires", "90d"]);
    assert_eq!(made.code, 0, "{made:?}");
    let secret = made.stdout.trim();
    assert!(secret.starts_with("tnr_") && secret.len() == 68, "{made:?}");
    let file = token_file(&place);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = place.run(&["token", "list"]);
    assert!(listed.stdout.contains("ci") && listed.stdout.contains("work"), "{listed:?}");
    for text in [listed.text(), std::fs::read_to_string(&file).unwrap(), made.stderr.clone()] {
        assert!(!text.contains(&secret[4..]), "{text}");
    }
    assert_eq!(place.json(&["token", "list"])["tokens"][0]["expired"], false);
}

#[test]
fn a_token_can_be_limited_to_labels() {
    let place = StoreLocation::new();
    let limited = ["token", "create", "ops", "--role", "work", "--as", "alice", "--as", "ci-*"];
    let made = place.run(&limited);
    assert_eq!(made.code, 0, "{made:?}");
    let listed = place.json(&["token", "list"])["tokens"][0]["as"].clone();
    assert_eq!(listed, serde_json::json!(["alice", "ci-*"]));
    let server = Server::start(&place, &[]);
    let acquire = |label: &str| {
        let body = format!(r#"{{"resources":["x"],"as":"{label}"}}"#);
        let ask = ask("POST", "/v1/locks/acquire").body(&body).token(made.stdout.trim());
        server.ask(ask)
    };
    let refused = acquire("bob");
    assert_eq!((refused.status, refused.code().as_str()), (403, "FORBIDDEN"), "{refused:?}");
    assert!(refused.body.contains("alice, ci-*"), "{refused:?}");
    assert_eq!(acquire("ci-7").status, 200);
    // Elsewhere a second label is a mistake.
    assert_eq!(place.run(&["status", "--as", "a", "--as", "b"]).code, 2);
}

#[test]
fn mistakes_are_told_apart() {
    let place = StoreLocation::new();
    let code = |arguments: &[&str]| place.run(&[&["token"], arguments].concat()).code;
    assert_eq!(code(&["create", "ci", "--role", "owner"]), 2);
    assert_eq!(code(&["create", "ci"]), 2);
    assert_eq!(code(&["create", "a b", "--role", "work"]), 2);
    assert_eq!(code(&["revoke", "ci"]), 4);
    assert_eq!(code(&["create", "ci", "--role", "work"]), 0);
    assert_eq!(code(&["create", "ci", "--role", "work"]), 1);
    assert_eq!(code(&["revoke", "ci"]), 0);
    assert_eq!(names(&place), [""; 0]);
}

#[test]
fn many_at_once_lose_nothing() {
    let place = StoreLocation::new();
    let start = |n| {
        let name = format!("t{n:02}");
        place.start(&["token", "create", &name, "--role", "read"])
    };
    let running: Vec<Running> = (0..24).map(start).collect();
    for running in running {
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let mut names = names(&place);
    names.sort();
    assert_eq!(names, (0..24).map(|n| format!("t{n:02}")).collect::<Vec<_>>());
}

#[test]
fn the_file_may_be_anywhere() {
    let place = StoreLocation::new();
    let file = place.path("elsewhere");
    let file = file.to_str().unwrap();
    place.json(&["token", "create", "ci", "--role", "read", "--file", file]);
    assert!(!token_file(&place).exists());
    assert_eq!(place.json(&["token", "list", "--file", file])["tokens"][0]["role"], "read");
}

/// The default store's tokens lie in its folder, which ignores itself.
#[test]
fn tokens_lie_beside_the_default_store() {
    let place = StoreLocation::new();
    std::fs::create_dir(place.path("project")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = place.command(crate::support::TENURE);
        command.current_dir(place.path("project")).args(arguments);
        let ended = Running::start(command).end();
        assert_eq!(ended.code, 0, "{ended:?}");
    };
    run(&["init"]);
    run(&["token", "create", "ci", "--role", "work"]);
    assert!(place.path("project/.tenure/tokens").exists());
}
