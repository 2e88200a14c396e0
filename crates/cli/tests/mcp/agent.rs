//! An agent that speaks the protocol by hand, to a `tenure mcp` of its own.

use crate::support::{PATIENCE, Signal, StoreLocation, signal};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    kept: VecDeque<Value>,
    next_id: u64,
}

impl Agent {
    /// Starts a server and shakes hands.
    pub fn start(place: &StoreLocation) -> Agent {
        Agent::speak(place.tenure(&["mcp"]))
    }

    /// Shakes hands with a server that this starts.
    pub fn speak(mut command: Command) -> Agent {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a server");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("its output");
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Standard output is for the protocol alone.
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"junk": line}));
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let mut agent = Agent { child, stdin, messages, kept: VecDeque::new(), next_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let id = agent.request("initialize", hello);
        let answer = agent.answer(id);
        assert_eq!(answer["serverInfo"]["name"], "tenure", "{answer}");
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("an agent that has not gone");
        writeln!(stdin, "{message}").expect("a server that listens");
        stdin.flush().expect("a server that listens");
    }

    /// Sends a request; returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message that fits.
    pub fn message(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&fits) {
            return self.kept.remove(at).expect("it is there");
        }
        // One deadline for all of it: a server that only ever tells of progress must not be waited
        // for without end.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self
                .messages
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .unwrap_or_else(|error| panic!("no {what}: {error}; kept {:?}", self.kept));
            assert!(message.get("junk").is_none(), "{message}");
            if fits(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    fn answer(&mut self, id: u64) -> Value {
        let message = self.message("answer", |message| message["id"] == id);
        assert!(message.get("error").is_none(), "{message}");
        message["result"].clone()
    }

    /// Begins to call a tool, and to be told of its progress; returns the request's id.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let meta = json!({ "progressToken": self.next_id + 1 });
        self.request("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
    }

    /// What the tool says in the end.
    pub fn end(&mut self, id: u64) -> Value {
        self.answer(id)["structuredContent"].clone()
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.end(id)
    }

    /// Waits until the server says that it waits.
    pub fn progress(&mut self) -> String {
        let message =
            self.message("progress", |message| message["method"] == "notifications/progress");
        message["params"]["message"].as_str().expect("words").to_owned()
    }

    /// Says that the answer is no longer wanted.
    pub fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id, "reason": "enough" });
        let method = "notifications/cancelled";
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub fn signal(&self, which: Signal) {
        signal(self.child.id(), which);
    }

    /// Hangs up.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for the server's end.
    pub fn exit_code(mut self) -> Option<i32> {
        self.child.wait().expect("a child to wait for").code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
