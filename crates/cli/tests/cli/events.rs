//! `tenure events`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use rustix::process::Signal;

/// A little of everything.
fn eventful() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.quietly("tenure run deploy --as alice --operation 'release 1.2' -- true");
    sandbox.lapsed("task:7", "--as bob");
    sandbox.acquire("task:7 --as carol");
    let _ = sandbox.see("tenure run -w 0.3 task:7 --as dave -- true");
    sandbox.quietly("tenure break task:7 --force --reason 'wrong branch' --as operator");
    sandbox.dead("deploy", "--as erin");
    sandbox.quietly("tenure locks cleanup");
    sandbox
}

#[test]
fn all() {
    assert_snapshot!(eventful().see("tenure events"));
}

#[test]
fn all_in_json() {
    assert_snapshot!(eventful().see("tenure events --json"));
}

#[test]
fn chosen() {
    let sandbox = eventful();
    assert_snapshot!(sandbox.see_all(&[
        "tenure events deploy",
        "tenure events --last 2",
        "tenure events --last 0",
        "tenure events --after 5",
        "tenure events --after 5 --json task:7",
        "tenure events --after 1000",
        "tenure events unheld",
        "tenure events --after 5 --last 2",
    ]));
}

#[test]
fn none() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&["tenure events", "tenure events --json"]));
}

#[test]
fn followed() {
    let sandbox = Sandbox::new();
    sandbox.quietly("tenure run before --as alice -- true");
    let people = sandbox.background("tenure events --follow");
    let script = sandbox.background("tenure events deploy --follow --json --last 0");
    people.printed("alice released before");
    sandbox.quietly("tenure run other --as bob -- true");
    sandbox.quietly("tenure run deploy --as bob -- true");
    people.printed("bob released deploy");
    script.printed("\"released\"");
    people.signal(Signal::TERM);
    script.signal(Signal::TERM);
    let (people, script) = (people.ends_by_itself(), script.ends_by_itself());
    assert_snapshot!(format!("{people}\n{script}"));
}
