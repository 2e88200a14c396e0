//! A process that is stopped (SIGSTOP) while it writes, or while it is the next to write: nobody
//! else can write, but all who want to are told who is in the way, and what to do.

use crate::roles::variable;
use crate::support::{Running, Signal, StoreLocation, is_alive, state, until};

/// Takes the place of a writer, and stays there.
pub fn sit() {
    let file = std::fs::OpenOptions::new().write(true).open(variable("PLACE"));
    let file = file.expect("a file of the queue");
    file.lock().expect("nobody else in the queue");
    std::fs::write(variable("SEATED"), "").expect("a sign");
    std::thread::sleep(2 * crate::support::PATIENCE);
}

fn new_place() -> StoreLocation {
    let place = StoreLocation::new();
    assert_eq!(place.run(&["tasks", "add", "T", "--id", "t"]).code, 0);
    place
}

/// A process that sits at the place of the writer, and that the processes that wait know nothing of.
fn slow_writer(place: &StoreLocation) -> Running {
    let mut command = place.role("sit");
    command.env("PLACE", place.side().join("seat")).env("SEATED", place.path("seated"));
    let sitter = Running::start(command);
    place.wait_for("seated");
    sitter
}

/// A command that has got so far as to have this place in the queue, and is stopped there.
fn stopped_at(place: &StoreLocation, what: &str) -> Running {
    let writer = place.start(&["tasks", "add", "V"]);
    let has_place = || {
        let signed = std::fs::read_to_string(place.side().join(what)).unwrap_or_default();
        signed.starts_with(&format!("{} ", writer.id())).then_some(())
    };
    until("its place", has_place);
    writer.signal(Signal::STOP);
    until("it to stop", || (state(writer.id()) == Some('T')).then_some(()));
    writer
}

fn stopped_writer(place: &StoreLocation) -> Running {
    let foreign = rusqlite::Connection::open(place.database()).expect("the database");
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let writer = stopped_at(place, "seat");
    foreign.execute_batch("COMMIT").expect("the end of it");
    writer
}

fn stopped_next(place: &StoreLocation) -> Running {
    let slow = slow_writer(place);
    let next = stopped_at(place, "door");
    slow.kill();
    next
}

#[test]
fn whoever_waits_for_a_stopped_writer_is_told_so_and_goes_on_when_it_does() {
    // One that takes its time is waited for.
    let slow = new_place();
    let slow_writer = slow_writer(&slow);
    let mut patient = slow.start(&["tasks", "add", "U"]);

    let places = [stopped_writer, stopped_next].map(|stopped| {
        let place = new_place();
        let writer = stopped(&place);
        let worker = place.start(&["work", "--until-empty", "--", "true"]);
        let adding = place.start(&["tasks", "add", "U"]);
        (place, writer, worker, adding)
    });
    for (place, writer, worker, adding) in places {
        let pid = writer.id();
        let ended = adding.end();
        assert_eq!(ended.code, 3, "{ended:?}");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{ended:?}");
        assert!(lines[0].contains(&format!("process {pid} was stopped")), "{ended:?}");
        assert!(lines[1].contains(&format!("`kill -CONT {pid}`")), "{ended:?}");
        assert_eq!(place.json(&["tasks", "stats"])["total"]["pending"], 1, "one may look");

        assert!(is_alive(worker.id()), "a worker does not give up");
        writer.kill();
        let ended = worker.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(place.json(&["tasks", "stats"])["total"]["completed"], 1);
        assert_eq!(place.run(&["tasks", "add", "U"]).code, 0);
    }

    assert!(!patient.has_ended(), "{:?}", patient.end());
    slow_writer.kill();
    let ended = patient.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
}
