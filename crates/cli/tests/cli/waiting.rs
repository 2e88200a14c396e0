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
