//! A folder with another program's task list, that program, and `tenure` over it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) struct StoreLocation {
    folder: tempfile::TempDir,
    store: String,
}

impl StoreLocation {
    /// A place whose lock files lie in `folder` of it.
    pub(crate) fn new(folder: &str, dialect: &str) -> StoreLocation {
        let place = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(place.path().join(folder)).expect("a folder in it");
        StoreLocation { store: format!("file:{folder}?dialect={dialect}"), folder: place }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, value: &Value) {
        std::fs::write(self.path(name), value.to_string()).expect("it can be written");
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("it is there")
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).expect("it is JSON")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(args).env_clear().env("HOME", self.folder.path());
        command.env("TENURE_MACHINE_DIR", self.folder.path().join("machine"));
        command.env("TENURE_IDENTITY", "off");
        command.env("TENURE_STORE", &self.store).env("PATH", "/usr/bin:/bin:/usr/local/bin");
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command that must succeed, and says what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.command(args).output().expect("it starts");
        assert!(output.status.success(), "{args:?}: {}", errors(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The status of a task.
    pub(crate) fn status(&self, task: &str) -> String {
        let shown: Value = serde_json::from_str(&self.ok(&["--json", "tasks", "show", task]))
            .expect("an envelope");
        shown["data"]["task"]["status"].as_str().expect("a status").to_owned()
    }

    /// Calls tools as an agent does, over standard input and output; each must succeed.
    pub(crate) fn agent(&self, calls: &[(&str, Value)]) {
        let mut command = self.command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut agent = command.spawn().expect("it starts");
        let mut input = agent.stdin.take().expect("a pipe");
        let mut output = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } } });
        writeln!(input, "{hello}").expect("it listens");
        output.next().expect("an answer").expect("a line");
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .expect("it listens");
        for (number, (tool, arguments)) in calls.iter().enumerate() {
            let call = json!({ "jsonrpc": "2.0", "id": number + 1, "method": "tools/call",
                "params": { "name": tool, "arguments": arguments } });
            writeln!(input, "{call}").expect("it listens");
            let answer = output.next().expect("an answer").expect("a line");
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_ne!(answer["result"]["isError"], true, "{answer}");
            assert!(answer["error"].is_null(), "{answer}");
        }
        drop(input);
        assert!(agent.wait().expect("it ends").success());
    }

    /// Starts one of the other programs.
    pub(crate) fn foreign(&self, program: &str, args: &[&str]) -> Child {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/task_lists/foreign");
        let mut command = Command::new("python3");
        command.arg(folder.join(program)).args(args).current_dir(self.folder.path());
        command.stderr(Stdio::inherit()).spawn().expect("python3 is there")
    }

    /// How often each task was worked on.
    pub(crate) fn done(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.text("done").lines() {
            let task = line.split(' ').next().unwrap_or_default();
            *counts.entry(task.to_owned()).or_insert(0) += 1;
        }
        counts
    }
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that each was worked on once, by tenure and by the others.
pub(crate) fn assert_done_once(place: &StoreLocation, count: usize) {
    let done = place.done();
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "worked on more than once: {twice:?}");
    assert_eq!(done.len(), count);
    let by_tenure = place.text("done").lines().filter(|line| line.ends_with(" tenure")).count();
    assert!(by_tenure > 0 && by_tenure < count, "{by_tenure} of {count} by tenure");
}
