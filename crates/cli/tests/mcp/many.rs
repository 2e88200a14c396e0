//! Many servers over one store are as safe as one.

use crate::agent::Agent;
use crate::support::StoreLocation;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

const SERVERS: usize = 16;
const TASKS: usize = 1000;

#[test]
fn of_a_thousand_tasks_sixteen_servers_claim_each_once() {
    let place = StoreLocation::new();
    let mut first = Agent::start(&place);
    let tasks: Vec<Value> =
        (0..TASKS).map(|n| json!({ "id": format!("t{n}"), "description": "Do it" })).collect();
    let added = first.call("create_tasks_batch", json!({ "tasks": tasks }));
    assert_eq!(added["created"], TASKS, "{added}");

    let together = Arc::new(Barrier::new(SERVERS));
    let agents: Vec<Agent> = (0..SERVERS).map(|_| Agent::start(&place)).collect();
    let workers = agents.into_iter().map(|mut agent| {
        let together = together.clone();
        std::thread::spawn(move || {
            together.wait();
            let mut done: Vec<String> = Vec::new();
            loop {
                let answer = agent.call("claim_task", json!({}));
                let Some(id) = answer["task"]["id"].as_str() else {
                    assert_eq!(answer["success"], false, "{answer}");
                    return done;
                };
                let finished =
                    agent.call("complete_task", json!({ "task_id": id, "output": "ok" }));
                assert_eq!(finished["status"], "completed", "{finished}");
                done.push(id.to_owned());
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    let done: Vec<Vec<String>> =
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect();

    let all: Vec<&String> = done.iter().flatten().collect();
    let distinct: BTreeSet<&String> = all.iter().copied().collect();
    assert_eq!((all.len(), distinct.len()), (TASKS, TASKS), "a task was done twice, or never");
    let status = first.call("get_status", json!({}));
    assert_eq!(status["tasks"], json!({ "completed": TASKS }), "{status}");
    assert_eq!(status["agents"], 0, "{status}");
}
