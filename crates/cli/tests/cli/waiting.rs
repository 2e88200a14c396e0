//! What is seen while a command waits; and `tenure wait`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn a_script_gets_one_line() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    let waiter = sandbox.waiter("tenure run deploy --as bob -- echo done");
    let next = sandbox.waiter("tenure run deploy --as carol -- echo done");
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    let (waiter, next) = (waiter.ends_by_itself(), next.ends_by_itself());
    assert_snapshot!(format!("{waiter}\n{next}"));
}

#[test]
fn json_gives_one_object_on_stderr() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("db --as alice --operation migrate");
    let waiter = sandbox.waiter("tenure acquire db cache --as bob --json");
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    assert_snapshot!(waiter.ends_by_itself());
}

#[test]
fn a_person_sees_a_bar_and_then_that_it_is_over() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    let screen = sandbox.terminal("tenure run deploy --as bob -- echo done");
    screen.shows("you are next");
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    assert_snapshot!(screen.end());
}

#[test]
fn a_person_who_runs_into_the_limit_is_told_so() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice");
    assert_snapshot!(sandbox.terminal("tenure run -w 0.4 deploy -- echo never").end());
}

#[test]
fn a_person_sees_nothing_of_it_when_it_is_free_or_quiet() {
    let sandbox = Sandbox::new();
    sandbox.acquire("db --as alice");
    let free = sandbox.terminal("tenure run deploy -- echo done").end();
    let quiet = sandbox.terminal("tenure run -q -w 0.3 db -- echo never").end();
    assert_snapshot!(format!("{free}\n{quiet}"));
}

#[test]
fn wait_until_it_is_free() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    let people = sandbox.waiter("tenure wait deploy");
    let script = sandbox.waiter("tenure wait deploy --json");
    let screen = sandbox.terminal("tenure wait deploy");
    screen.shows("held by");
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    let (people, script) = (people.ends_by_itself(), script.ends_by_itself());
    assert_snapshot!(format!("{people}\n{script}\non a terminal:\n{}", screen.end()));
}

#[test]
fn wait_for_what_is_free() {
    let sandbox = Sandbox::new();
    sandbox.lapsed("db", "");
    assert_snapshot!(sandbox.see_all(&[
        "tenure wait deploy",
        "tenure wait deploy --json",
        "tenure wait -q deploy",
        "tenure wait -n db",
    ]));
}

#[test]
fn wait_for_what_stays_held() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    assert_snapshot!(sandbox.see_all(&[
        "tenure wait -n deploy",
        "tenure wait -n deploy --json",
        "tenure wait -w 0.3 deploy",
    ]));
}

#[test]
fn at_80_columns_whose_turn_it_is_and_who_holds_it_can_be_read() {
    let sandbox = Sandbox::new();
    let operation = "a release with a long description that does not fit into the line";
    let grant = sandbox.acquire(&format!("deploy --as alice --operation '{operation}'"));
    let screen = sandbox.narrow_terminal("tenure run deploy --as bob -- echo done", 80);
    screen.shows("you are next");
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    let shown = screen.end();
    let line = shown.lines().find(|line| line.starts_with("Waiting for deploy")).unwrap();
    assert!(line.starts_with("Waiting for deploy, you are next; held by alice for "), "{shown}");
}

#[test]
fn the_age_of_a_hold_goes_on_while_one_waits() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("deploy --as alice");
    let screen = sandbox.terminal("tenure run deploy --as bob -- echo done");
    let ages = || {
        let sent = screen.sent();
        let ages = sent.split("; held by ").skip(1).filter_map(|rest| {
            let rest = rest.split_once(" for ")?.1;
            rest.split_once(['\u{1b}', '\r', ' ', ':']).map(|(age, _)| age.to_owned())
        });
        ages.collect::<std::collections::BTreeSet<String>>()
    };
    // Nothing happens in the store meanwhile.
    crate::snapshot_support::until("three ages", || ages().len() >= 3);
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    screen.end();
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    let screen = sandbox.terminal("env TERM=dumb tenure run deploy --as bob -- echo done");
    screen.shows("you are next");
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    let (code, shown) = screen.ended();
    assert_eq!(code, 0);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert!(shown.starts_with("Waiting for deploy, you are next; held by alice for "), "{shown:?}");
    assert!(shown.ends_with(": \"release 1.2\"\r\ndone\r\n"), "{shown:?}");
}
