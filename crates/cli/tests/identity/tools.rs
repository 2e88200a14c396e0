//! The MCP server of an agent is the same owner as its shell.

use crate::agent::Agent;
use crate::support::StoreLocation;
use crate::{end, holders, program, shell};
use serde_json::json;
use std::process::Command;

fn in_session(mut command: Command) -> Command {
    command.env("CLAUDE_CODE_SESSION_ID", "s-1");
    command
}

fn server(place: &StoreLocation) -> Agent {
    Agent::speak(in_session(shell(place, &place.url(), r#""$T" mcp"#)))
}

fn in_shell(place: &StoreLocation, script: &str) -> String {
    end(in_session(shell(place, &place.url(), &format!("set -e\n{script}")))).stdout
}

#[test]
fn locks_of_the_shell_are_the_tools_and_the_reverse() {
    let place = StoreLocation::new();
    let mut agent = server(&place);
    in_shell(&place, r#""$T" acquire deploy 'path:src/**' -q >/dev/null"#);
    let again = agent.call("acquire_lock", json!({ "resources": ["path:src/a.rs"] }));
    assert_eq!(again["reason"], "already_owned", "{again}");
    let alive = agent.call("heartbeat", json!({}));
    assert_eq!(alive["holding"].as_array().unwrap().len(), 2, "{alive}");
    agent.call("acquire_lock", json!({ "resources": ["db"] }));
    assert_eq!(holders(&place), [alive["agent"].as_str().unwrap()]);
    in_shell(&place, r#""$T" release db; "$T" mine | grep -q deploy"#);
    let released = agent.call("release_lock", json!({ "resources": ["deploy"] }));
    assert_eq!(released["released"], json!(["deploy"]), "{released}");
    // The end of the server ends what it took itself, not what the shell took.
    agent.call("acquire_lock", json!({ "resources": ["db"] }));
    agent.hang_up();
    assert_eq!(agent.exit_code(), Some(0));
    assert!(in_shell(&place, r#""$T" mine"#).contains("path:src/**"));
    assert_eq!(place.run(&["acquire", "-n", "db"]).code, 0);
}

#[test]
fn a_task_is_claimed_by_one_face_and_finished_by_the_other() {
    let place = StoreLocation::new();
    let mut agent = server(&place);
    let add = r#"for t in a b c; do "$T" tasks add $t --id $t --section S >/dev/null; done"#;
    in_shell(&place, add);
    in_shell(&place, r#""$T" tasks claim a -q >/dev/null"#);
    let done = agent.call("complete_task", json!({ "task_id": "a" }));
    assert_eq!(done["status"], "completed", "{done}");
    let claimed = agent.call("claim_task", json!({ "task_id": "b" }));
    assert_eq!(claimed["success"], true, "{claimed}");
    let again = agent.call("claim_task", json!({ "task_id": "b" }));
    assert_eq!(
        (&again["success"], &again["task"]["attempts"]),
        (&json!(true), &json!(1)),
        "{again}"
    );
    in_shell(&place, r#""$T" tasks complete b"#);
    in_shell(&place, r#""$T" tasks claim c -q >/dev/null"#);
    let task = place.json(&["tasks", "show", "c"]);
    // Another agent has no part in it.
    let mut other = Agent::speak(shell(&place, &place.url(), r#""$T" mcp"#));
    assert_eq!(other.call("complete_task", json!({ "task_id": "c" }))["success"], false, "{task}");
    assert_eq!(agent.call("fail_task", json!({ "task_id": "c", "error": "no" }))["success"], true);
}

#[test]
fn a_server_that_was_told_no_session_goes_by_the_one_that_its_program_named_elsewhere() {
    let place = StoreLocation::new();
    let script = r#"
        sh -c 'CODEX_THREAD_ID=t-1 "$T" acquire deploy -q >/dev/null; true'
        "$T" mcp"#;
    let mut agent = Agent::speak(program(&place, "codex", script));
    let alive = agent.call("heartbeat", json!({}));
    assert_eq!(alive["holding"][0]["resource"], "deploy", "{alive}");
    let label = alive["agent"].as_str().unwrap().to_owned();
    assert!(label.starts_with("codex-"), "{label}");
    assert_eq!(holders(&place), [label]);
}

#[test]
fn a_name_of_the_command_line_is_no_owner() {
    let place = StoreLocation::new();
    let start = || Agent::speak(shell(&place, &place.url(), r#""$T" mcp --as reviewer"#));
    let (mut one, mut two) = (start(), start());
    assert_eq!(one.call("acquire_lock", json!({ "resources": ["x"] }))["success"], true);
    assert_eq!(two.call("acquire_lock", json!({ "resources": ["x"] }))["success"], false);
}

#[test]
fn tools_never_wait_for_what_the_command_around_their_agent_holds() {
    let place = StoreLocation::new();
    place.run(&["tasks", "add", "T", "--id", "t", "--section", "S"]);
    let script = r#""$T" run x section:S -- "$T" mcp"#;
    let mut agent = Agent::speak(shell(&place, &place.url(), script));
    let lock = json!({ "resources": ["x"], "wait_seconds": 3600 });
    let held = agent.call("acquire_lock", lock);
    assert_eq!(held["reason"], "already_owned", "{held}");
    let claimed = agent.call("claim_task", json!({ "section": "S", "wait_seconds": 3600 }));
    assert_eq!(claimed["task"]["id"], "t", "{claimed}");
    // What the command holds is not the agent's to give back.
    agent.call("release_lock", json!({}));
    assert_eq!(place.run(&["acquire", "-n", "x"]).code, 6);
    agent.hang_up();
    assert_eq!(agent.exit_code(), Some(0));
    assert_eq!(place.run(&["acquire", "-n", "x"]).code, 0);
}
