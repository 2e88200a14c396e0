//! A repository in a place, and the binary under test in it.

use crate::support::{Ended, Running, StoreLocation};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository with `src/a.rs` and `src/b.rs`, whose commands use one store.
pub struct Repository<'a> {
    pub place: &'a StoreLocation,
    pub root: PathBuf,
    url: String,
}

impl<'a> Repository<'a> {
    pub fn new(place: &'a StoreLocation, url: String) -> Repository<'a> {
        let root = place.path("repo");
        std::fs::create_dir_all(root.join("src")).expect("a folder");
        let repository = Repository { place, root, url };
        for name in ["a", "b"] {
            repository.write(&format!("src/{name}.rs"), &format!("{name}\n"));
        }
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-q", "-m", "first"]);
        repository
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.root.join(name), text).expect("a file");
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root, arguments)
    }

    pub fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut command = self.place.command("git");
        command.current_dir(folder);
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        let ended = Running::start(command).end();
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.stdout.trim_end().to_owned()
    }

    /// The binary under test in a folder of the repository.
    pub fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.place.command(crate::support::TENURE);
        command.current_dir(folder).args(["--store", &self.url]).args(arguments);
        // Workers commit.
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "t");
            command.env(format!("GIT_{role}_EMAIL"), "t@example.org");
        }
        command
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(&self.root, arguments))
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_in(&self.root, arguments)
    }

    pub fn run_in(&self, folder: &Path, arguments: &[&str]) -> Ended {
        Running::start(self.command(folder, arguments)).end()
    }

    /// What a command answers with `--json`; it must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.json_in(&self.root, arguments)
    }

    pub fn json_in(&self, folder: &Path, arguments: &[&str]) -> Value {
        let ended = self.run_in(folder, &[&["--json"], arguments].concat());
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.json()["data"].clone()
    }

    pub fn add(&self, id: &str, more: &[&str]) {
        let ended =
            self.run(&[&["tasks", "add", &format!("Task {id}"), "--id", id], more].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
    }

    pub fn task(&self, id: &str) -> Value {
        self.json(&["tasks", "show", id])["task"].clone()
    }

    /// What git and the file system say about the worktree.
    pub fn state(&self) -> (String, Vec<u8>, String) {
        let status = self.git(&["--no-optional-locks", "status", "--porcelain=v2"]);
        let index = std::fs::read(self.root.join(".git/index")).expect("an index");
        let branches = self.git(&["for-each-ref", "refs/heads", "refs/tags"]);
        (status, index, branches)
    }
}
