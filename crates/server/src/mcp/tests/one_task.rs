//! One task from hand to hand: notes, review, changes, and what an agent reads of it.

use super::*;

#[tokio::test]
async fn a_task_is_shown_with_its_notes_tries_and_neighbours() {
    let (client, _) = store().await;
    let mut one = Agent::start(&client, Options::default()).await;
    for (id, after) in [("schema", None), ("api", Some("schema")), ("page", Some("api"))] {
        let dependencies: Vec<&str> = after.into_iter().collect();
        let task =
            json!({ "id": id, "description": format!("Do {id}"), "dependencies": dependencies });
        one.call("create_task", task).await;
    }
    one.call("claim_task", json!({ "agent_id": "ann" })).await;
    let started = one.call("start_task", json!({ "task_id": "schema" })).await;
    assert_eq!(started["status"], "in_progress", "{started}");
    let note = json!({ "task_id": "Do schema", "text": "the index is missing" });
    assert_eq!(one.call("add_note", note).await["notes"], 1);
    one.call("fail_task", json!({ "task_id": "schema", "error": "no disk" })).await;

    let mut two = Agent::start(&client, Options::default()).await;
    let api = two.call("get_task", json!({ "task_id": "api" })).await;
    assert_eq!(api["waits_for"][0]["task_id"], "schema", "{api}");
    assert_eq!(api["waits_for"][0]["status"], "pending", "{api}");
    assert_eq!(api["waited_for_by"][0]["task_id"], "page", "{api}");
    assert!(api["not_ready_because"][0].as_str().unwrap().contains("schema"), "{api}");
    let schema = two.call("get_task", json!({ "task_id": "schema" })).await;
    assert_eq!(schema["task"]["notes"][0]["text"], "the index is missing", "{schema}");
    assert!(schema["task"]["notes"][0]["by"].as_str().unwrap().starts_with("ann"), "{schema}");
    assert_eq!(schema["task"]["tries"][0]["outcome"], "failed", "{schema}");
    assert_eq!(schema["task"]["tries"][0]["error"], "no disk", "{schema}");
}

#[tokio::test]
async fn a_task_goes_to_review_and_is_decided_by_another_agent() {
    let (client, _) = store().await;
    let mut worker = Agent::start(&client, Options::default()).await;
    let mut reviewer = Agent::start(&client, Options::default()).await;
    worker.call("create_task", json!({ "id": "a", "description": "A" })).await;
    worker.call("claim_task", json!({})).await;
    let sent = worker.call("review_task", json!({ "task_id": "a", "output": "x" })).await;
    assert_eq!(sent["status"], "review", "{sent}");
    let silent = json!({ "task_id": "a", "verdict": "reject" });
    let (refused, _) = reviewer.ask("review_task", silent).await;
    assert_eq!(refused["code"], "USAGE", "{refused}");
    let odd = json!({ "task_id": "a", "verdict": "perhaps" });
    assert_eq!(reviewer.ask("review_task", odd).await.0["code"], "USAGE");
    let rejected = json!({ "task_id": "a", "verdict": "reject", "feedback": "add a test" });
    assert_eq!(reviewer.call("review_task", rejected).await["status"], "pending");
    let again = worker.call("claim_task", json!({})).await;
    assert_eq!(again["task"]["feedback"], "add a test", "{again}");
    worker.call("review_task", json!({ "task_id": "a" })).await;
    let approved = json!({ "task_id": "a", "verdict": "approve" });
    assert_eq!(reviewer.call("review_task", approved).await["status"], "completed");
    let (late, _) = worker.ask("start_task", json!({ "task_id": "a" })).await;
    assert_eq!(late["code"], "NOT_YOURS", "{late}");
}

#[tokio::test]
async fn fields_are_changed_and_a_failed_task_is_tried_again() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    agent.call("create_task", json!({ "id": "a", "description": "A" })).await;
    let change = json!({
        "task_id": "a", "title": "Better", "priority": 3, "files": ["src/*.rs"], "max_attempts": 1,
        "section": "back",
    });
    agent.call("update_task", change).await;
    let task = agent.call("get_task", json!({ "task_id": "Better" })).await;
    assert_eq!((&task["task"]["priority"], &task["task"]["section"]), (&json!(3), &json!("back")));
    assert_eq!(task["task"]["files"], json!(["src/*.rs"]), "{task}");
    for wrong in [
        json!({ "task_id": "a" }),
        json!({ "task_id": "a", "not_before": "soon" }),
        json!({ "task_id": "a", "priorty": 3 }),
    ] {
        assert_eq!(agent.ask("update_task", wrong.clone()).await.0["code"], "USAGE", "{wrong}");
    }
    agent.call("claim_task", json!({})).await;
    agent.call("fail_task", json!({ "task_id": "a", "error": "no" })).await;
    assert_eq!(agent.call("retry_task", json!({ "task_id": "a" })).await["status"], "pending");
    let known = agent.call("register_agent", json!({ "agent_id": "ann", "role": "worker" })).await;
    assert!(known["agent"].as_str().unwrap().starts_with("ann"), "{known}");
}

#[tokio::test]
async fn prompts_are_offered_and_name_only_tools_that_exist() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let listed = agent.request("prompts/list", json!({})).await;
    let prompts = listed["result"]["prompts"].as_array().unwrap().clone();
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["work-on-next-task", "hand-over"]);
    for name in names {
        let got = agent.request("prompts/get", json!({ "name": name })).await;
        let text = got["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let tools = words.filter(|word| word.contains('_') && *word != "rescue_ref");
        for tool in tools {
            assert!(crate::mcp::tools::role(tool).is_some(), "{name}: {tool}");
        }
    }
    let none = agent.request("prompts/get", json!({ "name": "nothing" })).await;
    assert!(none["error"]["message"].as_str().unwrap().contains("no prompt"), "{none}");
}

/// The programs that share the list know priorities from 1 to 10.
#[tokio::test]
async fn a_priority_in_a_coordination_list_is_that_of_its_programs() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}?dialect=coordination", folder.path().display());
    let client = Client::open(&url).await.unwrap();
    let mut agent = Agent::start(&client, Options::default()).await;
    agent.call("create_task", json!({ "id": "a", "description": "A", "priority": 5 })).await;
    agent.call("create_task", json!({ "id": "b", "description": "B" })).await;
    agent.call("create_task", json!({ "id": "c", "description": "C", "priority": 1 })).await;
    agent.call("update_task", json!({ "task_id": "c", "priority": 8 })).await;
    let list = std::fs::read(folder.path().join("tasks.json")).unwrap();
    let list: Value = serde_json::from_slice(&list).unwrap();
    let written: Vec<_> = (0..3).map(|index| list["tasks"][index]["priority"].clone()).collect();
    assert_eq!(written, [5, 5, 8]);
    let task = agent.call("get_task", json!({ "task_id": "c" })).await;
    assert_eq!(task["task"]["priority"], 8, "{task}");
    let listed = agent.call("get_all_tasks", json!({})).await;
    assert_eq!(listed["tasks"][0]["priority"], 5, "{listed}");
    assert_eq!(agent.call("claim_task", json!({})).await["task"]["priority"], 5);
    for priority in [0, 11, 50] {
        let new = json!({ "description": "x", "priority": priority });
        let refused = agent.refused("create_task", new).await;
        assert!(refused["message"].as_str().unwrap().contains("1 to 10"), "{refused}");
    }
}
