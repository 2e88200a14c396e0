//! Crowds of processes that ask for one lock: all wait at the same time, or all come at once. Each is
//! a copy of one small process, so that thousands fit into a machine. `FAULTS_CROWD=2000` makes the
//! crowds on SQLite larger than is quick beside other tests, and `FAULTS_CROWD_FILES` those on files, of which a build
//! without optimisation serves some hundred: so many that wait, and a quarter of them at once.

use crate::roles::variable;
use crate::support::{Engine, Running, StoreLocation, until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tenure::Wait;
use tenure::blocking::{Attempt, Client};
use tenure::core::{EventKind, Revision};
use tenure::store::EventsAfter;

/// Only a failure ever takes so long.
const LIMIT: Duration = Duration::from_secs(300);

/// On a busy machine some do not come within a second when they are woken, and are passed by.
const PASSED_AT_MOST: usize = 50;

/// One of a crowd: takes the lock once.
fn take_turn(number: usize) {
    let builder = tenure::Client::builder().label(number.to_string());
    let client = Client::open_with(builder, &variable("URL")).expect("the store");
    let request = client.request("queue").ttl(LIMIT).wait(Wait::UpTo(LIMIT));
    match client.hold(request).expect("an answer") {
        Attempt::Held(guard) => drop(guard.release().expect("a release")),
        Attempt::Busy(busy) => panic!("{number} waited in vain: {:?}", busy.blockers),
    }
}

/// Makes a crowd of this process, waits for its end and fails if one of it did.
#[expect(unsafe_code, reason = "starting a program for each of them takes ten times as long")]
pub fn crowd() {
    let count: usize = variable("COUNT").parse().expect("a number");
    for number in 0..count {
        // SAFETY: this process has no other thread that has opened a store or holds a lock. The child
        // ends without unwinding further.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                let ended = catch_unwind(AssertUnwindSafe(|| take_turn(number)));
                // SAFETY: it ends the process, and runs nothing that the parent has registered.
                unsafe { libc::_exit(i32::from(ended.is_err())) }
            }
            _ => {}
        }
    }
    let mut failed = 0;
    for _ in 0..count {
        let mut status = 0;
        // SAFETY: the status is a place to write to.
        unsafe { libc::wait(&raw mut status) };
        failed += usize::from(status != 0);
    }
    assert_eq!(failed, 0, "of {count}");
}

fn start_crowd(place: &StoreLocation, count: usize) -> Running {
    let mut command = place.role("crowd");
    command.env("COUNT", count.to_string());
    Running::start(command)
}

/// The labels of the events that are of this kind, in order.
fn labels(client: &Client, is_wanted: fn(&EventKind) -> bool) -> Vec<String> {
    let backend = client.asynchronous().backend();
    let (mut labels, mut after) = (Vec::new(), Revision(0));
    loop {
        let events = client.run(backend.read(EventsAfter { after, limit: 1000 })).expect("events");
        let Some(last) = events.last() else { return labels };
        after = last.revision;
        let wanted = events.into_iter().filter(|event| is_wanted(&event.event.kind));
        labels.extend(wanted.map(|event| event.event.label));
    }
}

fn waited(client: &Client) -> Vec<String> {
    labels(client, |kind| matches!(kind, EventKind::Waiting))
}

fn served(client: &Client) -> Vec<String> {
    labels(client, |kind| matches!(kind, EventKind::Acquired { .. }))
}

/// Waits until so many have got so far, and longer as long as it goes on.
fn all(count: usize, what: &str, labels: impl Fn() -> Vec<String>) {
    for some in (0..=count).step_by(count / 20) {
        until(&format!("{some} {what}"), || (labels().len() >= some).then_some(()));
    }
}

fn wait_in_order(engine: Engine, count: usize) {
    let place = StoreLocation::with(engine);
    let (_, grant) = place.acquire(&["queue", "--ttl", "1h"]);
    let client = Client::open(&place.url()).expect("the store");
    let crowd = start_crowd(&place, count);
    all(count, "that wait", || waited(&client));
    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
    all(count + 1, "that were served", || served(&client));
    let ended = crowd.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let (waited, served) = (waited(&client), &served(&client)[1..]);
    assert_eq!((waited.len(), served.len()), (count, count), "each waits once and is served once");
    let place_of = |label: &String| waited.iter().position(|other| other == label);
    for (at, label) in served.iter().enumerate() {
        let place = place_of(label).expect("one that waited");
        assert!(place.abs_diff(at) <= PASSED_AT_MOST, "{label} waited at {place}, came at {at}");
    }
}

fn large_crowd(engine: Engine) -> Option<usize> {
    let variable = match engine {
        Engine::Sqlite => "FAULTS_CROWD",
        Engine::Files => "FAULTS_CROWD_FILES",
    };
    std::env::var(variable).ok().and_then(|count| count.parse().ok())
}

#[test]
fn hundreds_of_waiting_processes_are_served_in_order_on_sqlite() {
    wait_in_order(Engine::Sqlite, large_crowd(Engine::Sqlite).unwrap_or(500));
}

/// Fewer, since each reads in the journal what all others wrote.
#[test]
fn many_waiting_processes_are_served_in_order_on_files() {
    wait_in_order(Engine::Files, large_crowd(Engine::Files).unwrap_or(150));
}

#[test]
fn hundreds_of_processes_that_come_at_once_are_all_served() {
    for (engine, usual) in [(Engine::Sqlite, 500), (Engine::Files, 100)] {
        let count = large_crowd(engine).map_or(usual, |count| count / 4);
        let place = StoreLocation::with(engine);
        let client = Client::open(&place.url()).expect("the store");
        let crowd = start_crowd(&place, count);
        all(count, "that were served", || served(&client));
        let ended = crowd.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(served(&client).len(), count);
    }
}
