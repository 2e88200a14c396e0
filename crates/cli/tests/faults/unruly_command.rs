//! Commands that will not go when the lease is lost: they go all the same.

use crate::support::{Running, Signal, StoreLocation, full_pipe};
use std::process::Stdio;

/// Each leaves a process that says that it is there, in a file of its own, and stays.
const UNRULY: [(&str, &str); 6] = [
    ("ignores SIGTERM", "trap '' TERM; touch $D/here; while :; do sleep 1; done"),
    (
        "forks and detaches",
        "setsid -f sh -c 'touch $D/here; exec sleep 300'; while :; do sleep 1; done",
    ),
    (
        "detaches twice, ignoring SIGTERM",
        "(setsid sh -c '(setsid sh -c \"trap : TERM; touch $D/here; while :; do sleep 1; done\" &)' &);
         while :; do sleep 1; done",
    ),
    ("floods stdout", "touch $D/here; yes"),
    ("closes stdin and the rest", "exec 0<&- 1>&- 2>&-; touch $D/here; while :; do sleep 1; done"),
    (
        "all of it",
        "trap '' TERM; setsid -f sh -c 'trap \"\" TERM; yes & exec 0<&-; while :; do sleep 1; done';
         yes & exec 0<&-; touch $D/here; while :; do sleep 1; done",
    ),
];

/// Its lease is broken by an operator: tenure says so by its exit code, and nothing is left.
fn lose(name: &str, script: &str, stdout: Stdio) {
    let place = StoreLocation::new();
    let words = ["run", "--ttl", "3s", "--grace", "100ms", "x", "--", "sh", "-c", script];
    let holder = Running::start_unheard(place.tenure(&words), stdout);
    place.wait_for("here");
    let ended = place.run(&["break", "x", "--force", "--reason", "test"]);
    assert_eq!(ended.code, 0, "{name}: {ended:?}");
    let ended = holder.end();
    assert_eq!(ended.code, 8, "{name}: {ended:?}");
    assert!(ended.stderr.contains("was lost"), "{name}: {ended:?}");
    let left = place.processes();
    assert!(left.is_empty(), "{name}: {left:?}");
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0, "{name}");
}

#[test]
fn nothing_of_an_unruly_command_survives_the_loss_of_its_lease() {
    std::thread::scope(|scope| {
        for (name, script) in UNRULY {
            scope.spawn(move || lose(name, script, Stdio::null()));
        }
    });
}

#[test]
fn a_flood_that_nobody_reads_does_not_keep_a_command_from_being_stopped() {
    for (name, script) in UNRULY.iter().filter(|(_, script)| script.contains("yes")) {
        lose(name, script, Stdio::piped());
    }
}

#[test]
fn a_worker_whose_output_nobody_reads_stops_when_it_is_told_to_and_returns_its_task() {
    let script = "touch $D/here; while :; do echo one; echo two >&2; done";
    for is_stderr in [false, true] {
        let place = StoreLocation::new();
        assert_eq!(place.run(&["tasks", "add", "T"]).code, 0);
        let (_reader, writer) = full_pipe();
        let words = ["work", "--grace", "100ms", "--", "sh", "-c", script];
        let worker = match is_stderr {
            true => Running::start_mute(place.tenure(&words), writer),
            false => Running::start_unheard(place.tenure(&words), writer.into()),
        };
        place.wait_for("here");
        worker.signal(Signal::TERM);
        let ended = worker.end();
        let tasks = place.json(&["tasks", "list"]);
        assert_eq!(tasks["tasks"][0]["status"], "pending", "{ended:?}");
        assert_eq!(place.processes(), Vec::<u32>::new());
    }
}
