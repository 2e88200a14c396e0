//! A wall clock that is wrong, or jumps, neither ends nor prolongs a lease.
//!
//! `faketime` moves the time of day that a process sees, and leaves the monotonic clock alone, as
//! setting the clock does.

use crate::support::{Running, StoreLocation, TENURE, until, with_moved_time};
use std::process::Command;

const SHIFTS: [&str; 3] = ["+1h", "-1h", "+0"];

/// The binary under test, with its wall clock moved.
fn shifted(place: &StoreLocation, shift: &str, arguments: &[&str]) -> Command {
    let mut command = with_moved_time(place, shift, TENURE);
    command.args(["--store", &place.url()]).args(arguments);
    command
}

fn run(place: &StoreLocation, shift: &str, arguments: &[&str]) -> crate::support::Ended {
    Running::start(shifted(place, shift, arguments)).end()
}

/// Each pair of clocks that differ.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = SHIFTS.into_iter().flat_map(|one| SHIFTS.map(|other| (one, other)));
    all.filter(|(one, other)| one != other)
}

#[test]
fn the_tests_own_tool_moves_the_clock() {
    let place = StoreLocation::new();
    let hour = |shift: &str| {
        let ended = run(&place, shift, &["--json", "acquire", &format!("lock{shift}")]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let at = ended.json()["data"]["acquired_at"].as_str().expect("a time").to_owned();
        at[11..13].parse::<u32>().expect("an hour")
    };
    let (later, earlier) = (hour("+1h"), hour("-1h"));
    // An hour may pass between the two.
    assert!([2, 1].contains(&((24 + later - earlier) % 24)), "{later} and {earlier}");
}

#[test]
fn an_hour_off_in_either_direction_does_not_end_a_lease() {
    for (holder, contender) in pairs() {
        let place = StoreLocation::new();
        let ended = run(&place, holder, &["--json", "acquire", "x", "--ttl", "10m"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let token = ended.json()["data"]["token"].to_string();
        let whose = format!("holder {holder}, contender {contender}");

        let ended = run(&place, contender, &["run", "-n", "x", "--", "true"]);
        assert_eq!(ended.code, 6, "{whose}: {ended:?}");
        let ended = run(&place, contender, &["--json", "locks", "cleanup"]);
        assert_eq!(ended.json()["data"]["locks"]["found"], 0, "{whose}");
        let ended = run(&place, contender, &["verify", "x", "--token", &token]);
        assert_eq!(ended.code, 0, "{whose}: {ended:?}");
    }
}

#[test]
fn an_hour_off_in_either_direction_does_not_prolong_a_lease() {
    for (holder, contender) in pairs() {
        let place = StoreLocation::new();
        let ended = run(&place, holder, &["acquire", "x", "--ttl", "500ms"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let ended = run(&place, contender, &["--json", "acquire", "x", "-w", "50"]);
        assert_eq!(ended.code, 0, "holder {holder}, contender {contender}: {ended:?}");
        assert_eq!(ended.json()["data"]["reason"], "claimed_expired");
    }
}

#[test]
fn a_clock_that_jumps_while_a_command_runs_does_not_end_its_lease() {
    let place = StoreLocation::new();
    let preload = Running::start({
        let mut command = with_moved_time(&place, "+0", "sh");
        command.args(["-c", "printf %s \"$LD_PRELOAD\""]);
        command
    });
    let jump = |to: &str| {
        std::fs::write(place.path("clock.new"), format!("{to}\n")).expect("a clock");
        std::fs::rename(place.path("clock.new"), place.path("clock")).expect("a clock");
    };
    jump("+0");
    let script = "touch $D/begun; while [ ! -e $D/go ]; do sleep 0.02; done; exit 7";
    let mut command = place.tenure(&["run", "--ttl", "3s", "x", "--", "sh", "-c", script]);
    command.env("LD_PRELOAD", preload.end().stdout);
    command.env("FAKETIME_TIMESTAMP_FILE", place.path("clock"));
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let holder = Running::start(command);
    place.wait_for("begun");

    let renewed = || place.why("x")["holders"][0]["heartbeat_at"].to_string();
    for to in ["+1h", "-1h", "-60y", "+1h"] {
        jump(to);
        // The time of a renewal is shown as the holder sees it.
        let before = renewed();
        until("a renewal under the new clock", || (renewed() != before).then_some(()));
        assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 6, "after {to}");
    }
    place.touch("go");
    let ended = holder.end();
    assert_eq!(ended.code, 7, "{ended:?}");
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
}
