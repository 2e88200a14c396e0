//! A hermetic place to run `tenure` in, and a transcript of what a person sees there.
//!
//! Commands are lines of shell, as somebody would type them. Each sandbox has a home, a folder and
//! no variables of the outside, so tests run beside each other. What differs from run to run is
//! replaced by placeholders when a transcript is compared: see [`filters`].

mod background;
mod filters;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) use background::until;

/// A folder of one's own, a home beside it, and nothing else.
pub(crate) struct Sandbox {
    root: PathBuf,
    folder: PathBuf,
    _directory: tempfile::TempDir,
    _filters: insta::internals::SettingsBindDropGuard,
}

impl Sandbox {
    /// A plain folder, with a store of its own in it.
    pub(crate) fn new() -> Sandbox {
        let sandbox = Sandbox::bare();
        sandbox.quietly("tenure init");
        sandbox
    }

    /// A plain folder without a store.
    pub(crate) fn bare() -> Sandbox {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let folder = root.join("project");
        for name in ["home", "project"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let _filters = filters::settings(&root).bind_to_scope();
        Sandbox { root, folder, _directory: directory, _filters }
    }

    /// A git repository without a store.
    pub(crate) fn repository() -> Sandbox {
        let sandbox = Sandbox::bare();
        sandbox.quietly("git init --quiet");
        sandbox
    }

    /// A file or folder of the sandbox.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of the sandbox.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// A shell that will run this line here.
    fn shell(&self, line: &str) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(&self.folder).env_clear();
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()));
        command.env("HOME", self.root.join("home")).env("LC_ALL", "C");
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("TENURE_MACHINE_DIR", self.root.join("machine"));
        // Each command stands for itself; tests of identity turn it on.
        command.env("TENURE_IDENTITY", "off");
        command.stdin(std::process::Stdio::null());
        command
    }

    fn output(&self, line: &str) -> Output {
        self.shell(line).output().unwrap()
    }

    /// Runs a line that must succeed and is not looked at; gives what it printed.
    pub(crate) fn quietly(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(output.status.success(), "{}", transcript(line, &output));
        text(&output.stdout).trim_end().to_owned()
    }

    /// Runs a line, and gives the line and all that came of it.
    pub(crate) fn see(&self, line: &str) -> String {
        transcript(line, &self.output(line))
    }

    /// The same for several lines, one after the other.
    pub(crate) fn see_all(&self, lines: &[&str]) -> String {
        lines.iter().map(|line| self.see(line)).collect::<Vec<_>>().join("\n")
    }

    /// The answer of a command with `--json`: the envelope's `data`.
    pub(crate) fn data(&self, line: &str) -> serde_json::Value {
        let envelope: serde_json::Value = serde_json::from_str(&self.quietly(line)).unwrap();
        envelope["data"].clone()
    }

    /// Takes a lease with these arguments, and gives its grant.
    pub(crate) fn acquire(&self, arguments: &str) -> String {
        self.quietly(&format!("tenure acquire -q {arguments}"))
    }

    /// Takes a short lease with these arguments, and returns when it has lapsed.
    pub(crate) fn lapsed(&self, resource: &str, arguments: &str) -> String {
        let grant = self.acquire(&format!("{resource} {arguments} --ttl 100ms"));
        let free = format!("tenure wait -n {resource}");
        until("the lease lapses", || self.output(&free).status.success());
        grant
    }

    /// Takes a lease tied to a process, and ends the process.
    pub(crate) fn dead(&self, resource: &str, arguments: &str) {
        let mut process = Command::new("sleep").arg("600").spawn().unwrap();
        self.acquire(&format!("{resource} {arguments} --pid {}", process.id()));
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

fn transcript(line: &str, output: &Output) -> String {
    let status = output.status.code().map_or("signal".to_owned(), |code| code.to_string());
    let stdout = stream("stdout", &text(&output.stdout));
    let stderr = stream("stderr", &text(&output.stderr));
    format!("$ {line}\n{stdout}{stderr}exit: {status}\n")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What one stream carried, indented; lines of JSON are laid out to be read.
pub(crate) fn stream(name: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut shown = format!("{name}:\n");
    for line in text.lines() {
        let line = match serde_json::from_str::<serde_json::Value>(line) {
            Ok(value) if value.is_object() => {
                format!("JSON {}", serde_json::to_string_pretty(&value).unwrap())
            }
            _ => line.to_owned(),
        };
        for line in line.split('\n') {
            shown.push_str(format!("  {line}").trim_end());
            shown.push('\n');
        }
    }
    if !text.ends_with('\n') {
        shown.push_str("  (no line break at the end)\n");
    }
    shown
}
