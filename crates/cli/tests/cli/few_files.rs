//! Where only few files may be opened, one sentence says so, and nothing is half done.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn a_limit_that_is_too_low_is_named() {
    let sandbox = Sandbox::new();
    sandbox.quietly("tenure tasks add T --id t");
    let commands = [
        "status",
        "locks",
        "tasks list",
        "run x -- true",
        "update f -- echo hi",
        "work --once -- true",
        "swarm -n 2 -- true",
        "top --once",
    ];
    for command in commands {
        for limit in 5..=20 {
            let line = format!("ulimit -n {limit}; tenure {command}");
            let seen = sandbox.see(&line);
            let says_so = seen.contains("Error: not enough free file descriptors")
                && seen.ends_with("exit: 3\n")
                && seen.lines().filter(|line| line.starts_with("  ")).count() == 2;
            let looks = matches!(command, "status" | "locks" | "tasks list" | "top --once");
            let works = looks && limit >= 19 && seen.ends_with("exit: 0\n");
            assert!(says_so || works, "{seen}");
        }
    }
    let task = sandbox.data("tenure tasks show t --json");
    assert_eq!(task["task"]["attempts"], 0);
    // How many files the command inherits differs from machine to machine, so the limit does too.
    let limit = "ulimit -n $(($(ls /proc/$$/fd | wc -l) + 3))";
    let seen = sandbox.see(&format!("{limit}; tenure swarm -n 2 -- true"));
    let (before, left) = seen.split_once("the limit leaves ").unwrap();
    let after = left.trim_start_matches(|digit: char| digit.is_ascii_digit());
    assert!(after.len() < left.len(), "{seen}");
    assert_snapshot!(format!("{before}the limit leaves N{after}"));
}

#[test]
fn what_is_allowed_is_enough() {
    let sandbox = Sandbox::new();
    sandbox.quietly("tenure tasks add T --id t");
    sandbox.quietly("tenure tasks add U --id u");
    for (files, command) in [
        (16, "status"),
        (24, "run x -- true"),
        (24, "update f -- echo hi"),
        (30, "work --once -- true"),
        (36, "swarm -n 2 -- true"),
    ] {
        let limit = format!("ulimit -n $(($(ls /proc/$$/fd | wc -l) + {files}))");
        sandbox.quietly(&format!("{limit}; tenure {command}"));
    }
}
