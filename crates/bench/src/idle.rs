//! Measures the processor time of a hundred processes that wait for one lock.

use crate::program::Program;
use crate::report::{Figure, Report, Unit, Wanted};
use crate::{BenchError, BenchSetup};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tenure::blocking::Client;
use tenure::core::Resource;

const WAITERS: usize = 100;

/// The limit for starting all of them.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The time for the last ones to become idle.
const SETTLE: Duration = Duration::from_millis(500);

pub(crate) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    if !cfg!(target_os = "linux") {
        report.note("idle is measured on Linux only");
        return Ok(());
    }
    let url = setup.store("idle");
    let client = Client::open(&url)?;
    let guard = client.acquire("idle")?;
    let waiters = Waiters::start(setup.program(), &url)?;
    queued(&client, &guard.lease().resources)?;
    std::thread::sleep(SETTLE);

    let begun = Instant::now();
    let before = waiters.cpu_seconds();
    std::thread::sleep(Duration::from_secs(setup.scale(5, 15)));
    let after = waiters.cpu_seconds();
    let elapsed = begun.elapsed().as_secs_f64();
    drop(waiters);
    let (Some(before), Some(after)) = (before, after) else {
        report.note("This kernel does not report processor time: idle was skipped");
        return Ok(());
    };
    report.add(Figure {
        measurement: "idle",
        case: format!("{WAITERS} processes wait"),
        statistic: "of one core",
        value: (after - before) / elapsed,
        unit: Unit::Share,
        beside: None,
        wanted: Some(Wanted::AtMost(0.02)),
    });
    Ok(())
}

/// Returns when all processes wait.
fn queued(client: &Client, resources: &[Resource]) -> Result<(), BenchError> {
    let begun = Instant::now();
    while client.run(client.asynchronous().look(resources))?.waiters.len() < WAITERS {
        if begun.elapsed() > START_LIMIT {
            let seconds = START_LIMIT.as_secs();
            return Err(BenchError::TooSlow { what: "the start of all waiters", seconds });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Waiting processes; they are killed on drop.
struct Waiters(Vec<Child>);

impl Waiters {
    fn start(program: &Program, url: &str) -> Result<Waiters, BenchError> {
        let mut waiters = Waiters(Vec::new());
        for _ in 0..WAITERS {
            let mut command = program.command();
            command.args(["run", "--quiet", "--wait", "120", "--store", url, "idle", "--", "true"]);
            let process = command.stdin(Stdio::null()).spawn();
            let failed = |source| BenchError::Process { program: "tenure run".to_owned(), source };
            waiters.0.push(process.map_err(failed)?);
        }
        Ok(waiters)
    }

    /// The processor time of all of them together.
    fn cpu_seconds(&self) -> Option<f64> {
        self.0.iter().map(|process| cpu_seconds(process.id())).sum()
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
        }
        for process in &mut self.0 {
            let _ = process.wait();
        }
    }
}

/// The processor time of all threads of a process. `schedstat` counts nanoseconds; `stat` only
/// hundredths of a second, more than an idle process uses in a minute.
fn cpu_seconds(pid: u32) -> Option<f64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let nanoseconds = threads.map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    Some(nanoseconds.sum::<Option<u64>>()? as f64 / 1e9)
}
