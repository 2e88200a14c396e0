//! A repository in a temporary folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tenure::core::TaskId;
use tenure::core::glob::Glob;
use tenure_frontend::git::{Repository, Rescue, RescueRequest, Rescued};

pub struct Repo {
    pub root: PathBuf,
    _folder: TempDir,
}

impl Repo {
    /// A repository without a commit.
    pub fn empty() -> Repo {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a folder").join("main");
        fs::create_dir(&root).expect("a folder");
        let repo = Repo { root, _folder: folder };
        repo.git(&["init", "-q", "-b", "main"]);
        for (name, value) in [("user.name", "t"), ("user.email", "t@example.org")] {
            repo.git(&["config", name, value]);
        }
        repo
    }

    /// A repository with `src/a.rs`, `src/b.rs` and `notes.txt`.
    pub fn new() -> Repo {
        let repo = Repo::empty();
        repo.write("src/a.rs", "a\n");
        repo.write("src/b.rs", "b\n");
        repo.write("notes.txt", "notes\n");
        repo.write(".gitignore", "*.tmp\n");
        repo.commit("first");
        repo
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A path beside the repository.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        write(&self.root, name, text);
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.root, arguments)
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    pub fn repository(&self) -> Repository {
        Repository::around(&self.root).expect("git runs").expect("a repository")
    }

    /// Rescues what lies in the main worktree and matches these globs.
    pub fn rescue(&self, globs: &[&str]) -> Rescue {
        self.rescue_from(&self.root, globs, "claim-1")
    }

    pub fn rescue_from(&self, worktree: &Path, globs: &[&str], claim: &str) -> Rescue {
        let (files, task) = (globs_of(globs), task());
        let request = RescueRequest { worktree, claim, ..request(&task, &files) };
        self.repository().rescue(&request).expect("git runs")
    }

    /// The same; something must have been rescued.
    pub fn rescued(&self, globs: &[&str]) -> Rescued {
        kept(self.rescue(globs))
    }

    /// The files that a rescue changes, with a letter for how.
    pub fn changed(&self, rescued: &Rescued) -> Vec<String> {
        let range = [&format!("{}^", rescued.commit), &rescued.commit];
        let printed = self.git(&["diff", "--no-renames", "--name-status", range[0], range[1]]);
        printed.lines().map(|line| line.replace('\t', " ")).collect()
    }
}

pub fn task() -> TaskId {
    "t1".parse().expect("an id")
}

pub fn request<'a>(task: &'a TaskId, files: &'a [Glob]) -> RescueRequest<'a> {
    RescueRequest {
        worktree: Path::new("/"),
        files,
        task,
        attempt: 1,
        claim: "claim-1",
        by: "alice",
        bytes_max: 1_000_000,
    }
}

pub fn globs_of(globs: &[&str]) -> Vec<Glob> {
    globs.iter().map(|glob| Glob::parse(glob).expect("a glob")).collect()
}

pub fn kept(rescue: Rescue) -> Rescued {
    match rescue {
        Rescue::Kept(rescued) => rescued,
        other => panic!("nothing was rescued: {other:?}"),
    }
}

pub fn write(root: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .expect("git runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).trim_end().to_owned()
}

/// A program that leaves a trace when it is run.
pub fn tracing_program(path: &Path, trace: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, format!("#!/bin/sh\necho \"$0\" >>'{}'\ncat\n", trace.display()))
        .expect("a program");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}
