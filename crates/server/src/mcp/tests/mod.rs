//! Agents in this process, speaking the protocol by hand.

mod http;
mod leases;
mod lists;
mod offers;
mod one_task;
mod refusals;

use super::Options;
use super::stdio::serve;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tenure::Client;
use tenure::world::{ManualClock, SystemWorld};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

/// Only a failure ever takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store, and the clock by which it judges.
async fn store() -> (Client, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let client = Client::builder()
        .world(SystemWorld::new().with_clock(clock.clone()))
        .open("memory:")
        .await
        .unwrap();
    (client, clock)
}

struct Agent {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<()>,
    next_id: u64,
}

impl Agent {
    async fn start(client: &Client, options: Options) -> Agent {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (far_input, far_output) = tokio::io::split(far);
        let client = client.clone();
        let server = tokio::spawn(async move {
            let stop = std::future::pending();
            serve(client, options, far_input, far_output, stop).await.unwrap();
        });
        let (output, input) = tokio::io::split(near);
        let output = BufReader::new(output).lines();
        let mut agent = Agent { input, output, server, next_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "by\nhand", "version": "1" },
        });
        let hello = agent.request("initialize", hello).await;
        assert_eq!(hello["result"]["serverInfo"]["name"], "tenure", "{hello}");
        agent
    }

    /// The answer to a request, whatever it is.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        loop {
            let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
            let line = line.expect("an answer").unwrap().expect("a server that goes on");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// What tools answer that are called at once.
    async fn together(&mut self, calls: &[(&str, Value)]) -> Vec<Value> {
        let first = self.next_id + 1;
        let mut messages = String::new();
        for (tool, arguments) in calls {
            self.next_id += 1;
            let params = json!({ "name": tool, "arguments": arguments });
            let id = self.next_id;
            let message =
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            messages += &format!("{message}\n");
        }
        self.input.write_all(messages.as_bytes()).await.unwrap();
        let mut answers = Vec::new();
        while answers.len() < calls.len() {
            let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
            let line = line.expect("an answer").unwrap().expect("a server that goes on");
            let message: Value = serde_json::from_str(&line).unwrap();
            assert!(message["id"].as_u64().is_some_and(|id| id >= first), "{message}");
            answers.push(message["result"]["structuredContent"].clone());
        }
        answers
    }

    /// What a tool answers, and whether that is an error.
    async fn ask(&mut self, tool: &str, arguments: Value) -> (Value, bool) {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", params).await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let structure = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structure);
        (structure, result["isError"] == true)
    }

    /// The same where it must not be an error.
    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let (answer, is_error) = self.ask(tool, arguments).await;
        assert!(!is_error, "{tool}: {answer}");
        answer
    }

    /// The same where it must be an error.
    async fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let (answer, is_error) = self.ask(tool, arguments).await;
        assert!(is_error && answer["success"] == false, "{tool}: {answer}");
        answer
    }

    /// Goes, and waits until the server noticed.
    async fn go(self) {
        drop((self.input, self.output));
        self.server.await.unwrap();
    }
}
