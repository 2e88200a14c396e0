//! `tenure selftest`: tests with real processes that locks exclude on this file system.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::selftest::{self, LIMITS, Report, Scratch, TestSize};
use crate::show;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tenure::place::{self, ExclusionRecord, ExclusionResult, FileSystem, PlaceError};
use tenure::server_support::platform;
use tenure::url::StoreUrl;
use tenure::world::{Clock, SystemClock};
use tenure_frontend::duration::format_duration;

/// A shorter test shows nothing; a longer one is probably a wrong unit.
const SPANS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);

/// Test that locks exclude here, with real processes
///
/// Processes contend for a lock of a new store beside yours, and for what the file system offers:
/// kernel locks, hard links, renames. Some of them are killed. No existing data is touched, and
/// nothing is left behind. They record when they enter and leave: no two may overlap, tokens must
/// rise, and the lock of a killed process must go to the next one. Exits 7 if a check failed.
///
/// This cannot test exclusion between machines. On a network or FUSE file system, which is refused
/// by default, it writes exclusion.json into the folder of a file: store; if that records success,
/// file:DIR?exclusion=shown is accepted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure selftest
  tenure selftest --for 1m --processes 32
  tenure selftest --store sqlite:locks.db --json
  tenure selftest --store file:/mnt/share/locks")]
pub(crate) struct SelftestArgs {
    /// Run for this long, from 1s to 10m
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = args::span)]
    span: Duration,
    /// Number of processes, from 2 to 64
    #[arg(long, value_name = "N", default_value = "8", value_parser = args::numbers::processes)]
    processes: u8,
    /// Never ask the store, so that a check must fail; for tests of this command
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    without_lock: bool,
}

impl SelftestArgs {
    fn size(&self, url: &StoreUrl) -> Result<TestSize, Failure> {
        if !SPANS.contains(&self.span) {
            let span = format_duration(self.span);
            return Err(Failure::usage(format!("--for: {span} is not between 1s and 10m")));
        }
        #[cfg(debug_assertions)]
        let without_lock = self.without_lock;
        #[cfg(not(debug_assertions))]
        let without_lock = false;
        let (processes, strict) = (self.processes.into(), !url.dialect().is_native());
        Ok(TestSize { processes, span: self.span, strict, without_lock })
    }
}

pub(crate) fn run(context: &Context, args: &SelftestArgs) -> Result<i32, Failure> {
    let url = context.store_url()?;
    let size = args.size(&url)?;
    let tested = TestedFileSystem::of(&url)?;
    let begun = Instant::now();
    let report = {
        let scratch = Scratch::beside(&url)?;
        remove_when_interrupted(scratch.folder().to_owned());
        context.output.note(&format!(
            "Running {} processes for {} on {} ...",
            size.processes,
            format_duration(size.span),
            tested.file_system
        ));
        selftest::run(&scratch, &size, |trial| context.output.detail(trial.word()))?
    };
    let record = match &tested.record_in {
        Some(folder) => Some(record(&report, &size, &tested).write(folder)?),
        None => None,
    };
    let mut data = report.json();
    data["store"] = json!(url.to_string());
    data["file_system"] = json!(tested.file_system);
    data["processes"] = json!(size.processes);
    data["seconds"] = json!(show::seconds(begun.elapsed()));
    data["record"] = json!(record);
    let failure = report.wrong().map(|wrong| {
        Failure::new(Exit::CheckFailed, "NOT_EXCLUSIVE", wrong)
            .hint("Do not rely on locks here: use a store on a local disk.")
            .details(data.clone())
    });
    if failure.is_none() || !context.output.json {
        context.output.done(data, || words(&report, record.as_deref()));
    }
    failure.map_or(Ok(Exit::Ok.code()), Err)
}

/// Removes the folder on Ctrl-C. The workers receive the signal too and end by themselves.
fn remove_when_interrupted(folder: PathBuf) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let interrupted = runtime.map(|runtime| runtime.block_on(tokio::signal::ctrl_c()));
        if let Ok(Ok(())) = interrupted {
            let _ = std::fs::remove_dir_all(folder);
            crate::output::end(130);
        }
    });
}

/// Runs a worker process of [`run`].
pub(crate) fn work(instructions: &str) -> Result<i32, Failure> {
    let work = serde_json::from_str(instructions)
        .map_err(|error| Failure::usage(format!("invalid instructions for a worker: {error}")))?;
    selftest::work(&work)?;
    Ok(Exit::Ok.code())
}

/// Checks the turns in a file, one as JSON on each line, and prints how many there are. Exits 7 if two
/// of them did not exclude each other.
pub(crate) fn check(turns: &Path) -> Result<i32, Failure> {
    let unusable = |problem: String| Failure::usage(format!("{}: {problem}", turns.display()));
    let text = std::fs::read_to_string(turns).map_err(|error| unusable(error.to_string()))?;
    let recorded: Result<Vec<_>, _> = text.lines().map(serde_json::from_str).collect();
    let recorded = recorded.map_err(|error| unusable(error.to_string()))?;
    match selftest::check_turns(&recorded) {
        Ok(counts) => {
            let counts = json!({ "turns": counts.turns, "takeovers": counts.takeovers });
            let printed = writeln!(std::io::stdout().lock(), "{counts}");
            printed.map_err(|error| unusable(error.to_string()))?;
            Ok(Exit::Ok.code())
        }
        Err(violation) => {
            Err(Failure::new(Exit::CheckFailed, "NO_EXCLUSION", violation.to_string()))
        }
    }
}

fn words(report: &Report, record: Option<&Path>) -> String {
    let mut lines = report.lines();
    lines.push(LIMITS.to_owned());
    lines.extend(record.map(|path| format!("Recorded in {}", path.display())));
    lines.join("\n")
}

/// The file system under test.
struct TestedFileSystem {
    file_system: String,
    /// Where the result is recorded, for a file system that is refused without it.
    record_in: Option<PathBuf>,
}

impl TestedFileSystem {
    /// A refused file system is tested only for a store that can be allowed on it.
    fn of(url: &StoreUrl) -> Result<TestedFileSystem, Failure> {
        let (Some(folder), Some(own_folder)) = (url.folder(), url.own_folder()) else {
            let message = "a memory store cannot be shared by several processes";
            return Err(Failure::new(Exit::Configuration, "STORE_URL", message)
                .hint("Use sqlite:PATH or file:DIR."));
        };
        let refused = |error: PlaceError| match (error.file_system(), url) {
            (Some(name), StoreUrl::File { .. }) => {
                Ok(TestedFileSystem { file_system: name.to_owned(), record_in: Some(own_folder) })
            }
            _ => Err(error.into()),
        };
        let file_system = match place::check_file_system(folder) {
            Ok(FileSystem::Local(name)) => name.to_owned(),
            Ok(FileSystem::Unrecognised(magic)) => format!("file system 0x{magic:x}"),
            Ok(FileSystem::Unchecked) => "this file system".to_owned(),
            Err(error) => return refused(error),
        };
        Ok(TestedFileSystem { file_system, record_in: None })
    }
}

fn record(report: &Report, size: &TestSize, tested: &TestedFileSystem) -> ExclusionRecord {
    let shown = report.wrong().is_none();
    ExclusionRecord {
        version: ExclusionRecord::VERSION,
        result: if shown { ExclusionResult::Shown } else { ExclusionResult::Failed },
        at: show::time(SystemClock.wall()),
        host: platform::this_process().host,
        file_system: tested.file_system.clone(),
        processes: size.processes,
        rounds: report.rounds(),
        kills: report.kills(),
        limits: LIMITS.to_owned(),
    }
}
