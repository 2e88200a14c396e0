//! Containers that share a store: processes that count processes, or time, differently. Where no
//! namespaces can be made, the tests say so and show nothing.

use crate::support::{Ended, Engine, Running, Signal, StoreLocation, TENURE, signal};
use std::process::Command;

/// A program in namespaces of its own.
fn unshare(place: &StoreLocation, options: &[&str]) -> Command {
    let mut command = place.command("unshare");
    command.args(["--user", "--map-root-user", "--fork"]).args(options);
    command
}

/// Whether such namespaces can be made here.
fn can_unshare(place: &StoreLocation, options: &[&str]) -> bool {
    let mut command = unshare(place, options);
    command.arg("true");
    let able = crate::support::is_installed("unshare") && Running::start(command).end().code == 0;
    if !able {
        crate::support::skip(&format!("no namespaces with {options:?} can be made here"));
    }
    able
}

fn tenure_in(place: &StoreLocation, options: &[&str], arguments: &[&str]) -> Command {
    let mut command = unshare(place, options);
    command.arg(TENURE).args(["--store", &place.url()]).args(arguments);
    command
}

fn run_in(place: &StoreLocation, options: &[&str], arguments: &[&str]) -> Ended {
    Running::start(tenure_in(place, options, arguments)).end()
}

const LATER: &[&str] = &["--time", "--monotonic", "100000"];
const HERE: &[&str] = &[];

#[test]
fn a_container_with_a_clock_of_its_own_neither_ends_nor_prolongs_a_lease() {
    // No clock can be before the start of the machine.
    let uptime = std::fs::read_to_string("/proc/uptime").expect("the time since the start");
    let uptime: f64 = uptime.split('.').next().expect("seconds").parse().expect("seconds");
    let back = format!("-{}", (uptime / 2.0).min(1000.0) as u32);
    let earlier = &["--time", "--monotonic", &back][..];
    for (holder, contender) in [(HERE, LATER), (LATER, HERE), (HERE, earlier), (earlier, HERE)] {
        let place = StoreLocation::new();
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
        let place = StoreLocation::new();
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
    let place = StoreLocation::new();
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

const BOOTED_EARLIER: &[&str] = &["--time", "--boottime", "100000"];
const BOOTED_LATER: &[&str] = &["--time", "--boottime", "-3"];

#[test]
fn a_process_is_known_by_its_start_whatever_the_clock_of_its_container_shows() {
    let words = ["run", "--ttl", "1h", "x", "--", "sh", "-c", "touch $D/begun; exec sleep 300"];
    let spaces = [HERE, BOOTED_EARLIER, BOOTED_LATER];
    for (holder, contender) in spaces.iter().flat_map(|one| spaces.map(|other| (*one, other))) {
        let place = StoreLocation::new();
        if !can_unshare(&place, BOOTED_EARLIER) {
            return;
        }
        let whose = format!("holder {holder:?}, contender {contender:?}");
        let running = Running::start(tenure_in(&place, holder, &words));
        place.wait_for("begun");
        let ended = run_in(&place, contender, &["run", "-n", "x", "--", "true"]);
        assert_eq!(ended.code, 6, "{whose}: {ended:?}");
        let ended = run_in(&place, contender, &["--json", "locks", "cleanup"]);
        assert_eq!(ended.json()["data"]["locks"]["found"], 0, "{whose}: {ended:?}");
        for pid in place.processes() {
            signal(pid, Signal::KILL);
        }
        running.end();
        // It is known to be dead as well, long before its lease ends.
        let ended = run_in(&place, contender, &["--json", "acquire", "-w", "50", "x"]);
        assert_eq!(ended.code, 0, "{whose}: {ended:?}");
        assert_eq!(ended.json()["data"]["reason"], "claimed_dead", "{whose}");
    }
}

/// A command where `/proc` shows processes and nothing else, as services with `ProcSubset=pid` see
/// it.
fn without_boot_id(place: &StoreLocation, arguments: &[&str]) -> Ended {
    let mut command = unshare(place, &["--mount"]);
    let script = "mount -t tmpfs tmpfs /proc/sys && exec \"$@\"";
    command.args(["sh", "-c", script, "sh", TENURE, "--store", &place.url()]).args(arguments);
    Running::start(command).end()
}

#[test]
fn a_process_that_sees_no_boot_id_reboots_nothing() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let place = StoreLocation::with(engine);
        if !can_unshare(&place, &["--mount"]) {
            return;
        }
        let doctor = without_boot_id(&place, &["doctor"]);
        let unread = "cannot read boot id or process start";
        assert!(doctor.text().contains(unread), "the boot id can be read: {doctor:?}");
        let mut tokens = Vec::new();
        for round in 0..3 {
            let words = ["--json", "acquire", &format!("here-{round}"), "--ttl", "1h"];
            for ended in [place.run(&words), without_boot_id(&place, &words.map(elsewhere))] {
                assert_eq!(ended.code, 0, "{engine:?}: {ended:?}");
                tokens.push(ended.json()["data"]["token"].as_u64().expect("a token"));
            }
        }
        let dense: Vec<u64> = (tokens[0]..).take(tokens.len()).collect();
        assert_eq!(tokens, dense, "{engine:?}: tokens jumped");
        let events = place.run(&["--json", "events"]);
        assert!(!events.stdout.contains("rebooted"), "{engine:?}: {events:?}");
        // A lease ends in its time, whoever looks.
        let ended = without_boot_id(&place, &["acquire", "short", "--ttl", "500ms"]);
        assert_eq!(ended.code, 0, "{engine:?}: {ended:?}");
        let ended = place.run(&["run", "-w", "50", "short", "--", "true"]);
        assert_eq!(ended.code, 0, "{engine:?}: {ended:?}");
        // A living process there is not taken for dead, and neither is one here.
        let script = "touch $D/begun; while [ ! -e $D/go ]; do sleep 0.02; done";
        let holder = place.start(&["run", "--ttl", "1h", "x", "--", "sh", "-c", script]);
        place.wait_for("begun");
        let ended = without_boot_id(&place, &["run", "-n", "x", "--", "true"]);
        assert_eq!(ended.code, 6, "{engine:?}: {ended:?}");
        place.touch("go");
        assert_eq!(holder.end().code, 0, "{engine:?}");
    }
}

/// Another name for what is taken elsewhere.
fn elsewhere(word: &str) -> &str {
    word.strip_prefix("here-").unwrap_or(word)
}
