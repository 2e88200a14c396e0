//! Containers that share a store: processes that count processes, or time, differently. Where no
//! namespaces can be made, the tests say so and show nothing.

use crate::support::{Ended, Place, Running, Signal, TENURE, signal};
use std::process::Command;

/// A program in namespaces of its own.
fn unshare(place: &Place, options: &[&str]) -> Command {
    let mut command = place.command("unshare");
    command.args(["--user", "--map-root-user", "--fork"]).args(options);
    command
}

/// Whether such namespaces can be made here.
fn can_unshare(place: &Place, options: &[&str]) -> bool {
    let mut command = unshare(place, options);
    command.arg("true");
    let able = crate::support::is_installed("unshare") && Running::start(command).end().code == 0;
    if !able {
        println!("skipped: no namespaces with {options:?} can be made here");
    }
    able
}

fn tenure_in(place: &Place, options: &[&str], arguments: &[&str]) -> Command {
    let mut command = unshare(place, options);
    command.arg(TENURE).args(["--store", &place.url()]).args(arguments);
    command
}

fn run_in(place: &Place, options: &[&str], arguments: &[&str]) -> Ended {
    Running::start(tenure_in(place, options, arguments)).end()
}

const LATER: &[&str] = &["--time", "--monotonic", "100000"];
const EARLIER: &[&str] = &["--time", "--monotonic", "-1000"];
const HERE: &[&str] = &[];

#[test]
fn a_container_with_a_clock_of_its_own_neither_ends_nor_prolongs_a_lease() {
    for (holder, contender) in [(HERE, LATER), (LATER, HERE), (HERE, EARLIER), (EARLIER, HERE)] {
        let place = Place::new();
        if !can_unshare(&place, LATER) {
            return;
        }
        let whose = format!("holder {holder:?}, contender {contender:?}");
        let ended = run_in(&place, holder, &["acquire", "long", "--ttl", "10m"]);
        assert_eq!(ended.code, 0, "{whose}: {ended:?}");
        let ended = run_in(&place, contender, &["run", "-n", "long", "--", "true"]);
        assert_eq!(ended.code, 6, "{whose}: {ended:?}");
        let ended = run_in(&place, holder, &["acquire", "short", "--ttl", "500ms"]);
        assert_eq!(ended.code, 0, "{whose}: {ended:?}");
        let ended = run_in(&place, contender, &["run", "-w", "50", "short", "--", "true"]);
        assert_eq!(ended.code, 0, "{whose}: {ended:?}");
    }
}

const PROCESSES: &[&str] = &["--pid", "--mount-proc"];
/// Here `/proc` goes on showing the processes of the outside.
const PROCESSES_BLINDLY: &[&str] = &["--pid"];

#[test]
fn a_process_of_another_container_is_not_taken_for_dead() {
    let script = "touch $D/begun; while [ ! -e $D/go ]; do sleep 0.02; done";
    let words = ["run", "--ttl", "10m", "x", "--", "sh", "-c", script];
    let spaces = [HERE, PROCESSES, PROCESSES_BLINDLY];
    for (holder, contender) in spaces.iter().flat_map(|one| spaces.map(|other| (*one, other))) {
        let place = Place::new();
        if !can_unshare(&place, PROCESSES) {
            return;
        }
        let whose = format!("holder {holder:?}, contender {contender:?}");
        let running = Running::start(tenure_in(&place, holder, &words));
        place.wait_for("begun");
        let ended = run_in(&place, contender, &["run", "-n", "x", "--", "true"]);
        assert_eq!(ended.code, 6, "{whose}: {ended:?}");
        let ended = run_in(&place, contender, &["--json", "locks", "cleanup"]);
        assert_eq!(ended.json()["data"]["locks"]["found"], 0, "{whose}: {ended:?}");
        place.touch("go");
        assert_eq!(running.end().code, 0, "{whose}");
        assert_eq!(run_in(&place, contender, &["run", "-n", "x", "--", "true"]).code, 0, "{whose}");
    }
}

#[test]
fn a_process_that_died_in_another_container_is_replaced_when_its_lease_ends() {
    let place = Place::new();
    if !can_unshare(&place, PROCESSES) {
        return;
    }
    let script = "touch $D/begun; exec sleep 300";
    let words = ["run", "--ttl", "2s", "x", "--", "sh", "-c", script];
    let holder = Running::start(tenure_in(&place, PROCESSES, &words));
    place.wait_for("begun");
    // The first process of a container takes all others with it.
    for pid in place.processes() {
        signal(pid, Signal::KILL);
    }
    holder.end();
    let ended = place.run(&["--json", "acquire", "-w", "50", "x"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.json()["data"]["reason"], "claimed_expired");
}
