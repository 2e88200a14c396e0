//! A git repository with the guard as its hooks, and two owners: the one that commits, which has no
//! label, and `holder`, which holds.

use crate::support::{Ended, Running, StoreLocation, TENURE};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Repository {
    pub place: StoreLocation,
    /// The root of the main worktree.
    pub root: PathBuf,
}

impl Repository {
    /// An empty repository whose hooks call the guard.
    pub fn new() -> Repository {
        let repository = Repository::without_hooks();
        for hook in ["pre-commit", "pre-push"] {
            let script = format!("#!/bin/sh\nexec '{TENURE}' guard {hook} \"$@\"\n");
            repository.write_hook(hook, &script);
        }
        repository
    }

    /// One with a commit of these files.
    pub fn with_files(names: &[&str]) -> Repository {
        let repository = Repository::new();
        repository.commit_files(names);
        repository
    }

    pub fn without_hooks() -> Repository {
        let place = StoreLocation::new();
        let settings = "[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n\
                        [advice]\ndetachedHead = false\n[protocol \"file\"]\nallow = always\n";
        fs::write(place.path("home/.gitconfig"), settings).expect("git's settings");
        let root = place.path("repository");
        fs::create_dir(&root).expect("a folder");
        let root = root.canonicalize().expect("a folder");
        let repository = Repository { place, root };
        repository.git(&["init", "-q"]);
        repository
    }

    /// Writes an executable hook.
    pub fn write_hook(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.root.join(".git/hooks").join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, content).expect("a hook");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
        file
    }

    pub fn write(&self, name: impl AsRef<Path>, content: &str) {
        write(&self.root, name, content);
    }

    /// Writes, stages and commits these files before anything is held.
    pub fn commit_files(&self, names: &[&str]) {
        for name in names {
            self.write(name, "first\n");
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "first"]);
    }

    /// Any program in a folder, without a terminal and with nothing of the tester's environment.
    pub fn command(&self, folder: &Path, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.place.command(program);
        command.current_dir(folder);
        command
    }

    pub fn run_in<A: AsRef<OsStr>>(&self, folder: &Path, words: &[A]) -> Ended {
        let mut command = self.command(folder, words[0].as_ref());
        command.args(&words[1..]);
        Running::start(command).end()
    }

    /// Runs git in the main worktree to its end, whatever it is.
    pub fn try_git(&self, arguments: &[&str]) -> Ended {
        self.try_git_in(&self.root, arguments)
    }

    pub fn try_git_in(&self, folder: &Path, arguments: &[&str]) -> Ended {
        self.run_in(folder, &[&["git"], arguments].concat())
    }

    /// Runs git, which must succeed; gives what it printed.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root, arguments)
    }

    pub fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let ended = self.try_git_in(folder, arguments);
        assert_eq!(ended.code, 0, "git {arguments:?}: {ended:?}");
        ended.stdout
    }

    /// Runs the binary under test in the main worktree, which must succeed.
    pub fn tenure(&self, arguments: &[&str]) -> Ended {
        let ended = self.run_in(&self.root, &[&[TENURE], arguments].concat());
        assert_eq!(ended.code, 0, "tenure {arguments:?}: {ended:?}");
        ended
    }

    /// Takes a lease of `holder`.
    pub fn hold(&self, arguments: &[&str]) {
        let acquire = ["acquire", "-q", "--as", "holder", "--ttl", "10m"];
        self.tenure(&[&acquire, arguments].concat());
    }

    /// Gives back all leases of `holder`.
    pub fn release(&self) {
        self.tenure(&["release", "--all", "--as", "holder"]);
    }

    /// Commits all changes.
    pub fn commit_all(&self) -> Ended {
        self.try_git(&["commit", "-q", "-a", "-m", "change"])
    }

    /// The newest commit.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }
}

pub fn write(folder: &Path, name: impl AsRef<Path>, content: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    fs::write(file, content).expect("a file");
}

/// The guard refused, and named these.
#[track_caller]
pub fn is_refused(ended: &Ended, names: &[&str]) {
    assert_eq!(ended.code, 1, "{ended:?}");
    for name in names {
        assert!(ended.stderr.contains(&format!("{name}: held by holder")), "{name}: {ended:?}");
    }
    let listed = ended.stderr.lines().filter(|line| line.contains(": held by")).count();
    assert_eq!(listed, names.len(), "{ended:?}");
    for taught in ["force", "verify", "break", "locks release"] {
        assert!(!ended.text().contains(taught), "it teaches {taught}: {ended:?}");
    }
}

/// The guard let it through without a word.
#[track_caller]
pub fn is_let_through(ended: &Ended) {
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.text().contains("tenure") && !ended.text().contains("held by"), "{ended:?}");
}
