//! Measures eight workers that claim tasks with one-shot commands: tenure's and those of claimd.
//!
//! claimd keeps a project's tasks in one JSON file, which it rewrites with each change and does not
//! sync. It has no command for the next task, so its workers list new tasks and claim one of them,
//! each worker at another position of the list, so that they seldom choose the same one. If another
//! worker was faster, or the file is locked, they retry.

use super::task_supply::{counts, fill};
use crate::pair::Tally;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::median;
use crate::{BenchError, BenchSetup};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tenure::blocking::Client;

const WORKERS: usize = 8;

/// claimd's exit code for a task or file that is locked.
const TAKEN: i32 = 2;

/// tenure's exit code if no task is left.
const NOTHING_READY: i32 = 4;

/// The exit code of `tasks claim` if other workers have all remaining tasks.
const ALL_TAKEN: i32 = 6;

pub(super) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let peer = Peer::find(setup);
    if peer.is_none() {
        report.note(
            "claimd is not installed (cargo install claimd --version 0.2.0, or name one with \
             --peer): no comparison",
        );
    }
    let sizes: [usize; 2] = setup.scale([16, 32], [100, 10_000]);
    for size in sizes {
        // A short list is done quickly, so it is measured more often.
        let rounds = setup.scale(1, if size < 1_000 { 7 } else { 3 });
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            ours.push(tenure_round(setup, size, round)?.rate());
            if let Some(peer) = &peer {
                theirs.push(peer.round(setup, size)?.rate());
            }
        }
        let value = median(&ours);
        report.add(Figure {
            measurement: "tasks",
            case: format!("{WORKERS} workers, one-shot commands, {size} tasks"),
            statistic: "claim+complete",
            value,
            unit: Unit::PerSecond,
            beside: peer.as_ref().map(|_| Beside::new("claimd", value, median(&theirs))),
            wanted: Some(Wanted::RatioAtLeast(1.0)),
        });
    }
    Ok(())
}

/// Runs all workers until no task is left or the time is over; `turn` returns whether there was a
/// task.
fn fleet(
    setup: &BenchSetup,
    turn: impl Fn(usize, &dyn Fn() -> bool) -> Result<bool, BenchError> + Sync,
) -> Result<Tally, BenchError> {
    let begun = Instant::now();
    let ends_at = begun + Duration::from_millis(setup.scale(2_000, 5_000));
    let is_over = || Instant::now() >= ends_at;
    let worker = |number: usize| {
        let mut count = 0;
        while !is_over() && turn(number, &is_over)? {
            count += 1;
        }
        Ok::<u64, BenchError>(count)
    };
    let counts = std::thread::scope(|scope| {
        let worker = &worker;
        let threads = (0..WORKERS).map(|number| scope.spawn(move || worker(number)));
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|count| count.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<u64>, _>>()
    })?;
    Ok(Tally { count: counts.iter().sum(), seconds: begun.elapsed().as_secs_f64() })
}

fn tenure_round(setup: &BenchSetup, size: usize, round: usize) -> Result<Tally, BenchError> {
    let url = setup.store(&format!("oneshots-{size}-{round}"));
    let client = Client::open(&url)?;
    fill(&client, size, size)?;
    let tally = fleet(setup, |number, _| {
        let label = format!("worker-{number}");
        let command = |words: &[&str]| {
            let mut command = setup.program().command();
            command.args(["tasks"]).args(words).args(["--store", &url, "--as", &label, "-q"]);
            run(&mut command)
        };
        let claimed = command(&["claim", "-n"])?;
        if matches!(claimed.status.code(), Some(NOTHING_READY | ALL_TAKEN)) {
            return Ok(false);
        }
        let id = text(succeed(claimed)?);
        succeed(command(&["complete", id.trim()])?)?;
        Ok(true)
    })?;
    let counts = counts(&client)?;
    if counts.completed as u64 != tally.count || counts.in_progress > 0 {
        let (store, workers) = (counts.completed, tally.count as usize);
        return Err(BenchError::Miscounted { what: "completed", store, workers });
    }
    Ok(tally)
}

/// The claimd program.
struct Peer {
    program: PathBuf,
}

impl Peer {
    fn find(setup: &BenchSetup) -> Option<Peer> {
        let program = setup.peer().to_owned();
        let help = run(Command::new(&program).arg("--help"));
        help.is_ok_and(|output| output.status.success()).then_some(Peer { program })
    }

    fn command(&self, folder: &Path, words: &[&str]) -> Result<Output, BenchError> {
        let mut command = Command::new(&self.program);
        run(command.arg("--dir").arg(folder).args(["--project", "bench"]).args(words))
    }

    fn round(&self, setup: &BenchSetup, size: usize) -> Result<Tally, BenchError> {
        let folder = setup.file("claimd");
        succeed(self.command(&folder, &["init"])?)?;
        self.fill(&folder, size)?;
        fleet(setup, |number, is_over| {
            while !is_over() {
                let list = self.command(&folder, &["list", "--status", "new", "--json"])?;
                let new = ids(&succeed(list)?);
                let Some(id) = new.get(number % new.len().max(1)) else { return Ok(false) };
                if self.claim(&folder, id, is_over)? {
                    succeed(self.command(&folder, &["done", id])?)?;
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Claims this task, unless another worker has it.
    fn claim(
        &self,
        folder: &Path,
        id: &str,
        is_over: &dyn Fn() -> bool,
    ) -> Result<bool, BenchError> {
        while !is_over() {
            let claimed = self.command(folder, &["claim", id, "--agent", "bench"])?;
            let said = String::from_utf8_lossy(&claimed.stderr);
            match claimed.status.code() {
                Some(TAKEN) if said.contains("locked") => {}
                Some(TAKEN) => return Ok(false),
                // Another worker has already completed it.
                Some(_) if said.contains("Cannot transition") => return Ok(false),
                _ => return succeed(claimed).map(|_| true),
            }
        }
        Ok(false)
    }

    /// Writes its task file: adding ten thousand tasks with its own command would take minutes.
    fn fill(&self, folder: &Path, size: usize) -> Result<(), BenchError> {
        let task = |number: usize| {
            // Spread ids, so that few share a beginning, with the version bits of a random UUID.
            let spread = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (first, second) = (spread >> 32, spread >> 16 & 0xffff);
            json!({
                "id": format!("{first:08x}-{second:04x}-4000-8000-{number:012x}"),
                "title": format!("Task number {number}"),
                "status": "new",
                "priority": 5,
                "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z",
            })
        };
        let items: Vec<Value> = (0..size).map(task).collect();
        let file = folder.join("projects/bench/tasks.json");
        let text = serde_json::to_vec_pretty(&json!({ "items": items }))
            .expect("plain records always serialise");
        std::fs::write(&file, text)
            .map_err(|source| BenchError::Process { program: "claimd".to_owned(), source })
    }
}

/// The ids of a list in JSON.
fn ids(list: &Output) -> Vec<String> {
    let list: Value = serde_json::from_slice(&list.stdout).unwrap_or_default();
    let items = list.as_array().or_else(|| list["items"].as_array());
    let ids = items.into_iter().flatten().filter_map(|item| item["id"].as_str());
    ids.map(str::to_owned).collect()
}

fn run(command: &mut Command) -> Result<Output, BenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|source| BenchError::Process { program, source })
}

fn succeed(output: Output) -> Result<Output, BenchError> {
    match output.status.success() {
        true => Ok(output),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(BenchError::Worker { said, expected: "success" })
        }
    }
}

fn text(output: Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
