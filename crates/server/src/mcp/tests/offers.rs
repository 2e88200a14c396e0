//! What an agent is offered, and what that costs it.

use super::*;
use crate::caller::Role;
use crate::mcp::tools;
use rmcp::model::{ListToolsResult, Tool};

/// More than any usual tokenizer makes of it: one token for each word, number or mark by itself, and
/// one more for every further four letters of a word.
fn tokens(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let pieces: usize = words.map(|word| word.len().div_ceil(4)).sum();
    let marks = text.chars().filter(|c| !c.is_ascii_alphanumeric() && *c != ' ').count();
    pieces + marks.div_ceil(2)
}

/// What of the tools is part of a prompt: hosts keep annotations for themselves.
fn json_of(tools: &[Tool]) -> String {
    let bare = |tool: &Tool| {
        let mut tool = tool.clone();
        tool.annotations = None;
        tool
    };
    let list = ListToolsResult::with_all_items(tools.iter().map(bare).collect());
    serde_json::to_string(&list).unwrap()
}

#[test]
fn the_tools_are_few_and_fit_three_and_a_half_thousand_tokens() {
    for tools in [&*tools::IN_SESSION, &*tools::SESSIONLESS] {
        assert!(tools.len() <= 18);
        let json = json_of(tools);
        let by_bytes = (json.len() * 2).div_ceil(7);
        let by_pieces = tokens(&json);
        println!("{} bytes; {by_bytes} tokens by bytes, {by_pieces} by pieces", json.len());
        assert!(by_bytes.max(by_pieces) <= 3500, "{by_bytes} {by_pieces}: {json}");
    }
}

#[tokio::test]
async fn what_is_listed_is_what_is_offered() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    let listed = agent.request("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "create_task",
            "create_tasks_batch",
            "claim_task",
            "complete_task",
            "fail_task",
            "get_task",
            "add_note",
            "update_task",
            "review_task",
            "retry_task",
            "heartbeat",
            "get_status",
            "get_all_tasks",
            "get_results",
            "acquire_lock",
            "release_lock",
            "who_holds",
        ]
    );
    for tool in listed.as_array().unwrap() {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object", "{tool}");
        let documented = |property: &Value| property.is_object();
        assert!(schema["properties"].as_object().unwrap().values().all(documented), "{tool}");
        // Where the conversation is a session, none is asked for.
        assert!(schema["properties"].get("session").is_none(), "{tool}");
    }
    let claim = &listed[2]["inputSchema"]["properties"];
    assert_eq!(claim["wait_seconds"]["type"], "number", "{claim}");
    assert_eq!(claim["agent_id"]["type"], "string", "{claim}");
}

#[test]
fn hosts_are_told_what_each_tool_does_so_that_they_need_not_ask() {
    for tool in &*tools::IN_SESSION {
        let hints = tool.annotations.as_ref().unwrap();
        let reads = tools::role(&tool.name) == Some(Role::Read);
        assert_eq!(hints.read_only_hint, Some(reads), "{}", tool.name);
        assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
        // What replaces the words of others is the one that a person may want to see first.
        assert_eq!(hints.destructive_hint, Some(tool.name == "update_task"), "{}", tool.name);
        let title = hints.title.as_deref().unwrap();
        assert_eq!(title.to_lowercase().replace(' ', "_"), tool.name);
        assert!(title.starts_with(char::is_uppercase), "{title}");
    }
    let is_idempotent = |name: &str| {
        let tool = tools::IN_SESSION.iter().find(|tool| tool.name == name).unwrap();
        tool.annotations.as_ref().unwrap().idempotent_hint
    };
    assert_eq!(is_idempotent("acquire_lock"), Some(true));
    assert_eq!(is_idempotent("create_task"), Some(false));
}

#[test]
fn nothing_that_is_offered_tells_how_to_end_what_others_hold() {
    let words = json_of(&tools::SESSIONLESS).to_lowercase();
    for word in ["force", "break", "steal", "override"] {
        assert!(!words.contains(word), "{word}");
    }
}

#[tokio::test]
async fn the_resources_can_be_read() {
    let (client, _) = store().await;
    let mut agent = Agent::start(&client, Options::default()).await;
    agent.call("create_task", json!({ "id": "one", "description": "One" })).await;
    let listed = agent.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 2, "{listed}");
    let mut read = async |uri: &str| {
        let answer = agent.request("resources/read", json!({ "uri": uri })).await;
        let text = answer["result"]["contents"][0]["text"].as_str().map(str::to_owned);
        text.map(|text| serde_json::from_str::<Value>(&text).unwrap()).ok_or(answer)
    };
    let status = read("coordination://status").await.unwrap();
    assert_eq!(status["tasks"], json!({ "pending": 1 }), "{status}");
    let tasks = read("coordination://tasks").await.unwrap();
    assert_eq!(tasks["tasks"][0]["id"], "one", "{tasks}");
    let none = read("coordination://nothing").await.unwrap_err();
    assert!(none["error"]["message"].as_str().unwrap().contains("no resource"), "{none}");
}
