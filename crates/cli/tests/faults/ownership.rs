//! Whose a lock is, for how long, and what those are told whose it is not.

use crate::support::{Running, Signal, StoreLocation, signal, until};

/// Holds `x` until there is a file `go`.
const HOLDING: [&str; 3] =
    ["sh", "-c", "echo $$ >$D/command; while [ ! -e $D/go ]; do sleep 0.02; done"];

fn is_free(place: &StoreLocation, resource: &str) -> bool {
    let ended = place.run(&["run", "-n", resource, "--", "true"]);
    assert!([0, 6].contains(&ended.code), "{ended:?}");
    ended.code == 0
}

/// A process of which it is up to the test when it ends.
fn sleeper(place: &StoreLocation) -> Running {
    let mut command = place.command("sleep");
    command.arg("300");
    Running::start(command)
}

#[test]
fn a_background_grandchild_inherits_nothing_that_keeps_a_lock() {
    let place = StoreLocation::new();
    let script = "sleep 300 & echo $! >$D/grandchild; exit 0";
    assert_eq!(place.run(&["run", "x", "--", "sh", "-c", script]).code, 0);
    let grandchild = place.number("grandchild");
    let open = std::fs::read_dir(format!("/proc/{grandchild}/fd")).expect("its descriptors");
    let open: Vec<_> = open.filter_map(|entry| entry.ok()?.path().read_link().ok()).collect();
    assert!(!open.is_empty());
    let inherited: Vec<_> = open.iter().filter(|file| file.starts_with(place.path(""))).collect();
    assert!(inherited.is_empty(), "{inherited:?}");
    assert!(is_free(&place, "x"));
    signal(grandchild, Signal::KILL);
}

#[test]
fn a_keep_alive_does_not_outlive_its_worker() {
    let place = StoreLocation::new();
    let words = [&["run", "--ttl", "10m", "x", "--"], &HOLDING[..]].concat();
    let holder = place.start(&words);
    signal(place.number("command"), Signal::KILL);
    assert_eq!(holder.end().code, 137);
    assert!(is_free(&place, "x"));

    let keeper = place.start(&["acquire", "--hold", "--ttl", "10m", "x"]);
    until("it to be held", || place.why("x")["locked"].as_bool()?.then_some(()));
    assert!(!is_free(&place, "x"));
    keeper.kill();
    assert!(is_free(&place, "x"));
}

#[test]
fn a_detached_acquire_is_not_dead_at_once_and_can_be_released_by_its_grant() {
    let place = StoreLocation::new();
    let (token, grant) = place.acquire(&["x"]);
    assert_eq!(place.why("x")["holders"][0]["is_stale"], false);
    assert!(!is_free(&place, "x"));
    assert!(place.accepts("x", token));
    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
    assert!(is_free(&place, "x"));
    let ended = place.run(&["release", "--grant", &grant]);
    assert_ne!(ended.code, 0, "{ended:?}");
}

#[test]
fn a_lease_tied_to_a_process_ends_with_it_whether_it_was_collected_or_not() {
    let place = StoreLocation::new();
    for collected in [true, false] {
        let worker = sleeper(&place);
        let pid = worker.id().to_string();
        place.acquire(&["--pid", &pid, "--ttl", "10m", "x"]);
        assert!(!is_free(&place, "x"));
        if collected {
            worker.kill();
        } else {
            worker.signal(Signal::KILL);
            until("a zombie", || (crate::support::state(worker.id()) == Some('Z')).then_some(()));
            assert!(is_free(&place, "x"));
        }
        assert!(is_free(&place, "x"), "collected: {collected}");
    }
}

#[test]
fn a_lease_cannot_be_tied_to_a_process_that_is_gone() {
    let place = StoreLocation::new();
    let worker = sleeper(&place);
    let pid = worker.id().to_string();
    worker.kill();
    let ended = place.run(&["acquire", "--pid", &pid, "x"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(is_free(&place, "x"));
}

#[test]
fn two_who_share_a_label_exclude_each_other() {
    let place = StoreLocation::new();
    let words = [&["run", "--as", "bob", "x", "--"], &HOLDING[..]].concat();
    let first = place.start(&words);
    place.number("command");
    for second in [
        &["run", "--as", "bob", "-n", "x", "--", "true"][..],
        &["acquire", "--as", "bob", "-n", "x"],
    ] {
        let ended = place.run(second);
        assert_eq!(ended.code, 6, "{ended:?}");
    }
    place.touch("go");
    assert_eq!(first.end().code, 0);
    assert!(is_free(&place, "x"));
}

#[test]
fn a_late_release_or_renewal_does_not_touch_the_successor() {
    let place = StoreLocation::new();
    let (_, first) = place.acquire(&["x", "--ttl", "100ms"]);
    let (token, _) = place.acquire(&["x", "--ttl", "10m", "-w", "50"]);
    for verb in ["release", "renew"] {
        let ended = place.run(&[verb, "x", "--grant", &first]);
        assert!(![0, 6].contains(&ended.code), "{ended:?}");
    }
    assert!(place.accepts("x", token));
}

#[test]
fn a_denial_never_teaches_the_flag_that_forces() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["x", "task:7", "section:s", "--as", "alice"]);
    let stranger = "00000000-0000-4000-8000-000000000000";
    let denials: [&[&str]; 16] = [
        &["run", "-n", "x", "--", "true"],
        &["run", "-w", "0.1", "x", "--", "true"],
        &["run", "-n", "task:7", "--", "true"],
        &["acquire", "-n", "x"],
        &["acquire", "-w", "0.1", "section:s"],
        &["acquire", "-n", "x", "--as", "bob"],
        &["wait", "-w", "0.1", "x"],
        &["release", "x"],
        &["release", "x", "--as", "bob"],
        &["release", "x", "--grant", stranger],
        &["renew", "x", "--as", "bob"],
        &["renew", "x", "--grant", stranger],
        &["locks", "release", "x"],
        &["locks", "release", "7", "--as", "bob"],
        &["break", "x"],
        &["break", "x", "--reason", "it is mine"],
    ];
    for words in denials {
        for format in [&[][..], &["--json"]] {
            let ended = place.run(&[format, words].concat());
            assert_ne!(ended.code, 0, "{words:?}: {ended:?}");
            assert!(!ended.text().contains("--force"), "{words:?}: {ended:?}");
        }
    }
    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
}

#[test]
fn a_command_sees_under_what_it_runs_and_can_prove_it() {
    let place = StoreLocation::new();
    let script = "$T verify $TENURE_RESOURCE --token $TENURE_TOKEN && $T renew && $T release";
    let ended = place.run(&["run", "x", "--", "sh", "-c", script]);
    // It gave back its own lock, so what it did afterwards was not covered.
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.stdout.contains("Released x"), "{ended:?}");
}
