//! Several resources at once, in any order: all or nothing, and no deadlock.

use crate::roles::variable;
use crate::support::{Ended, Over, Running, StoreLocation, until};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure::ReleaseOutcome;
use tenure::blocking::{Attempt, Client};

const ROUNDS: usize = 200;

/// The role: takes the resources named in `$ORDER` together, again and again.
pub fn take_several() {
    let client = Client::open(&variable("URL")).expect("the store");
    let order = variable("ORDER");
    let names: Vec<&str> = order.split(',').collect();
    for _ in 0..ROUNDS {
        let first = client.request(names[0]);
        let request = names[1..].iter().fold(first, |request, name| request.also(*name));
        let Attempt::Held(guard) = client.hold(request).expect("an answer") else {
            panic!("a request without a limit was given up");
        };
        for name in &names {
            let mark = format!("inside.{name}");
            std::fs::File::create_new(&mark).unwrap_or_else(|error| panic!("{mark}: {error}"));
        }
        for name in &names {
            std::fs::remove_file(format!("inside.{name}")).expect("our own mark");
        }
        assert_eq!(guard.release().expect("an answer"), ReleaseOutcome::Released);
    }
}

/// Looks all the while: a grant has as many holds as it asked for, or none.
fn never_half(place: &StoreLocation, over: Arc<AtomicBool>) -> usize {
    let client = Client::open(&place.url()).expect("the store");
    let mut looks = 0;
    while !over.load(Ordering::Relaxed) {
        let seen = client.run(client.asynchronous().look_everywhere()).expect("a look");
        let mut held: HashMap<_, usize> = HashMap::new();
        for seen in &seen.holds {
            *held.entry(seen.hold.grant).or_default() += 1;
        }
        assert!(held.values().all(|count| [2, 3].contains(count)), "half: {:?}", seen.holds);
        looks += usize::from(!held.is_empty());
    }
    looks
}

#[test]
fn resources_in_opposite_orders_neither_deadlock_nor_are_ever_held_by_half() {
    let place = StoreLocation::new();
    std::thread::scope(|scope| {
        let over = Over::default();
        let flag = over.flag();
        let watching = scope.spawn(|| never_half(&place, flag));
        let workers = ["a,b,c", "c,b,a", "b,a", "c,b"].map(|order| {
            let mut command = place.role("take-several");
            command.env("ORDER", order);
            Running::start(command)
        });
        let ended = workers.map(Running::end);
        drop(over);
        for ended in ended {
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
        }
        let looks = watching.join().expect("never half");
        println!("{looks} looks found something held, never by half");
        assert!(looks > 0);
    });
    assert_eq!(place.run(&["run", "-n", "a", "b", "c", "--", "true"]).code, 0);
}

/// The refusal of a wait that would never end, naming the cycle.
fn assert_deadlock(ended: &Ended, resources: &[&str]) {
    assert_eq!(ended.code, 6, "{ended:?}");
    let envelope = ended.json();
    assert_eq!(envelope["error"]["code"], "DEADLOCK", "{ended:?}");
    let cycle = envelope["error"]["details"]["cycle"].as_array().expect("a cycle").clone();
    let mut named: Vec<&str> = cycle.iter().filter_map(|step| step["resource"].as_str()).collect();
    named.sort();
    assert_eq!(named, resources, "{ended:?}");
    assert!(!ended.text().contains("--force"), "{ended:?}");
}

/// Holds `outer`, and once all have what is around, asks for `inner` as well.
fn nested(place: &StoreLocation, outer: &str, inner: &str, all: &[&str]) -> Running {
    let ready = all.iter().map(|name| format!("[ -e $D/has.{name} ]"));
    let ready = ready.collect::<Vec<_>>().join(" && ");
    let script = format!(
        "touch $D/has.{outer}; until {ready}; do sleep 0.01; done;
         exec $T --json run -w 50 {inner} -- touch $D/got.{inner}"
    );
    place.start(&["run", outer, "--", "sh", "-c", &script])
}

/// Of commands that wait for each other in a circle, one is refused and all others get through.
fn circle(names: &[&str]) {
    let place = StoreLocation::new();
    let next = |index: usize| names[(index + 1) % names.len()];
    let commands: Vec<Running> = names
        .iter()
        .enumerate()
        .map(|(index, name)| nested(&place, name, next(index), names))
        .collect();
    let ended: Vec<Ended> = commands.into_iter().map(Running::end).collect();
    let (refused, served): (Vec<_>, Vec<_>) = ended.iter().partition(|ended| ended.code != 0);
    assert_eq!((refused.len(), served.len()), (1, names.len() - 1), "{ended:?}");
    assert_deadlock(refused[0], names);
    let mut all = vec!["run", "-n"];
    all.extend(names);
    all.extend(["--", "true"]);
    assert_eq!(place.run(&all).code, 0);
}

