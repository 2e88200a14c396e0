//! A server whose store is removed or replaced acknowledges nothing any more, and says so.

use crate::http::{Answer, ask, get};
use crate::server::Server;
use crate::support::{Engine, StoreLocation};

/// All that a store of a place consists of.
const PARTS: [&str; 5] = ["tenure.db", "tenure.db-wal", "tenure.db-shm", "tenure.db.side", "store"];

/// Moves the store from one folder of the place to another.
fn move_store(place: &StoreLocation, from: &str, to: &str) {
    std::fs::create_dir_all(place.path(to)).unwrap();
    for part in PARTS {
        let _ = std::fs::rename(place.path(from).join(part), place.path(to).join(part));
    }
}

fn add_task(server: &Server) -> Answer {
    server.ask(ask("POST", "/v1/tasks").body(r#"{"tasks":[{"title":"to be kept"}]}"#))
}

fn acquire(server: &Server) -> Answer {
    let body = r#"{"resources":["db"],"ttl_ms":600000,"as":"late"}"#;
    server.ask(ask("POST", "/v1/locks/acquire").body(body))
}

fn is_gone(what: &str, answer: &Answer) {
    assert_eq!((answer.status, answer.code().as_str()), (503, "STORE_GONE"), "{what}: {answer:?}");
}

/// Nothing that needs the store is answered, however often it is asked.
fn all_is_refused(server: &Server) {
    for _ in 0..30 {
        is_gone("a task", &add_task(server));
        is_gone("a lock", &acquire(server));
        is_gone("a look", &server.ask(get("/v1/locks")));
    }
    is_gone("readiness", &server.ask(get("/readyz")));
    is_gone("health", &server.ask(get("/healthz")));
}

#[test]
fn nothing_is_acknowledged_once_the_store_was_replaced() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let place = StoreLocation::with(engine);
        let server = Server::start(&place, &[]);
        assert_eq!(add_task(&server).status, 201);
        move_store(&place, ".", "removed");
        std::fs::remove_dir_all(place.path("removed")).unwrap();
        // It is made anew.
        place.json(&["init"]);
        place.acquire(&["db", "--ttl", "1h"]);
        all_is_refused(&server);
        server.stop();
        // A server that is started again uses what is there now.
        let server = Server::start(&place, &[]);
        assert_eq!(add_task(&server).status, 201);
        assert_eq!(acquire(&server).status, 409, "somebody else holds it in the new store");
        server.stop();
    }
}

#[test]
fn a_store_that_was_put_back_is_not_used_again() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let place = StoreLocation::with(engine);
        let server = Server::start(&place, &[]);
        assert_eq!(acquire(&server).status, 200);
        move_store(&place, ".", "aside");
        is_gone("a look meanwhile", &server.ask(get("/v1/locks")));
        move_store(&place, "aside", ".");
        all_is_refused(&server);
        server.stop();
    }
}
