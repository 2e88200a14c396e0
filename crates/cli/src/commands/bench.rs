//! `tenure bench`: measures speed on this machine, next to a bare equivalent.

use crate::args::Global;
use crate::bench::{self, BenchError, BenchSetup, Measurement, Report};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, ValueHint};
use serde_json::json;
use std::path::{Path, PathBuf};
use tenure::url::{EngineUrl, StoreUrl};

/// Measure how fast tenure is on this machine
///
/// Each figure stands next to that of a bare equivalent in the same run: compare ratios, not
/// figures of different runs. It measures in a new folder, never in a store that is in use. It
/// takes a minute or two, and exits 0 whether or not targets are met.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure bench
  tenure bench handoff idle
  tenure bench tasks
  tenure bench --quick --json
  tenure bench --dir /dev/shm --plot bench.svg
  tenure bench --store file:. pair
  tenure bench --store http://127.0.0.1:7070
  tenure bench --store postgres://localhost/test   next to the same statements by pgbench
  tenure bench --store etcd://localhost:2379   next to bare calls and `etcdctl lock`")]
pub(crate) struct BenchArgs {
    /// What to measure; by default everything except tasks and serve; for a server, serve
    #[arg(value_name = "MEASUREMENT")]
    measurements: Vec<Measurement>,
    /// Measure in a new folder here, on this file system [default: the current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// Take only a few seconds, with rougher figures
    #[arg(long)]
    quick: bool,
    /// Draw hand-offs, pairs and tasks into this SVG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,
    /// Compare tasks with this claimd [default: the one on the search path, if any]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    peer: Option<PathBuf>,
}

pub(crate) fn run(output: &Output, global: &Global, args: &BenchArgs) -> Result<i32, Failure> {
    let store = global.store.as_deref().and_then(|url| url.parse().ok());
    if let Some(StoreUrl::Postgres(url)) = &store {
        return run_postgres(output, &url.to_string(), args);
    }
    if let Some(StoreUrl::Etcd(url)) = &store {
        return run_etcd(output, url, args);
    }
    let chosen = match (store, args.measurements.as_slice()) {
        // Only `serve` can be measured on a server.
        (Some(StoreUrl::Remote(_)), []) => vec![Measurement::Serve],
        (_, measurements) => Measurement::chosen(measurements),
    };
    let tasks_only =
        chosen.iter().all(|one| matches!(one, Measurement::Tasks | Measurement::Serve));
    let files = if tasks_only { None } else { files_in(global, args)? };
    let given_store = if tasks_only { given_store(global)? } else { None };
    let parent = files.as_deref().or(args.dir.as_deref()).unwrap_or(Path::new("."));
    let setup = BenchSetup::new(parent, args.quick, files.is_some())?;
    let setup = setup.with(given_store, args.peer.clone());
    remove_when_interrupted(setup.folder().to_owned());
    let mut report = Report::default();
    output.note(&setup.words());
    for measurement in chosen {
        output.note(&format!("Measuring {} ...", measurement.word()));
        measurement.measure(&setup, &mut report)?;
    }
    if let Some(file) = &args.plot {
        std::fs::write(file, bench::svg(&report))
            .map_err(|source| BenchError::Plot { file: file.clone(), source })?;
    }
    let mut data = report.json();
    data["setup"] = setup.json();
    data["plot"] = json!(args.plot);
    output.done(data, || bench::table(&report));
    Ok(Exit::Ok.code())
}

/// Measures a PostgreSQL store, in schemas of its own.
fn run_postgres(output: &Output, server: &str, args: &BenchArgs) -> Result<i32, Failure> {
    if !args.measurements.is_empty() || server.contains("schema=") {
        return Err(Failure::usage("bench measures a PostgreSQL server as a whole")
            .hint("Leave out measurements and ?schema=: it makes schemas and removes them."));
    }
    let parent = args.dir.as_deref().unwrap_or(Path::new("."));
    let setup = BenchSetup::new(parent, args.quick, false)?;
    remove_when_interrupted(setup.folder().to_owned());
    let mut report = Report::default();
    output.note("Measuring PostgreSQL ...");
    bench::measure_postgres(server, &setup, &mut report)?;
    let mut data = report.json();
    data["setup"] = setup.json();
    data["setup"]["engine"] = json!("PostgreSQL");
    output.done(data, || bench::table(&report));
    Ok(Exit::Ok.code())
}

/// Measures an etcd store, below prefixes of its own.
fn run_etcd(output: &Output, url: &EngineUrl, args: &BenchArgs) -> Result<i32, Failure> {
    if !args.measurements.is_empty() || !url.path.is_empty() {
        return Err(Failure::usage("bench measures etcd as a whole")
            .hint("Leave out measurements and the prefix: it makes prefixes and removes them."));
    }
    if url.scheme != "etcd" || url.user.is_some() {
        return Err(Failure::usage("bench measures etcd without TLS and without users")
            .hint("Start an etcd for the measurement, and write etcd://HOST:PORT."));
    }
    let parent = args.dir.as_deref().unwrap_or(Path::new("."));
    let setup = BenchSetup::new(parent, args.quick, false)?;
    remove_when_interrupted(setup.folder().to_owned());
    let mut report = Report::default();
    output.note("Measuring etcd ...");
    bench::measure_etcd(&url.hosts, &setup, &mut report)?;
    let mut data = report.json();
    data["setup"] = setup.json();
    data["setup"]["engine"] = json!("etcd");
    output.done(data, || bench::table(&report));
    Ok(Exit::Ok.code())
}

/// The named store for measuring tasks. It must have no tasks, and is left full of them.
fn given_store(global: &Global) -> Result<Option<String>, Failure> {
    let Some(url) = &global.store else { return Ok(None) };
    let url: StoreUrl = url.parse().map_err(tenure::Error::from)?;
    if url == StoreUrl::Memory {
        return Err(Failure::usage("a memory store cannot be shared by several processes"));
    }
    let here = std::env::current_dir()
        .map_err(|source| BenchError::Folder { folder: ".".into(), source })?;
    Ok(Some(url.beneath(&here).to_string()))
}

/// The folder of `--store file:DIR`, where file stores are measured. Any other store is refused: it
/// may be in use.
fn files_in(global: &Global, args: &BenchArgs) -> Result<Option<PathBuf>, Failure> {
    let Some(url) = &global.store else { return Ok(None) };
    match url.parse() {
        Ok(StoreUrl::File { folder, dialect, .. }) if dialect.is_native() && args.dir.is_none() => {
            Ok(Some(folder))
        }
        _ => Err(Failure::usage("bench does not measure in an existing store").hint(
            "Choose a folder for a new store with --dir DIR, or with --store file:DIR for the file store.",
        )),
    }
}

/// Runs a worker process of [`run`].
pub(crate) fn work(instructions: &str) -> Result<i32, Failure> {
    let work = serde_json::from_str(instructions)
        .map_err(|error| Failure::usage(format!("invalid instructions for a worker: {error}")))?;
    bench::work(work)?;
    Ok(Exit::Ok.code())
}

/// Removes the folder on Ctrl-C. The workers receive the signal too and end by themselves.
pub(crate) fn remove_when_interrupted(folder: PathBuf) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let interrupted = runtime.map(|runtime| runtime.block_on(tokio::signal::ctrl_c()));
        if let Ok(Ok(())) = interrupted {
            let _ = std::fs::remove_dir_all(folder);
            crate::output::end(130);
        }
    });
}
