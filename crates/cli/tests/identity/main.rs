//! One agent is one owner: real processes that stand for agents' programs, with shell commands and MCP
//! servers below them, in stores of this machine and through a server.
//!
//! An agent's program is a copy of the shell under the program's name.

#![allow(clippy::print_stdout, reason = "what other tests share tells seeds")]
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests stand outside the layers")]

#[path = "../mcp/agent.rs"]
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod agent;
mod commands;
mod programs;
#[path = "../remote/server.rs"]
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod server;
mod sessions;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use all of it")]
mod support;
mod tools;

use std::process::Command;
use support::{Ended, Running, StoreLocation};

/// A shell that will run this script, with the identity of its commands found as usual; `$S` names the
/// store.
fn shell(place: &StoreLocation, store: &str, script: &str) -> Command {
    by_program(place, "/bin/sh", store, script)
}

/// As [`shell`], in a copy of the shell that is called like an agent's program.
fn program(place: &StoreLocation, name: &str, script: &str) -> Command {
    let folder = place.path("bin");
    std::fs::create_dir_all(&folder).expect("a folder for programs");
    let copy = folder.join(name);
    if !copy.exists() {
        std::fs::copy("/bin/sh", &copy).expect("a copy of the shell");
    }
    let copy = copy.to_str().expect("a plain path").to_owned();
    by_program(place, &copy, &place.url(), script)
}

fn by_program(place: &StoreLocation, program: &str, store: &str, script: &str) -> Command {
    let mut command = place.command(program);
    // The last command is not to replace the shell.
    command.args(["-c", &format!("{script}\ntrue")]);
    command.env("TENURE_IDENTITY", "auto").env("TENURE_STORE", store);
    command
}

fn end(command: Command) -> Ended {
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    ended
}

/// The labels of all that is held, each once.
fn holders(place: &StoreLocation) -> Vec<String> {
    let locks = place.json(&["locks"]);
    let lists = ["locks", "path_locks", "task_locks", "section_locks"];
    let holds = lists.iter().flat_map(|name| locks[*name].as_array().cloned().unwrap_or_default());
    let labels = holds.map(|hold| hold["holder"].as_str().expect("a label").to_owned());
    let mut labels: Vec<String> = labels.collect();
    labels.sort();
    labels.dedup();
    labels
}
