//! Agents over HTTP whose server is restarted: they go on with what they hold.

use crate::sdk::{needs, script};
use crate::server::Server;
use crate::support::{Running, StoreLocation};

fn an_agent_goes_on(mode: &str, end: impl FnOnce(&mut Server<'_>)) {
    let place = StoreLocation::new();
    let mut server = Server::start_without_token(&place);
    let mut command = place.command(needs("venv/bin/python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let folder = place.path("");
    command.arg(script("restart.py")).arg(mode).arg(format!("{}/mcp", server.url())).arg(&folder);
    let agent = Running::start(command);
    place.wait_for("held");
    end(&mut server);
    server.restart();
    place.touch("restarted");
    let ended = agent.end();
    assert_eq!((ended.code, ended.stdout.trim()), (0, "fine"), "{ended:?}");
    let task = place.json(&["tasks", "show", "build"])["task"].clone();
    assert_eq!((&task["status"], &task["attempts"]), (&"completed".into(), &1.into()), "{task}");
    assert_eq!(place.json(&["locks"])["locks"], serde_json::json!([]));
}

#[test]
fn a_session_outlives_a_server_that_is_killed() {
    an_agent_goes_on("legacy", |server| server.kill());
}

#[test]
fn a_session_outlives_a_server_that_is_stopped() {
    an_agent_goes_on("legacy", |server| server.stop());
}

#[test]
fn a_named_session_outlives_a_server_that_is_killed() {
    an_agent_goes_on("auto", |server| server.kill());
}
