//! Whose commit it is: agents, their subagents, and people at a terminal.

use crate::repository::{Repository, is_let_through};
use crate::support::{Ended, Running};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A program with the name of an agent's program that runs lines of shell: a copy of the shell.
fn program(repository: &Repository, name: &str) -> PathBuf {
    let program = repository.place.path(name);
    if !program.exists() {
        fs::copy("/bin/sh", &program).expect("a copy of the shell");
    }
    program
}

/// A process that runs a line of shell. After the line it goes on, so that it is not replaced by the
/// last command.
fn running(repository: &Repository, program: PathBuf, line: &str) -> Command {
    let mut command = repository.command(&repository.root, program);
    command.args(["-c", &format!("{line}; code=$?; exit $code")]).env("TENURE_IDENTITY", "auto");
    command
}

/// An agent that acquires `a`, then runs a line.
fn agent(repository: &Repository, name: &str, line: &str) -> Command {
    running(repository, program(repository, name), line)
}

const ACQUIRE: &str = "\"$T\" acquire -q path:a >/dev/null";
const COMMIT: &str = "git commit -q -a -m change";

#[track_caller]
fn is_refused(ended: &Ended) {
    assert!(ended.code == 1 && ended.stderr.contains("  a: held by "), "{ended:?}");
}

#[test]
fn an_agent_commits_what_it_holds_and_no_other_agent_does() {
    let repository = Repository::with_files(&["a"]);
    repository.write("a", "second\n");
    let line = format!("{ACQUIRE} && touch \"$D/held\"; sleep 600");
    let holder = Running::start(agent(&repository, "claude", &line));
    repository.place.wait_for("held");
    is_refused(&Running::start(agent(&repository, "claude", COMMIT)).end());
    is_refused(&Running::start(agent(&repository, "codex", COMMIT)).end());
    // What the agent held ends with it.
    holder.kill();
    is_let_through(&Running::start(agent(&repository, "codex", COMMIT)).end());
    repository.write("a", "third\n");
    let line = format!("{ACQUIRE} && {COMMIT}");
    is_let_through(&Running::start(agent(&repository, "claude", &line)).end());
}

#[test]
fn the_session_is_the_same_in_all_processes_of_an_agent() {
    let repository = Repository::with_files(&["a"]);
    repository.write("a", "second\n");
    let in_session = |session: &str, line: &str| {
        let mut command = agent(&repository, "claude", line);
        command.env("CLAUDE_CODE_SESSION_ID", session);
        Running::start(command)
    };
    let holder = in_session("one", &format!("{ACQUIRE} && touch \"$D/held\"; sleep 600"));
    repository.place.wait_for("held");
    is_refused(&in_session("two", COMMIT).end());
    is_let_through(&in_session("one", COMMIT).end());
    holder.kill();
}

#[test]
fn subagents_exclude_each_other_but_not_their_agent() {
    let repository = Repository::with_files(&["a"]);
    repository.write("a", "second\n");
    let in_thread = |thread: &str, line: &str| {
        let mut command = agent(&repository, "codex", line);
        command.env("CODEX_SESSION_ID", "root").env("CODEX_THREAD_ID", thread);
        Running::start(command)
    };
    let holder = in_thread("one", &format!("{ACQUIRE} && touch \"$D/held\"; sleep 600"));
    repository.place.wait_for("held");
    is_refused(&in_thread("two", COMMIT).end());
    is_let_through(&in_thread("root", COMMIT).end());
    repository.write("a", "third\n");
    is_let_through(&in_thread("one", COMMIT).end());
    holder.kill();
}

#[test]
fn a_shell_commits_what_it_holds() {
    let repository = Repository::with_files(&["a"]);
    repository.write("a", "second\n");
    let line = format!("{ACQUIRE} && {COMMIT}");
    is_let_through(&Running::start(running(&repository, "/bin/sh".into(), &line)).end());
}
