//! Careful programs and tenure, contending for one lock: never two at once.

use crate::folder::{Dialect, Folder};
use crate::intervals::{Logs, Overlaps};
use crate::support::Running;
use std::time::Instant;

const EACH_KIND: usize = 4;

/// How often each process takes the lock.
#[derive(Clone, Copy)]
pub struct Rounds {
    pub foreign: usize,
    pub tenure: usize,
}

/// Lets four of each take the lock so often, and returns what they logged.
pub fn contend(folder: &Folder, form: &str, rounds: Rounds, more: &[&str]) -> Logs {
    let begun = Instant::now();
    let directory = folder.path("");
    let directory = directory.to_str().expect("a plain path");
    let (foreign, tenure) = (rounds.foreign.to_string(), rounds.tenure.to_string());
    let mut running = Vec::new();
    for number in 0..EACH_KIND {
        let (owner, log) = (format!("{form}-{number}"), format!("foreign.{number}"));
        let name = folder.dialect.name();
        let arguments = [form, directory, name, &owner, &foreign, &log];
        running.push(Running::start(folder.foreign("hold.py", &[&arguments, more].concat())));
        let mut command = folder.role("hold");
        command.env("ROUNDS", &tenure).env("LOG", format!("tenure.{number}"));
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
    let rounds = Rounds { foreign: 1500, tenure: 1000 };
    let logs = contend(&folder, "careful", rounds, &[]);
    assert_eq!(logs.intervals.len(), 10_000);
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

/// The command itself, which notes when its child began and ended.
#[test]
fn the_command_and_careful_programs_never_hold_at_once() {
    let note = r#"
        now() { python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'; }
        echo "enter $(now)" >> "$D/tenure.$1"; echo "leave $(now)" >> "$D/tenure.$1""#;
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        let directory = folder.path("");
        let directory = directory.to_str().expect("a plain path");
        let programs: Vec<Running> = (0..2)
            .map(|number| {
                let (owner, log) = (format!("careful-{number}"), format!("foreign.{number}"));
                let arguments = ["careful", directory, dialect.name(), &owner, "60", &log];
                Running::start(folder.foreign("hold.py", &arguments))
            })
            .collect();
        let resource = dialect.resource();
        let runs: Vec<Running> = (0..4)
            .map(|number| {
                let number = number.to_string();
                folder
                    .start(&["run", "-w", "120", &resource, "--", "sh", "-c", note, "sh", &number])
            })
            .collect();
        let mut logs = Logs::default();
        for (number, run) in runs.into_iter().enumerate() {
            let ended = run.end();
            assert_eq!(ended.code, 0, "{ended:?}");
            logs.add(&folder.place.path(&format!("tenure.{number}")), true);
        }
        for (number, program) in programs.into_iter().enumerate() {
            let ended = program.end();
            assert_eq!(ended.code, 0, "{ended:?}");
            logs.add(&folder.place.path(&format!("foreign.{number}")), false);
        }
        assert_eq!((logs.by_tenure(), logs.intervals.len()), (4, 124), "{dialect:?}");
        assert_eq!(logs.overlaps(), Overlaps::default(), "{dialect:?}");
    }
}
