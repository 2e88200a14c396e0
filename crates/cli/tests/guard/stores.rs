//! Stores that are missing, broken, slow or on a server. A commit is stopped by a conflict only.

use crate::repository::{Repository, is_let_through, is_refused};
use crate::server::Server;
use crate::support::{Ended, Running, Signal};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// The guard let it through and said in one sentence that it could not judge.
#[track_caller]
fn is_not_checked(ended: &Ended) {
    assert_eq!(ended.code, 0, "{ended:?}");
    let sentences: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("tenure guard: not checked: "))
        .collect();
    assert_eq!((sentences.len(), ended.stderr.lines().count()), (1, 1), "{ended:?}");
}

#[test]
fn without_a_store_nothing_is_said_and_nothing_is_created() {
    let repository = Repository::with_files(&["a"]);
    repository.write("a", "second\n");
    is_let_through(&repository.commit_all());
    assert!(!repository.root.join(".tenure").exists());
    assert!(!repository.place.path("home/.local").exists());
}

/// The names and contents of the files below a folder, but for the memory that SQLite's readers and
/// writers share, in which a reader says how far it reads.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            contents.extend(self::contents(&path));
        } else if path.is_file() && path.extension().is_none_or(|extension| extension != "db-shm") {
            contents.insert(path.clone(), fs::read(&path).expect("a file"));
        } else {
            contents.insert(path, Vec::new());
        }
    }
    contents
}

#[test]
fn judging_writes_nothing() {
    let repository = Repository::with_files(&["a"]);
    repository.hold(&["path:a"]);
    repository.write("a", "second\n");
    let before = contents(&repository.root.join(".tenure"));
    is_refused(&repository.commit_all(), &["a"]);
    let after = contents(&repository.root.join(".tenure"));
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let changed = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes));
    assert_eq!(changed.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
}

#[test]
fn what_cannot_be_read_lets_the_commit_through() {
    let repository = Repository::with_files(&["a"]);
    repository.hold(&["path:a"]);
    let mut step = 0;
    let mut commit = |variables: &[(&str, &str)]| {
        step += 1;
        repository.write("a", &format!("step {step}\n"));
        let mut command = repository.command(&repository.root, "git");
        command.args(["commit", "-q", "-a", "-m", "change"]);
        command.envs(variables.iter().copied());
        Running::start(command).end()
    };
    is_refused(&commit(&[]), &["a"]);
    is_not_checked(&commit(&[("TENURE_STORE", "sqlite:/nowhere/at/all.db")]));
    is_not_checked(&commit(&[("TENURE_STORE", "http://127.0.0.1:1")]));
    is_not_checked(&commit(&[("TENURE_STORE", "nonsense:x")]));
    is_not_checked(&commit(&[("TENURE_TASK_TIMEOUT", "5 parsecs")]));
    fs::write(repository.root.join(".tenure/tenure.db"), "no database\n").expect("garbage");
    is_not_checked(&commit(&[]));
}

#[test]
fn a_project_that_is_not_trusted_does_not_turn_the_guard_off() {
    let repository = Repository::with_files(&["a"]);
    repository.hold(&["path:a"]);
    let settings = repository.root.join(".tenure/config.yaml");
    let store = "store: sqlite:/etc/elsewhere.db";
    for text in ["a: [", store, "agent: holder", "identity: off", "hooks: {policy: off}", "no: 1"] {
        fs::write(&settings, text).expect("settings");
        repository.write("a", text);
        is_refused(&repository.commit_all(), &["a"]);
    }
}

#[test]
fn a_server_that_does_not_answer_lets_the_commit_through() {
    let repository = Repository::with_files(&["a"]);
    repository.write("a", "second\n");
    // It accepts connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let mut command = repository.command(&repository.root, "git");
    command.args(["commit", "-q", "-a", "-m", "change"]).env("TENURE_STORE", url);
    is_not_checked(&Running::start(command).end());
}

#[test]
fn a_stopped_writer_is_not_waited_for() {
    let repository = Repository::with_files(&["a"]);
    repository.hold(&["path:a"]);
    let mut command = repository.command(&repository.root, crate::support::TENURE);
    command.args(["run", "--as", "holder", "x", "--"]);
    command.args(["sh", "-c", "touch \"$D/held\"; exec sleep 600"]);
    let holder = Running::start(command);
    repository.place.wait_for("held");
    holder.signal(Signal::STOP);
    repository.write("a", "second\n");
    is_refused(&repository.commit_all(), &["a"]);
}

#[test]
fn holds_on_a_server_count() {
    let repository = Repository::with_files(&["a"]);
    let server = Server::start(&repository.place);
    let with_server = |words: &[&str]| {
        let mut command = repository.command(&repository.root, words[0]);
        command.args(&words[1..]).env("TENURE_STORE", server.url());
        Running::start(command).end()
    };
    let acquire = [crate::support::TENURE, "acquire", "-q", "--as", "holder", "path:*"];
    assert_eq!(with_server(&acquire).code, 0);
    repository.write("a", "second\n");
    is_refused(&with_server(&["git", "commit", "-q", "-a", "-m", "change"]), &["a"]);
    let mut command = repository.command(&repository.root, "git");
    command.args(["commit", "-q", "-a", "-m", "change"]);
    command.env("TENURE_STORE", server.url()).env("TENURE_AGENT", "holder");
    is_let_through(&Running::start(command).end());
}
