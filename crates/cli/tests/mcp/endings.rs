//! How sessions end: politely, by a signal, by a kill. Others then get what they held.

use crate::agent::Agent;
use crate::server::Server;
use crate::support::{Signal, StoreLocation, until};
use serde_json::json;

/// Takes a lock and a task, which its end is to free.
fn holder(place: &StoreLocation) -> Agent {
    let mut agent = Agent::start(place);
    agent.call("create_task", json!({ "id": "build", "description": "Build it" }));
    assert_eq!(agent.call("claim_task", json!({}))["task"]["id"], "build");
    assert_eq!(agent.call("acquire_lock", json!({ "resources": ["deploy"] }))["success"], true);
    agent
}

/// Waits for the lock of a holder that is about to end.
fn waiter(place: &StoreLocation) -> (Agent, u64) {
    let mut agent = Agent::start(place);
    let arguments = json!({ "resources": ["deploy"], "wait_seconds": 600 });
    let id = agent.begin("acquire_lock", arguments);
    assert!(agent.progress().contains("held by by-hand/"));
    (agent, id)
}

#[test]
fn an_agent_that_hangs_up_gives_all_back() {
    let place = StoreLocation::new();
    let mut holder = holder(&place);
    let (mut waiter, id) = waiter(&place);
    holder.hang_up();
    assert_eq!(waiter.end(id)["reason"], "acquired_new");
    assert_eq!(holder.exit_code(), Some(0));
    let task = waiter.call("claim_task", json!({ "wait_seconds": 600 }))["task"].clone();
    assert_eq!((&task["id"], &task["attempts"]), (&json!("build"), &json!(1)), "{task}");
}

#[test]
fn a_server_that_is_asked_to_end_gives_all_back() {
    let place = StoreLocation::new();
    let holder = holder(&place);
    let (mut waiter, id) = waiter(&place);
    holder.signal(Signal::TERM);
    assert_eq!(holder.exit_code(), Some(0));
    assert_eq!(waiter.end(id)["reason"], "acquired_new");
    let task = waiter.call("claim_task", json!({ "wait_seconds": 600 }))["task"].clone();
    assert_eq!((&task["id"], &task["attempts"]), (&json!("build"), &json!(1)), "{task}");
}

#[test]
fn a_server_that_is_killed_is_replaced_long_before_its_leases_lapse() {
    let place = StoreLocation::new();
    let holder = holder(&place);
    let (mut waiter, id) = waiter(&place);
    holder.signal(Signal::KILL);
    assert_eq!(waiter.end(id)["reason"], "claimed_dead");
    let task = waiter.call("claim_task", json!({ "wait_seconds": 600 }))["task"].clone();
    assert_eq!((&task["id"], &task["recoveries"]), (&json!("build"), &json!(1)), "{task}");
}

#[test]
fn an_agent_that_goes_while_it_waits_leaves_the_queue() {
    let place = StoreLocation::new();
    let mut holder = holder(&place);
    let (mut waiter, _) = waiter(&place);
    waiter.hang_up();
    assert_eq!(waiter.exit_code(), Some(0));
    let seen = holder.call("who_holds", json!({ "resources": ["deploy"] }));
    assert_eq!(seen["waiting"], json!([]), "{seen}");
}

#[test]
fn a_cancelled_wait_is_not_answered_and_leaves_the_queue() {
    let place = StoreLocation::new();
    let mut holder = holder(&place);
    let (mut waiter, id) = waiter(&place);
    waiter.cancel(id);
    until("an empty queue", || {
        (holder.call("who_holds", json!({}))["waiting"] == json!([])).then_some(())
    });
    // The session goes on.
    assert_eq!(waiter.call("heartbeat", json!({}))["holding"], json!([]));
}

#[test]
fn two_sessions_of_one_name_share_nothing() {
    let place = StoreLocation::new();
    let mut one = holder(&place);
    let mut other = Agent::start(&place);
    for agent in [&mut one, &mut other] {
        agent.call("heartbeat", json!({ "agent_id": "alice" }));
    }
    let name = json!("alice");
    let denied = [
        ("acquire_lock", json!({ "resources": ["deploy"], "agent_id": name })),
        ("release_lock", json!({ "resources": ["deploy"], "agent_id": name })),
        ("claim_task", json!({ "task_id": "build", "agent_id": name })),
        ("complete_task", json!({ "task_id": "build", "agent_id": name })),
        ("release_lock", json!({ "resources": ["task:build"], "agent_id": name })),
    ];
    for (tool, arguments) in denied {
        let answer = other.call(tool, arguments);
        assert_eq!(answer["success"], false, "{tool}: {answer}");
    }
    let seen = one.call("who_holds", json!({}));
    let yours = seen["holds"].as_array().expect("holds").iter().all(|hold| hold["yours"] == true);
    assert!(yours, "{seen}");
}

#[test]
fn an_agent_knows_its_own_through_a_server() {
    let place = StoreLocation::new();
    let server = Server::start(&place);
    let mut agent = Agent::speak(server.tenure(&["mcp"]));
    let mut other = holder(&place);
    assert_eq!(agent.call("acquire_lock", json!({ "resources": ["mine"] }))["success"], true);
    let seen = agent.call("who_holds", json!({}));
    let holds = seen["holds"].as_array().expect("holds");
    let yours = holds.iter().filter(|hold| hold["yours"] == true);
    let yours: Vec<&str> = yours.filter_map(|hold| hold["resource"].as_str()).collect();
    assert_eq!(yours, ["mine"], "{seen}");
    let beat = agent.call("heartbeat", json!({}));
    assert_eq!(beat["holding"].as_array().map(Vec::len), Some(1), "{beat}");
    let both = agent.call("acquire_lock", json!({ "resources": ["mine", "more"] }));
    assert_eq!(both["success"], true, "what it has covers a part: {both}");
    let again = agent.call("acquire_lock", json!({ "resources": ["mine"] }));
    assert_eq!(again["reason"], "already_owned", "{again}");
    assert_eq!(agent.call("acquire_lock", json!({ "resources": ["path:a/b"] }))["success"], true);
    let wider = agent.call("acquire_lock", json!({ "resources": ["path:a/**"] }));
    assert_eq!(wider["code"], "ALREADY_YOURS", "{wider}");
    let refused = other.call("acquire_lock", json!({ "resources": ["mine"] }));
    assert_eq!(refused["success"], false, "{refused}");
}
