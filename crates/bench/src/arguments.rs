//! The command line.

use crate::measurement::Measurement;
use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, ValueHint};
use std::path::PathBuf;

/// Measure how fast tenure is on this machine
///
/// Each figure stands next to that of a bare equivalent in the same run: compare ratios, not
/// figures of different runs. It measures in a new folder, never in a store that is in use. It
/// takes a minute or two, and exits 0 whether or not targets are met.
#[derive(Debug, Parser)]
#[command(
    name = "tenure-bench",
    version,
    after_help = "\
scripts/bench builds the tenure command and this program, and runs it:
  scripts/bench
  scripts/bench handoff idle
  scripts/bench tasks
  scripts/bench --quick --json
  scripts/bench --dir /dev/shm --plot bench.svg
  scripts/bench --store file:. pair
  scripts/bench --store http://127.0.0.1:7070
  scripts/bench --store postgres://localhost/test   next to the same statements by pgbench
  scripts/bench --store etcd://localhost:2379   next to bare calls and `etcdctl lock`"
)]
pub(crate) struct Arguments {
    /// What to measure; by default everything except tasks and serve; for a server, serve
    #[arg(value_name = "MEASUREMENT")]
    pub(crate) measurements: Vec<Measurement>,
    /// Measure this store: file:DIR (file stores in a new folder of DIR), postgres://HOST/DATABASE,
    /// etcd://HOST:PORT, or for tasks and serve any store without tasks
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) store: Option<String>,
    /// Measure in a new folder here, on this file system [default: the current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Take only a few seconds, with rougher figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Draw hand-offs, pairs and tasks into this SVG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plot: Option<PathBuf>,
    /// Compare tasks with this claimd [default: the one on the search path, if any]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    pub(crate) peer: Option<PathBuf>,
    /// Measure this tenure command [default: the one beside this program]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(crate) program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
