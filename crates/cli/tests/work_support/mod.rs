//! A folder with a store, tasks in it, and `tenure` run there.

#![allow(dead_code, reason = "each test program uses a part of it")]

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub struct Bench {
    folder: tempfile::TempDir,
}

/// How a `tenure` ended and what it said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Bench {
    /// A store with these tasks.
    pub fn new(tasks: Value) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        let file = json!({ "tasks": tasks });
        std::fs::write(bench.path("tasks.json"), file.to_string()).unwrap();
        let said = bench.tenure(&["init"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        // Nobody has this label, so this adds the tasks and takes none.
        let add = ["work", "--once", "--label", "nobody", "--tasks", "tasks.json", "--", "true"];
        let said = bench.tenure(&add);
        assert_eq!(said.code, Some(4), "{}", said.stderr);
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(args).current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path()).env("XDG_CONFIG_HOME", self.folder.path());
        command.env("TENURE_MACHINE_DIR", self.folder.path().join("machine"));
        command.env("TENURE_IDENTITY", "off");
        command.stdin(Stdio::null());
        command
    }

    pub fn tenure(&self, args: &[&str]) -> Said {
        self.command(args).output().unwrap().into()
    }

    /// `tenure work` with these options, for a shell script.
    pub fn work(&self, options: &[&str], script: &str) -> Said {
        self.tenure(&work_args(options, script))
    }

    /// The same, not waited for.
    pub fn start(&self, options: &[&str], script: &str) -> Child {
        self.spawn(&work_args(options, script))
    }

    /// A `tenure` that is not waited for; what it says goes to a file, for [`Bench::await_words`].
    pub fn spawn(&self, args: &[&str]) -> Child {
        let stderr = std::fs::File::create(self.path("stderr")).unwrap();
        self.command(args).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap()
    }

    /// Waits until the `tenure` that was spawned says this.
    pub fn await_words(&self, words: &str) {
        self.wait_for(words, || {
            std::fs::read_to_string(self.path("stderr")).is_ok_and(|text| text.contains(words))
        });
    }

    /// Waits until the file is there.
    pub fn await_file(&self, name: &str) -> String {
        let read = || std::fs::read_to_string(self.path(name)).unwrap_or_default();
        self.wait_for(name, || read().ends_with('\n'));
        read()
    }

    fn wait_for(&self, what: &str, is_there: impl Fn() -> bool) {
        for _ in 0..6000 {
            if is_there() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{what} does not appear");
    }

    /// What happened to the task, as words of events.
    pub fn events(&self, task: &str) -> Vec<Value> {
        let said = self.tenure(&["events", "--json", "--last", "100000"]);
        let envelope: Value = serde_json::from_str(&said.stdout).unwrap();
        let resource = json!(format!("task:{task}"));
        let events = envelope["data"]["events"].as_array().unwrap().iter();
        events.filter(|event| event["resource"] == resource).cloned().collect()
    }

    /// The words of the events of the task.
    pub fn history(&self, task: &str) -> Vec<String> {
        let words = self.events(task).into_iter();
        words.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    }

    /// What the store remembers of the task.
    pub fn task(&self, id: &str) -> tenure::core::Task {
        let url = format!("sqlite:{}", self.path(".tenure/tenure.db").display());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let id = id.parse().unwrap();
        runtime.block_on(async {
            let client = tenure::Client::open(&url).await.unwrap();
            client.tasks().get(&id).await.unwrap().unwrap()
        })
    }
}

fn work_args<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut args = vec!["work"];
    args.extend(options);
    args.extend(["--", "sh", "-c", script]);
    args
}
