//! `tenure top`, on a terminal and off it.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};

/// A lock, somebody who waits for it, a task in progress and two more.
fn busy() -> (Sandbox, impl Sized) {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice --operation 'release 4.2'");
    sandbox.quietly("tenure tasks add 'Write the importer' --id t-1 --section backend --as boss");
    sandbox.quietly("tenure tasks add 'Read it again' --id t-2 --section backend --as boss");
    sandbox.quietly("tenure tasks claim --as worker-1");
    let waiter = sandbox.waiter("tenure run deploy --as bob --operation hotfix -- true");
    (sandbox, waiter)
}

#[test]
fn one_snapshot() {
    let (sandbox, _waiter) = busy();
    assert_snapshot!(sandbox.see("tenure top --once"));
}

#[test]
fn one_snapshot_in_json() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice --operation 'release 4.2'");
    sandbox.quietly("tenure tasks add 'Write the importer' --id t-1 --section backend --as boss");
    assert_snapshot!(sandbox.see("tenure top --json"));
}

#[test]
fn off_a_terminal_and_without_a_store_it_prints_and_ends() {
    assert_snapshot!(Sandbox::bare().see("tenure top"));
}

/// What a view sends when it has given the terminal back.
const LEFT: &str = "\u{1b}[?1049l";

#[test]
fn a_lock_taken_elsewhere_appears_and_q_gives_the_terminal_back() {
    let sandbox = Sandbox::repository();
    let mut screen = sandbox.screen("tenure top");
    screen.displays("no store yet");
    sandbox.acquire("release-train --as alice --operation shipping");
    screen.displays("● live");
    screen.displays("release-train");
    screen.displays("alice");
    screen.displays("shipping");
    sandbox.quietly("tenure release release-train --as alice");
    screen.displays("nothing is held");
    screen.types("4");
    screen.displays("alice released release-train (token 1)");
    screen.types("q");
    let (code, shown) = screen.ended();
    assert_eq!(code, 0);
    assert!(shown.contains(LEFT) && shown.contains("\u{1b}[?25h"), "{shown:?}");
    assert!(shown.contains("\u{1b}[38;5;"), "colours on a terminal: {shown:?}");
}

#[test]
fn told_to_end_it_gives_the_terminal_back() {
    let sandbox = Sandbox::new();
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let screen = sandbox.screen("tenure top");
        screen.displays("nothing is held");
        kill_process(Pid::from_raw(screen.pid() as i32).unwrap(), signal).unwrap();
        let (ended, shown) = screen.ended();
        assert_eq!(ended, code);
        assert!(shown.contains(LEFT), "{shown:?}");
    }
    let mut screen = sandbox.screen("tenure top");
    screen.displays("nothing is held");
    screen.types("\u{3}");
    assert_eq!(screen.ended().0, 0);
}

#[test]
fn colours_can_be_turned_off() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    for line in ["env NO_COLOR=1 tenure top", "tenure top --no-color"] {
        let mut screen = sandbox.screen(line);
        screen.displays("alice");
        screen.types("q");
        let (_, shown) = screen.ended();
        assert!(!shown.contains("\u{1b}[38;5;"), "{shown:?}");
    }
}

#[test]
fn a_store_that_was_named_must_be_there() {
    assert_snapshot!(Sandbox::bare().see("tenure top --store sqlite:none.db"));
}
