//! Agents over HTTP whose token is limited to labels.

use crate::http::{Answer, ask};
use crate::server::Server;
use crate::support::StoreLocation;
use serde_json::{Value, json};

/// A session of an agent.
struct Agent<'a> {
    server: &'a Server,
    secret: &'a str,
    session: String,
}

fn post(server: &Server, secret: &str, session: Option<&str>, message: &Value) -> Answer {
    let mut asked = ask("POST", "/mcp")
        .token(secret)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    if let Some(session) = session {
        asked = asked.header("mcp-session-id", session);
    }
    server.ask(asked.body(message.to_string()))
}

impl Agent<'_> {
    fn connect<'a>(server: &'a Server, secret: &'a str) -> Agent<'a> {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let answer = post(server, secret, None, &hello);
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        let agent = Agent { server, secret, session };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(post(server, secret, Some(&agent.session), &ready).status, 202);
        agent
    }

    /// What a tool answered, and whether it refused.
    fn call(&self, tool: &str, arguments: Value) -> (Value, bool) {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        let answer = post(self.server, self.secret, Some(&self.session), &call);
        let lines = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let message = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let message = message.into_iter().find(|message| message["id"] == 2);
        let result = message.unwrap_or_else(|| panic!("{}", answer.body))["result"].clone();
        let text = result["content"][0]["text"].as_str().expect("an answer as text");
        (serde_json::from_str(text).expect("JSON"), result["isError"] == true)
    }
}

fn limited_token(place: &StoreLocation, name: &str, labels: &[&str]) -> String {
    let mut words = vec!["token", "create", name, "--role", "work"];
    labels.iter().for_each(|label| words.extend(["--as", label]));
    place.json(&words)["secret"].as_str().expect("a secret").to_owned()
}

#[test]
fn an_agent_acts_under_the_labels_of_its_token_alone() {
    let place = StoreLocation::new();
    let (alice, bob) = (
        limited_token(&place, "alice", &["alice"]),
        limited_token(&place, "bob", &["bob", "ci-*"]),
    );
    let server = Server::start(&place, &[]);
    let (alice, bob) = (Agent::connect(&server, &alice), Agent::connect(&server, &bob));
    let lock = |resource: &str, label: &str| json!({ "resources": [resource], "agent_id": label });

    // The only label of a token is its default.
    let (held, refused) = alice.call("acquire_lock", json!({ "resources": ["deploy"] }));
    assert!(!refused, "{held}");
    let (answer, refused) = bob.call("acquire_lock", lock("other", "alice"));
    assert_eq!((&answer["code"], refused), (&"FORBIDDEN".into(), true), "{answer}");
    assert!(answer.to_string().contains("bob, ci-*"), "{answer}");
    let (answer, refused) = bob.call("acquire_lock", lock("other", "ci-7"));
    assert!(!refused, "{answer}");

    let events = place.json(&["events"])["events"].clone();
    let who = |event: &Value| {
        let holder = event["holder"].as_str().unwrap_or_default();
        let label = holder.split('/').next().unwrap_or_default().to_owned();
        (label, event["actor"].as_str().unwrap_or_default().to_owned())
    };
    let found: Vec<(String, String)> = events.as_array().expect("a list").iter().map(who).collect();
    let expected = [("alice", "alice"), ("ci-7", "bob")];
    assert_eq!(found, expected.map(|(label, actor)| (label.to_owned(), actor.to_owned())));
    server.stop();
}
