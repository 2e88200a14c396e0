//! Whoever holds through a server knows for how long, though it is shown no grant but veiled ones.

use crate::server::Server;
use crate::support::{Running, StoreLocation, until};

/// Longer than the moments between two looks of a holder whether it still holds.
const A_WHILE: &str = "touch $D/began; sleep 3; touch $D/done";

#[test]
fn a_command_without_a_chosen_name_runs_to_its_end() {
    let place = StoreLocation::new();
    let server = Server::start(&place);
    let run = Running::start(server.tenure(&["run", "deploy", "--", "sh", "-c", A_WHILE])).end();
    assert_eq!(run.code, 0, "{run:?}");
    assert!(place.path("done").exists(), "{run:?}");
}

#[test]
fn a_worker_without_a_chosen_name_finishes_its_task() {
    let place = StoreLocation::new();
    let server = Server::start(&place);
    assert_eq!(place.run(&["tasks", "add", "--id", "one", "First"]).code, 0);
    let words = ["work", "--until-empty", "--", "sh", "-c", A_WHILE];
    let work = Running::start(server.tenure(&words)).end();
    assert_eq!(work.code, 0, "{work:?}");
    let task = place.json(&["tasks", "show", "one"])["task"].clone();
    assert_eq!(task["status"], "completed", "{task} {work:?}");
    assert_eq!(task["attempts"], 1, "{task} {work:?}");
}

#[test]
fn a_break_stops_the_command() {
    let place = StoreLocation::new();
    let server = Server::start(&place);
    let script = "touch $D/began; sleep 60; touch $D/done";
    let run = Running::start(server.tenure(&["run", "deploy", "--", "sh", "-c", script]));
    until("a holder", || place.path("began").exists().then_some(()));
    let broken = place.run(&["break", "deploy", "--force", "--reason", "stuck"]);
    assert_eq!(broken.code, 0, "{broken:?}");
    let ended = run.end();
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(!place.path("done").exists());
}
