//! A hermetic place to run `tenure` in: a home and a store of its own, no variables of the outside.

#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

/// A folder with a store in it.
pub struct StoreLocation {
    folder: tempfile::TempDir,
}

/// What a command said and how it ended.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// The envelope of `--json`.
    pub fn envelope(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err))
    }

    /// The envelope's data of a command that succeeded.
    pub fn data(&self) -> Value {
        assert_eq!(self.code, 0, "{} {}", self.out, self.err);
        self.envelope()["data"].clone()
    }

    /// The code for scripts of a command that failed.
    pub fn error(&self) -> Value {
        let envelope = self.envelope();
        assert_eq!(envelope["success"], false, "{envelope}");
        envelope["error"].clone()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).unwrap().trim_end().to_owned(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl StoreLocation {
    pub fn new() -> StoreLocation {
        StoreLocation { folder: tempfile::tempdir().unwrap() }
    }

    /// Writes a file, with the folders around it.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A command in this place.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        let store = format!("sqlite:{}", self.folder.path().join("tasks.db").display());
        command.args(args).env_clear().env("HOME", self.folder.path()).env("TENURE_STORE", store);
        command.env("TENURE_MACHINE_DIR", self.folder.path().join("machine"));
        command.env("TENURE_IDENTITY", "off");
        command.env("PATH", "/usr/bin:/bin").current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn tenure(&self, args: &[&str]) -> Said {
        self.command(args).output().unwrap().into()
    }

    /// The same for scripts.
    pub fn json(&self, args: &[&str]) -> Said {
        self.command(&[&["--json"], args].concat()).output().unwrap().into()
    }

    /// The same with colours, as on a terminal.
    pub fn coloured(&self, args: &[&str]) -> Said {
        self.command(args).env("CLICOLOR_FORCE", "1").output().unwrap().into()
    }

    /// Runs a command that must succeed, and says what it printed.
    pub fn ok(&self, args: &[&str]) -> String {
        let said = self.tenure(args);
        assert_eq!(said.code, 0, "{args:?}: {} {}", said.out, said.err);
        said.out
    }

    /// Adds a task and says its id.
    pub fn add(&self, args: &[&str]) -> String {
        self.ok(&[&["tasks", "add", "--print-id"], args].concat())
    }

    /// The task as JSON.
    pub fn task(&self, task: &str) -> Value {
        self.json(&["tasks", "show", task]).data()["task"].clone()
    }

    /// Claims and says what the claimer learns.
    pub fn claim(&self, args: &[&str]) -> Value {
        self.json(&[&["tasks", "claim"], args].concat()).data()["tasks"][0].clone()
    }

    /// Starts a command that goes on in the background.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        Running { child, err, said: String::new() }
    }
}

/// A command in the background.
pub struct Running {
    child: Child,
    err: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Running {
    /// The next line that it says on stderr.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        self.said += &line;
        line.trim_end().to_owned()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        self.err.read_to_string(&mut self.said).unwrap();
        let mut said = Said::from(self.child.wait_with_output().unwrap());
        said.err = self.said;
        said
    }
}
