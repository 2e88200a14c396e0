//! All that a server answers, and what each needs.

use crate::http::{Ask, ask};

/// Something that can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    /// Which role it needs; none: anybody may ask.
    pub needs: Option<&'static str>,
    /// What makes sense to it.
    pub body: Option<&'static str>,
}

impl Route {
    /// How it is asked for.
    pub fn ask(&self) -> Ask {
        let ask = ask(self.method, self.path);
        let ask = ask.header("Accept", "application/json, text/event-stream");
        let ask = ask.header(
            tenure::server_support::wire::PROTOCOL,
            tenure::server_support::wire::PROTOCOL_VERSION,
        );
        match self.body {
            Some(body) => ask.body(body),
            None => ask,
        }
    }
}

const fn open(method: &'static str, path: &'static str) -> Route {
    Route { method, path, needs: None, body: None }
}

const fn read(path: &'static str) -> Route {
    Route { method: "GET", path, needs: Some("read"), body: None }
}

const fn work(path: &'static str, body: &'static str) -> Route {
    Route { method: "POST", path, needs: Some("work"), body: Some(body) }
}

const fn admin(method: &'static str, path: &'static str, body: Option<&'static str>) -> Route {
    Route { method, path, needs: Some("admin"), body }
}

/// What tenure's own clients ask for; the body is not what belongs there.
const fn of_clients(path: &'static str, needs: &'static str) -> Route {
    Route { method: "POST", path, needs: Some(needs), body: Some("{}") }
}

/// What tenure's own clients ask for, where the body decides what it needs.
const fn of_clients_by_body(path: &'static str, needs: &'static str, body: &'static str) -> Route {
    Route { method: "POST", path, needs: Some(needs), body: Some(body) }
}

/// Removes old events.
const TRIM: &str = r#"{"trim":{"keep":{"newest":1},"limit":1,"dry_run":false}}"#;

/// A wait for a turn, of a request that waits for nothing.
const TURN: &str =
    r#"{"signal":{"turn":{"grant":"00000000-0000-0000-0000-000000000001"}},"patience_ms":1}"#;

const PROOF: &str = r#"{"as":"w"}"#;

/// How an agent begins.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":
{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// All of them. Names and ids are made up.
pub const ROUTES: &[Route] = &[
    open("GET", "/healthz"),
    open("GET", "/readyz"),
    open("GET", "/"),
    open("GET", "/assets/page.js"),
    open("GET", "/favicon.ico"),
    open("GET", "/favicon.svg"),
    read("/metrics"),
    read("/v1/openapi.json"),
    read("/v1/snapshot"),
    read("/v1/stream"),
    read("/v1/locks"),
    read("/v1/locks/show?resource=db"),
    read("/v1/locks/verify?resource=db&token=1"),
    read("/v1/locks/wait?resource=db&wait_ms=0"),
    work("/v1/locks/acquire", r#"{"resources":["db"],"ttl_ms":1000}"#),
    work("/v1/locks/renew", PROOF),
    work("/v1/locks/release", PROOF),
    admin("POST", "/v1/locks/break", Some(r#"{"resource":"db","token":1,"reason":"test"}"#)),
    admin("POST", "/v1/locks/cleanup", Some("{}")),
    read("/v1/tasks"),
    read("/v1/tallies"),
    read("/v1/tasks/t1"),
    read("/v1/tasks/t1/why"),
    read("/v1/tasks/t1/log"),
    work("/v1/tasks", r#"{"tasks":[{"title":"x"}]}"#),
    admin("PATCH", "/v1/tasks/t1", Some(r#"{"title":"x"}"#)),
    admin("DELETE", "/v1/tasks/t1", None),
    work("/v1/tasks/claim", PROOF),
    work("/v1/tasks/t1/start", PROOF),
    work("/v1/tasks/t1/heartbeat", PROOF),
    work("/v1/tasks/t1/complete", PROOF),
    work("/v1/tasks/t1/fail", r#"{"as":"w","reason":"x"}"#),
    read("/v1/tasks/t1/graph"),
    work("/v1/tasks/t1/review", PROOF),
    work("/v1/tasks/t1/notes", r#"{"text":"x"}"#),
    work("/v1/tasks/t1/snooze", r#"{"as":"w","pause_ms":1000}"#),
    work("/v1/tasks/t1/release", PROOF),
    admin("POST", "/v1/tasks/t1/cancel", Some("{}")),
    admin("POST", "/v1/tasks/t1/skip", Some("{}")),
    admin("POST", "/v1/tasks/t1/retry", Some("{}")),
    work("/v1/tasks/t1/approve", "{}"),
    work("/v1/tasks/t1/reject", "{}"),
    read("/v1/sections"),
    admin("PUT", "/v1/sections/s1", Some("{}")),
    admin("POST", "/v1/sections/s1/pause", Some("{}")),
    admin("POST", "/v1/sections/s1/resume", Some("{}")),
    read("/v1/workers"),
    read("/v1/events"),
    read("/v1/rates"),
    Route { method: "POST", path: "/mcp", needs: Some("read"), body: Some(INITIALIZE) },
    Route { method: "DELETE", path: "/mcp", needs: Some("read"), body: None },
    read("/mcp"),
    of_clients("/v1/store/query", "read"),
    of_clients("/v1/store/wait", "read"),
    of_clients("/v1/store/maintain", "read"),
    of_clients_by_body("/v1/store/wait", "work", TURN),
    of_clients_by_body("/v1/store/maintain", "admin", "\"tidy\""),
    of_clients_by_body("/v1/store/maintain", "admin", TRIM),
    of_clients("/v1/store/collect", "admin"),
    of_clients("/v1/store/renew", "work"),
    of_clients("/v1/store/renew-covered", "work"),
    of_clients("/v1/store/act/acquire", "work"),
    of_clients("/v1/store/act/leave", "work"),
    of_clients("/v1/store/act/release", "work"),
    of_clients("/v1/store/act/add", "work"),
    of_clients("/v1/store/act/import", "work"),
    of_clients("/v1/store/act/claim", "work"),
    of_clients("/v1/store/act/recover", "work"),
    of_clients("/v1/store/act/leave_idle_sections", "work"),
    of_clients("/v1/store/act/finish", "work"),
    of_clients("/v1/store/act/finish_all", "work"),
    of_clients("/v1/store/act/start", "work"),
    of_clients("/v1/store/act/edit", "work"),
    of_clients("/v1/store/act/break", "admin"),
    of_clients("/v1/store/act/reap", "admin"),
    of_clients("/v1/store/act/delete", "admin"),
    of_clients("/v1/store/act/put_section", "admin"),
    of_clients("/v1/store/act/change_sections", "admin"),
];
