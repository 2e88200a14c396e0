//! A process that is stopped (SIGSTOP) while it writes, or while it is the next to write: nobody
//! else can write, but all who want to are told who is in the way, and what to do.

use crate::roles::variable;
use crate::support::{Running, Signal, StoreLocation, is_alive, state, until};

/// Takes the place of a writer, or of the next one, and stays there.
pub fn sit() {
    let side = std::path::Path::new(&variable("SIDE")).join(variable("PLACE"));
    let file = std::fs::OpenOptions::new().write(true).open(side).expect("a file of the queue");
    file.lock().expect("nobody else in the queue");
    std::fs::write(variable("SEATED"), "").expect("a sign");
    std::thread::sleep(2 * crate::support::PATIENCE);
}

fn someone_at(place: &StoreLocation, what: &str) -> Running {
    assert_eq!(place.run(&["tasks", "add", "T", "--id", "t"]).code, 0);
    let mut command = place.role("sit");
    command.env("SIDE", place.path("tenure.db.side")).env("PLACE", what);
    command.env("SEATED", place.path("seated"));
    let sitter = Running::start(command);
    place.wait_for("seated");
    sitter
}

#[test]
fn whoever_waits_for_a_stopped_writer_is_told_so_and_goes_on_when_it_does() {
    // One that takes its time is waited for.
    let slow = StoreLocation::new();
    let slow_writer = someone_at(&slow, "seat");
    let mut patient = slow.start(&["tasks", "add", "U"]);

    let places = ["seat", "door"].map(|what| {
        let place = StoreLocation::new();
        let writer = someone_at(&place, what);
        writer.signal(Signal::STOP);
        until("it to stop", || (state(writer.id()) == Some('T')).then_some(()));
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
        writer.signal(Signal::CONT);
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
