//! How much an agent is told at once.

use super::*;

/// The text of an answer, as it is sent.
async fn length(agent: &mut Agent, tool: &str, arguments: Value) -> (usize, Value) {
    let answer = agent.call(tool, arguments).await;
    (answer.to_string().len(), answer)
}

#[tokio::test]
async fn a_long_description_is_shown_in_part_and_in_full_where_it_is_needed() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let long = format!("Title\n{}", "x".repeat(90_000));
    agent.call("create_task", json!({ "id": "long", "description": long })).await;
    let (bytes, listed) = length(&mut agent, "get_all_tasks", json!({})).await;
    assert!(bytes < 2000, "{bytes}");
    assert_eq!(listed["tasks"][0]["shown_in_part"], json!(["description"]), "{listed}");
    assert!(listed["shown_in_part_means"].as_str().unwrap().contains("get_task"), "{listed}");
    let whole = agent.call("get_task", json!({ "task_id": "long" })).await;
    assert_eq!(whole["task"]["description"], long);
    let claimed = agent.call("claim_task", json!({})).await;
    assert_eq!(claimed["task"]["description"], long, "whoever works on it sees all of it");
    agent.call("complete_task", json!({ "task_id": "long", "output": long })).await;
    let (bytes, _) = length(&mut agent, "get_results", json!({})).await;
    assert!(bytes < 2000, "{bytes}");
    let one = agent.call("get_results", json!({ "task_ids": ["long"] })).await;
    assert_eq!(one["results"][0]["result"]["output"], long);
    let read = agent.request("resources/read", json!({ "uri": "coordination://tasks" })).await;
    assert!(read.to_string().len() < 5000, "{}", read.to_string().len());
}

#[tokio::test]
async fn a_long_list_is_shown_page_by_page() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let description = "y".repeat(280);
    let task = |n: usize| json!({ "id": format!("t{n:03}"), "description": description });
    let tasks: Vec<Value> = (0..400).map(task).collect();
    agent.call("create_tasks_batch", json!({ "tasks": tasks })).await;
    let mut ids = Vec::new();
    let mut after = json!(0);
    while after != Value::Null {
        let asked = json!({ "limit": 100_000, "after": after });
        let (bytes, page) = length(&mut agent, "get_all_tasks", asked).await;
        assert!(bytes < 60_000, "{bytes}");
        let shown = page["tasks"].as_array().unwrap();
        ids.extend(shown.iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        after = page["next_after"].clone();
    }
    let wanted: Vec<String> = (0..400).map(|n| format!("t{n:03}")).collect();
    assert_eq!(ids, wanted);
}

#[tokio::test]
async fn a_second_claim_says_that_the_first_is_still_held() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    for id in ["one", "two"] {
        agent.call("create_task", json!({ "id": id, "description": id })).await;
    }
    let first = agent.call("claim_task", json!({})).await;
    assert_eq!(first.get("still_claimed"), None, "{first}");
    let second = agent.call("claim_task", json!({})).await;
    assert_eq!(second["still_claimed"], json!(["one"]), "{second}");
    assert!(second["still_claimed_means"].as_str().unwrap().contains("complete_task"));
}

#[tokio::test]
async fn one_session_is_one_holder() {
    let (client, _) = store().await;
    let holders = async || {
        let seen = client.look_everywhere().await.unwrap();
        let labels = seen.holds.iter().map(|seen| seen.hold.holder.label.clone());
        labels.collect::<std::collections::BTreeSet<String>>()
    };
    let lock = |name: &str| json!({ "resources": [name] });
    // Named first, and not again.
    let mut agent = Agent::start(&client, Options::default()).await;
    agent.call("create_task", json!({ "id": "one", "description": "One" })).await;
    agent.call("claim_task", json!({ "agent_id": "alice" })).await;
    agent.call("acquire_lock", lock("a")).await;
    agent.call("heartbeat", json!({})).await;
    let labels = holders().await;
    assert!(labels.len() == 1 && labels.first().unwrap().starts_with("alice/"), "{labels:?}");
    agent.go().await;
    // Named after it came to hold something.
    let mut agent = Agent::start(&client, Options::default()).await;
    agent.call("acquire_lock", lock("b")).await;
    agent.call("acquire_lock", json!({ "resources": ["c"], "agent_id": "bob" })).await;
    assert_eq!(holders().await.len(), 1);
    agent.call("release_lock", json!({})).await;
    agent.call("acquire_lock", lock("d")).await;
    let labels = holders().await;
    assert!(labels.len() == 1 && labels.first().unwrap().starts_with("bob/"), "{labels:?}");
}
