//! Eight workers that take tasks by one-shot commands: tenure's beside those of claimd.
//!
//! claimd keeps a project's tasks in one JSON file, written whole with each change and not synced.
//! It has no command for the next task, so a worker of it lists what is new and claims one of that,
//! each worker at another place of the list, so that they seldom want the same. Where another was
//! quicker, or holds the file just now, it tries again.

use super::super::ground::this_program;
use super::super::pair::Tally;
use super::super::report::{Beside, Figure, Report, Unit, Wanted};
use super::super::sample::median;
use super::super::{BenchError, Ground};
use super::stock::{counts, fill};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tenure::blocking::Client;

const WORKERS: usize = 8;

/// The code by which claimd says that a task or its file is taken.
const TAKEN: i32 = 2;

/// The code by which tenure says that nothing is left.
const NOTHING_READY: i32 = 4;

/// How `tasks claim` ends when others work on all that is left.
const ALL_TAKEN: i32 = 6;

pub(super) fn measure(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    let peer = Peer::find(ground);
    if peer.is_none() {
        report.note(
            "There is no claimd here (cargo install claimd --version 0.2.0, or name one with \
             --peer): nothing to compare with",
        );
    }
    let sizes: [usize; 2] = ground.scale([16, 32], [100, 10_000]);
    for size in sizes {
        // A short list is soon done: more often, then.
        let rounds = ground.scale(1, if size < 1_000 { 7 } else { 3 });
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            ours.push(tenure_round(ground, size, round)?.rate());
            if let Some(peer) = &peer {
                theirs.push(peer.round(ground, size)?.rate());
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

/// All workers until nothing is left, or until the time is over; `turn` says whether there was a
/// task.
fn fleet(
    ground: &Ground,
    turn: impl Fn(usize, &dyn Fn() -> bool) -> Result<bool, BenchError> + Sync,
) -> Result<Tally, BenchError> {
    let begun = Instant::now();
    let ends_at = begun + Duration::from_millis(ground.scale(2_000, 5_000));
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

fn tenure_round(ground: &Ground, size: usize, round: usize) -> Result<Tally, BenchError> {
    let url = ground.store(&format!("oneshots-{size}-{round}"));
    let client = Client::open(&url)?;
    fill(&client, size, size)?;
    let tally = fleet(ground, |number, _| {
        let label = format!("worker-{number}");
        let command = |words: &[&str]| {
            let mut command = this_program()?;
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

/// The program claimd.
struct Peer {
    program: PathBuf,
}

impl Peer {
    fn find(ground: &Ground) -> Option<Peer> {
        let program = ground.peer().to_owned();
        let help = run(Command::new(&program).arg("--help"));
        help.is_ok_and(|output| output.status.success()).then_some(Peer { program })
    }

    fn command(&self, folder: &Path, words: &[&str]) -> Result<Output, BenchError> {
        let mut command = Command::new(&self.program);
        run(command.arg("--dir").arg(folder).args(["--project", "bench"]).args(words))
    }

    fn round(&self, ground: &Ground, size: usize) -> Result<Tally, BenchError> {
        let folder = ground.file("claimd");
        succeed(self.command(&folder, &["init"])?)?;
        self.fill(&folder, size)?;
        fleet(ground, |number, is_over| {
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

    /// Claims this one, unless another has it.
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
                // Another has even done it by now.
                Some(_) if said.contains("Cannot transition") => return Ok(false),
                _ => return succeed(claimed).map(|_| true),
            }
        }
        Ok(false)
    }

    /// Writes its file of tasks: to add ten thousand by its own command would take minutes.
    fn fill(&self, folder: &Path, size: usize) -> Result<(), BenchError> {
        let task = |number: usize| {
            // Spread, so that few share a beginning; the marks of a random id where they belong.
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