#[test]
fn of_two_nested_in_opposite_orders_one_is_refused_at_the_start() {
    circle(&["a", "b"]);
}

#[test]
fn of_five_in_a_circle_one_is_refused_at_the_start() {
    circle(&["a", "b", "c", "d", "e"]);
}

#[test]
fn a_command_goes_under_what_the_commands_around_it_hold() {
    let place = StoreLocation::new();
    let inner = "$T run a -- $T run b a -- touch $D/ran && $T verify a --token $TENURE_TOKEN";
    let ended = place.run(&["run", "a", "b", "--", "sh", "-c", inner]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(place.path("ran").exists());
    // What it holds around itself is given back by the outermost, and by no other.
    let inner = "$T run -n path:src/a -- true && $T run -n path:src/b -- true";
    let script = format!("env -u TENURE_KEEPS -u TENURE_GRANT sh -c '{inner}'");
    let ended = place.run(&["run", "path:src/**", "--", "sh", "-c", &script]);
    assert_eq!(ended.code, 6, "without the grants it is a stranger: {ended:?}");
    assert_eq!(place.run(&["run", "path:src/**", "--", "sh", "-c", inner]).code, 0);
    assert_eq!(place.run(&["run", "-n", "path:src/**", "a", "b", "--", "true"]).code, 0);
}

#[test]
fn a_command_that_asks_for_more_than_it_runs_under_is_refused_at_once() {
    let place = StoreLocation::new();
    let inner = "exec $T --json run 'path:src/**' -- touch $D/ran";
    let ended = place.run(&["run", "path:src/a", "--", "sh", "-c", inner]);
    assert_deadlock(&ended, &["path:src/a"]);
    let inner = "exec $T --json run a -- touch $D/ran";
    assert_deadlock(&place.run(&["run", "--shared", "a", "--", "sh", "-c", inner]), &["a"]);
    assert!(!place.path("ran").exists());
}

#[test]
fn a_detached_lease_covers_a_command_of_its_label_only_by_its_grant() {
    let place = StoreLocation::new();
    let (token, grant) = place.acquire(&["a", "--as", "bob"]);
    let ended = place.run(&["--json", "run", "a", "--as", "bob", "--", "touch", "ran"]);
    assert_deadlock(&ended, &["a"]);
    assert!(ended.text().contains("pass its grant"), "{ended:?}");
    let ended = place.run(&["run", "a", "--as", "bob", "--grant", &grant, "--", "true"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(place.accepts("a", token), "the lease goes on");
}

#[test]
fn the_same_label_asks_again_and_goes_on_holding() {
    let place = StoreLocation::new();
    let (token, grant) = place.acquire(&["a", "--as", "bob", "--ttl", "1m"]);
    let again = ["acquire", "a", "--as", "bob", "--ttl", "9m", "--operation", "more"];
    let ended = place.run(&[&["--json"], &again[..]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let lease = &ended.json()["data"];
    assert_eq!(lease["reason"], "already_owned", "{lease}");
    assert_eq!((lease["token"].as_u64(), lease["grant"].as_str()), (Some(token), Some(&*grant)));
    assert_eq!((&lease["holder"], &lease["ttl_seconds"]), (&json!("bob"), &json!(540.0)));
    assert_eq!(place.why("a")["holders"][0]["operation"], "more");
    // Without a label only the grant shows whose it is, and the answer names the holder's label.
    let ended = place.run(&["--json", "acquire", "a", "--grant", &grant]);
    assert_eq!(ended.json()["data"]["holder"], "bob", "{ended:?}");
    assert_eq!(place.run(&["acquire", "-n", "a", "--as", "eve"]).code, 6);
    assert_eq!(place.run(&["release", "a", "--as", "bob"]).code, 0);
    assert_eq!(place.run(&["run", "-n", "a", "--", "true"]).code, 0);
}

#[test]
fn a_label_that_keeps_one_lock_is_refused_to_wait_for_another_in_a_circle() {
    let place = StoreLocation::new();
    place.acquire(&["a", "--as", "bob"]);
    place.acquire(&["b", "--as", "eve"]);
    let bob = place.start(&["acquire", "b", "--as", "bob", "-w", "50"]);
    until("bob in the queue", || (place.why("b")["waiters"].as_array()?.len() == 1).then_some(()));
    let eve = place.run(&["--json", "acquire", "a", "--as", "eve", "-w", "50"]);
    assert_deadlock(&eve, &["a", "b"]);
    assert_eq!(place.run(&["release", "b", "--as", "eve"]).code, 0);
    assert_eq!(bob.end().code, 0);
}
