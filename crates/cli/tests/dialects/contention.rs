//! Careful programs and tenure, contending for one lock: never two at once.

use crate::folder::{Dialect, Folder};
use crate::intervals::{Logs, Overlaps};
use crate::support::Running;
use std::time::Instant;

const EACH_KIND: usize = 4;

/// Lets four of each take the lock so often, and returns what they logged.
pub fn contend(folder: &Folder, form: &str, rounds: usize, more: &[&str]) -> Logs {
    let begun = Instant::now();
    let directory = folder.path("");
    let directory = directory.to_str().expect("a plain path");
    let count = rounds.to_string();
    let mut running = Vec::new();
    for number in 0..EACH_KIND {
        let (owner, log) = (format!("{form}-{number}"), format!("foreign.{number}"));
        let name = folder.dialect.name();
        let arguments = [form, directory, name, &owner, &count, &log];
        running.push(Running::start(folder.foreign("hold.py", &[&arguments, more].concat())));
        let mut command = folder.role("hold");
        command.env("ROUNDS", &count).env("LOG", format!("tenure.{number}"));
        running.push(Running::start(command));
    }
    for process in running {
        let ended = process.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let mut logs = Logs::default();
    for number in 0..EACH_KIND {
        logs.add(&folder.place.path(&format!("foreign.{number}")), false);
        logs.add(&folder.place.path(&format!("tenure.{number}")), true);
    }
    println!(
        "{} {form}: {} holds, {} of them tenure's, {} changes between the two, {:?}, in {:.1?}",
        folder.dialect.word(),
        logs.intervals.len(),
        logs.by_tenure(),
        logs.changes(),
        logs.overlaps(),
        begun.elapsed(),
    );
    logs
}

fn never_two_at_once(dialect: Dialect) {
    let folder = Folder::new(dialect);
    let rounds = 1250;
    let logs = contend(&folder, "careful", rounds, &[]);
    assert_eq!(logs.intervals.len(), 2 * EACH_KIND * rounds);
    assert_eq!(logs.overlaps(), Overlaps::default());
    let notes: Vec<_> = logs.notes.iter().collect();
    assert!(notes.is_empty(), "something was lost or taken over: {notes:?}");
    assert!(logs.changes() > 100, "they hardly met");
    assert!(!folder.lock().exists());
}

#[test]
fn ten_thousand_holds_of_a_workers_task() {
    never_two_at_once(Dialect::Worker);
}

#[test]
fn ten_thousand_holds_of_an_agents_path() {
    never_two_at_once(Dialect::Swarm);
}

#[test]
fn ten_thousand_holds_of_a_memory_folder() {
    never_two_at_once(Dialect::Memory);
}
