//! Measures what the command line asks for.

use crate::arguments::Arguments;
use crate::measurement::Measurement;
use crate::program::Program;
use crate::report::{Report, table};
use crate::{BenchError, BenchSetup, etcd, output, plot, postgres};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tenure::url::{EngineUrl, StoreUrl};

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let store = arguments.store.as_deref().map(str::parse::<StoreUrl>).transpose();
    let store = store.map_err(tenure::Error::from)?;
    match &store {
        Some(StoreUrl::Postgres(url)) => run_postgres(arguments, &url.to_string()),
        Some(StoreUrl::Etcd(url)) => run_etcd(arguments, url),
        store => run_local(arguments, store.as_ref()),
    }
}

/// Measures stores in a folder of its own, and tasks in the named store.
fn run_local(arguments: &Arguments, store: Option<&StoreUrl>) -> Result<(), BenchError> {
    let is_server = matches!(store, Some(StoreUrl::Remote(_)));
    let chosen = match arguments.measurements.as_slice() {
        // Only `serve` can be measured on a server.
        [] if is_server => vec![Measurement::Serve],
        measurements => Measurement::chosen(measurements),
    };
    let tasks_only =
        chosen.iter().all(|one| matches!(one, Measurement::Tasks | Measurement::Serve));
    let files = if tasks_only { None } else { files_in(arguments, store)? };
    let given_store = if tasks_only { given_store(store)? } else { None };
    let program = Program::find(arguments.program.clone())?;
    if chosen.iter().any(|one| one.runs_commands(is_server)) {
        program.check()?;
    }
    let parent = files.as_deref().or(arguments.dir.as_deref()).unwrap_or(Path::new("."));
    let setup = BenchSetup::new(parent, arguments.quick, files.is_some(), program)?;
    let setup = setup.with(given_store, arguments.peer.clone());
    let mut report = Report::default();
    output::note(&setup.words());
    for measurement in chosen {
        output::note(&format!("Measuring {} ...", measurement.word()));
        measurement.measure(&setup, &mut report)?;
    }
    if let Some(file) = &arguments.plot {
        std::fs::write(file, plot::svg(&report))
            .map_err(|source| BenchError::Plot { file: file.clone(), source })?;
    }
    done(arguments, &report, setup.json())
}

/// Measures a PostgreSQL store, in schemas of its own.
fn run_postgres(arguments: &Arguments, server: &str) -> Result<(), BenchError> {
    if !arguments.measurements.is_empty() || server.contains("schema=") {
        return Err(BenchError::Usage {
            message: "a PostgreSQL server is measured as a whole",
            hint: "Leave out measurements and ?schema=: it makes schemas and removes them.",
        });
    }
    let setup = server_setup(arguments)?;
    let mut report = Report::default();
    output::note("Measuring PostgreSQL ...");
    postgres::measure(server, &setup, &mut report)?;
    let mut environment = setup.json();
    environment["engine"] = json!("PostgreSQL");
    done(arguments, &report, environment)
}

/// Measures an etcd store, below prefixes of its own.
fn run_etcd(arguments: &Arguments, url: &EngineUrl) -> Result<(), BenchError> {
    if !arguments.measurements.is_empty() || !url.path.is_empty() {
        return Err(BenchError::Usage {
            message: "etcd is measured as a whole",
            hint: "Leave out measurements and the prefix: it makes prefixes and removes them.",
        });
    }
    if url.scheme != "etcd" || url.user.is_some() {
        return Err(BenchError::Usage {
            message: "etcd is measured without TLS and without users",
            hint: "Start an etcd for the measurement, and write etcd://HOST:PORT.",
        });
    }
    let setup = server_setup(arguments)?;
    setup.program().check()?;
    let mut report = Report::default();
    output::note("Measuring etcd ...");
    etcd::measure(&url.hosts, &setup, &mut report)?;
    let mut environment = setup.json();
    environment["engine"] = json!("etcd");
    done(arguments, &report, environment)
}

/// A folder for scripts and the like; the stores are at servers.
fn server_setup(arguments: &Arguments) -> Result<BenchSetup, BenchError> {
    let parent = arguments.dir.as_deref().unwrap_or(Path::new("."));
    let program = Program::find(arguments.program.clone())?;
    BenchSetup::new(parent, arguments.quick, false, program)
}

/// Prints the results.
fn done(arguments: &Arguments, report: &Report, environment: Value) -> Result<(), BenchError> {
    if !arguments.json {
        return output::done(&table(report));
    }
    let mut data = report.json();
    data["setup"] = environment;
    data["plot"] = json!(arguments.plot);
    output::done(&data.to_string())
}

/// The named store for measuring tasks. It must have no tasks, and is left full of them.
fn given_store(store: Option<&StoreUrl>) -> Result<Option<String>, BenchError> {
    let Some(url) = store else { return Ok(None) };
    if *url == StoreUrl::Memory {
        return Err(BenchError::Usage {
            message: "a memory store cannot be shared by several processes",
            hint: "Leave out --store, or name a store without tasks.",
        });
    }
    let here = std::env::current_dir()
        .map_err(|source| BenchError::Folder { folder: ".".into(), source })?;
    Ok(Some(url.clone().beneath(&here).to_string()))
}

/// The folder of `--store file:DIR`, where file stores are measured. Any other store is refused: it
/// may be in use.
fn files_in(
    arguments: &Arguments,
    store: Option<&StoreUrl>,
) -> Result<Option<PathBuf>, BenchError> {
    match store {
        None => Ok(None),
        Some(StoreUrl::File { folder, dialect, .. })
            if dialect.is_native() && arguments.dir.is_none() =>
        {
            Ok(Some(folder.clone()))
        }
        Some(_) => Err(BenchError::Usage {
            message: "this is not measured in an existing store",
            hint: "Choose a folder for a new store with --dir DIR, or with --store file:DIR for the file store.",
        }),
    }
}
