//! `tenure-bench`: measures how fast tenure is on this machine. Each measurement runs next to a bare
//! equivalent, and the ratio counts.
//!
//! In reading order: `arguments` is the command line and `run` does what it says, `setup` is the folder and
//! the settings, `program` is the measured `tenure` command, `processes` starts processes and `worker` is
//! one of them, `sqlite_baseline` is the SQLite baseline, `file_baseline` the file baseline, and `soft_lock` a
//! Python library. The measurements, listed in `measurement`, are `pair`, `oneshot`, `handoff`, `fairness`,
//! `idle`, `tasks` and `serve`; `postgres` (with `notify_baseline`) and `etcd` measure such stores. `report`
//! formats the results, `plot` draws them and `output` prints them.

mod arguments;
mod error;
mod etcd;
mod fairness;
mod file_baseline;
mod handoff;
mod idle;
mod measurement;
mod notify_baseline;
mod oneshot;
mod output;
mod pair;
mod plot;
mod postgres;
mod processes;
mod program;
mod report;
mod run;
mod sample;
mod serve;
mod setup;
mod soft_lock;
mod sqlite_baseline;
mod tasks;
mod worker;

use arguments::Arguments;
use clap::Parser;
use error::BenchError;
use setup::BenchSetup;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match worker::instructions(std::env::args_os()) {
        Some(instructions) => worker::work(&instructions),
        None => run::run(&Arguments::parse()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::fail(&error);
            error.exit_code()
        }
    }
}
