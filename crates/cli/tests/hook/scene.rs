//! A repository with two committed files, and hooks that run in it.

use crate::support::{Ended, Running, StoreLocation, TENURE};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository `repo` with the files `a.txt` and `src/main.rs`, and a home.
pub struct Scene {
    pub place: StoreLocation,
    pub root: PathBuf,
}

impl Scene {
    pub fn new() -> Scene {
        let place = StoreLocation::new();
        let root = place.path("repo");
        std::fs::create_dir_all(root.join("src")).expect("folders");
        let root = root.canonicalize().expect("the repository");
        let scene = Scene { place, root };
        scene.write("a.txt", "a\n");
        scene.write("src/main.rs", "fn main() {}\n");
        scene.git(&["init", "-q"]);
        scene.git(&["add", "."]);
        scene.git(&["commit", "-q", "-m", "first"]);
        scene
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.root.join(name), content).expect("a file of the repository");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).expect("a file of the repository")
    }

    /// A program in the repository, with `tenure` on its path.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.place.command(program);
        let programs = Path::new(TENURE).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", programs.display())).current_dir(&self.root);
        command
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root, arguments)
    }

    pub fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut command = self.command("git");
        command.current_dir(folder);
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        let ended = Running::start(command).end();
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.stdout
    }

    /// Runs `tenure` in the repository.
    pub fn tenure(&self, arguments: &[&str]) -> Ended {
        let mut command = self.command(TENURE);
        command.args(arguments);
        Running::start(command).end()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.tenure(&[&["--json"], arguments].concat());
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.json()["data"].clone()
    }

    /// Sends an event to the hook of this host, as the host would: through a shell.
    pub fn hook(&self, host: &str, event: &Value) -> Ended {
        self.hook_with(host, event, &[])
    }

    pub fn hook_with(&self, host: &str, event: &Value, variables: &[(&str, &str)]) -> Ended {
        self.hook_reading(host, &event.to_string(), variables)
    }

    pub fn hook_reading(&self, host: &str, input: &str, variables: &[(&str, &str)]) -> Ended {
        let file = tempfile::NamedTempFile::new().expect("a file for the event");
        std::fs::write(file.path(), input).expect("the event");
        let mut command = self.command("sh");
        command.args(["-c", &format!("tenure hook {host}")]);
        command.envs(variables.iter().copied());
        command.stdin(Stdio::from(File::open(file.path()).expect("the event")));
        Running::start(command).end()
    }

    /// Another owner takes a path.
    pub fn hold(&self, label: &str, resource: &str) {
        let operation = ["--operation", "refactoring"];
        let ended =
            self.tenure(&[&["acquire", "--as", label, resource], operation.as_slice()].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
    }

    pub fn release(&self, label: &str) {
        let ended = self.tenure(&["release", "--as", label, "--all"]);
        assert_eq!(ended.code, 0, "{ended:?}");
    }

    /// Who holds what, as `resource holder`, sorted.
    pub fn holds(&self) -> Vec<String> {
        let held = self.json(&["status"])["held"].clone();
        let one = |hold: &Value| {
            let text = |name: &str| hold[name].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("resource"), text("holder"))
        };
        let mut holds: Vec<String> = held.as_array().expect("holds").iter().map(one).collect();
        holds.sort();
        holds
    }

    /// The resources that are held, sorted.
    pub fn resources(&self) -> Vec<String> {
        let first = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
        self.holds().into_iter().map(first).collect()
    }

    /// An edit of this session of Claude Code.
    pub fn edit(&self, session: &str, file: &str) -> Value {
        json!({
            "session_id": session, "cwd": self.root, "hook_event_name": "PreToolUse",
            "tool_name": "Edit", "tool_input": { "file_path": self.root.join(file) },
        })
    }

    /// A shell command of this session of Claude Code.
    pub fn bash(&self, session: &str, command: &str) -> Value {
        json!({
            "session_id": session, "cwd": self.root, "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": command },
        })
    }

    /// Another event of this session of Claude Code.
    pub fn event(&self, session: &str, name: &str) -> Value {
        json!({ "session_id": session, "cwd": self.root, "hook_event_name": name })
    }

    /// The reason why Claude Code must not go on; `None` if it may.
    pub fn refused(&self, event: &Value) -> Option<String> {
        let ended = self.hook("claude-code", event);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
        if ended.stdout.is_empty() {
            return None;
        }
        let answer: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let output = &answer["hookSpecificOutput"];
        assert_eq!(output["permissionDecision"], "deny", "{ended:?}");
        Some(output["permissionDecisionReason"].as_str().expect("a reason").to_owned())
    }

    /// The event is allowed, silently.
    pub fn is_allowed(&self, event: &Value) {
        assert_eq!(self.refused(event), None, "{event}");
    }
}
