//! The command line.

pub(crate) mod numbers;

use crate::commands;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tenure::core::{Holder, Kind, LabelError, Resource, ResourceError};
use tenure::place::Reach;
use tenure_frontend::duration::{self, DurationError};

/// Locks, leases and task claims for fleets of agents and workers.
///
/// tenure makes sure that only one of many processes does a thing at a time, tells who does it,
/// and recovers by itself when that one dies.
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
Resources are written NAME (a lock), section:NAME, task:ID or path:GLOB.

Examples:
  tenure run deploy -- ./deploy.sh        run under a lock; wait if it is held
  tenure run -n backup -- ./backup.sh     do not wait: exit 6 if it is held
  tenure update n.json -- jq '.n += 1'    change a shared file, one at a time
  tenure acquire db --ttl 10m             take a lease and keep it after this command ends
  tenure why deploy                       who holds it, who waits, what would free it
  tenure locks                            everything that is held
  tenure tasks claim --as alice           the next task that is ready
  tenure work -- ./agent.sh               do one task after another
  tenure swarm -n 8 -- ./agent.sh         eight at a time, until all are done

Exit codes: 0 ok, 1 error, 2 usage, 3 configuration or store, 4 not found, 5 not yours or needs
--force, 6 locked or not in time, 7 a check failed, 8 lease lost or token refused. run and update
pass the command's own code through."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The store: sqlite:PATH; the nearest one by default [env: TENURE_STORE]
    #[arg(long, global = true, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) store: Option<String>,
    /// Your label, under which you hold; unique by default [env: TENURE_AGENT]
    #[arg(long = "as", global = true, value_name = "LABEL", value_parser = label)]
    pub(crate) label: Option<String>,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say only what was asked for
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// No colours, not even on a terminal
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Read settings from this file only
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Act as if started in this folder
    #[arg(short = 'C', global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Never wait for what is held: exit 6 at once
    #[arg(long, global = true)]
    pub(crate) no_wait: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(commands::run::RunArgs),
    Update(commands::update::UpdateArgs),
    Append(commands::append::AppendArgs),
    Work(commands::work::WorkArgs),
    Swarm(commands::swarm::SwarmArgs),
    Acquire(commands::acquire::AcquireArgs),
    Renew(commands::renew::RenewArgs),
    Release(commands::release::ReleaseArgs),
    Break(commands::breaking::BreakArgs),
    Verify(commands::verify::VerifyArgs),
    Wait(commands::wait::WaitArgs),
    Status(commands::status::StatusArgs),
    Locks(commands::locks::LocksArgs),
    Tasks(commands::tasks::TasksArgs),
    Sections(commands::sections::SectionsArgs),
    Top(commands::top::TopArgs),
    Why(commands::why::WhyArgs),
    Events(commands::events::EventsArgs),
    Serve(commands::serve::ServeArgs),
    Token(commands::token::TokenArgs),
    Mcp(commands::mcp::McpArgs),
    Init(commands::init::InitArgs),
    Config(commands::config::ConfigArgs),
    Trust(commands::trust::TrustArgs),
    #[command(visible_alias = "where")]
    Whoami(commands::whoami::WhoamiArgs),
    Doctor(commands::doctor::DoctorArgs),
    Selftest(commands::selftest::SelftestArgs),
    Bench(commands::bench::BenchArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// How to hold.
#[derive(Debug, Args)]
pub(crate) struct ModeArgs {
    /// Hold beside other shared holders
    #[arg(short, long, conflicts_with_all = ["exclusive", "slots"])]
    pub(crate) shared: bool,
    /// Hold alone (the default)
    #[arg(short = 'x', long, conflicts_with = "slots")]
    pub(crate) exclusive: bool,
    /// Hold one of N slots
    #[arg(long, value_name = "N", value_parser = numbers::slots)]
    pub(crate) slots: Option<u32>,
}

impl ModeArgs {
    pub(crate) fn mode(&self) -> tenure::core::Mode {
        match (self.shared, self.slots) {
            (true, _) => tenure::core::Mode::Shared,
            (false, Some(of)) => tenure::core::Mode::Slot { of },
            (false, None) => tenure::core::Mode::Exclusive,
        }
    }
}

/// How patiently to wait.
#[derive(Debug, Args)]
pub(crate) struct PatienceArgs {
    /// Do not wait: exit 6 if it is held
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "limit")]
    pub(crate) nonblock: bool,
    /// Wait at most so long (fractions allowed; 0: do not wait; also 5m)
    #[arg(short = 'w', long = "wait", visible_alias = "timeout", value_name = "SECS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) limit: Option<Duration>,
}

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct CommandArgs {
    /// Run this line through the shell ($SHELL, or /bin/sh) instead of COMMAND
    #[arg(
        short = 'c',
        long = "command",
        value_name = "LINE",
        allow_hyphen_values = true,
        conflicts_with = "command"
    )]
    line: Option<OsString>,
    /// The command, run directly, not through a shell
    #[arg(required_unless_present = "line", last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl CommandArgs {
    /// The program and its arguments.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match &self.line {
            Some(line) => vec![shell(), SHELL_OPTION.into(), line.clone()],
            None => self.command.clone(),
        }
    }

    /// The command as it was written, for people.
    pub(crate) fn shown(&self) -> String {
        let words = match &self.line {
            Some(line) => std::slice::from_ref(line),
            None => self.command.as_slice(),
        };
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

/// What tells a shell that a line follows.
const SHELL_OPTION: &str = if cfg!(windows) { "/C" } else { "-c" };

/// The user's shell, as flock(1) chooses it.
fn shell() -> OsString {
    let usual = if cfg!(windows) { "cmd" } else { "/bin/sh" };
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| usual.into())
}

/// In which worktrees a path is meant.
#[derive(Debug, Args)]
pub(crate) struct ReachArgs {
    /// Of paths, mean those in this git worktree alone, not the same ones in all of them
    #[arg(long)]
    pub(crate) per_worktree: bool,
}

impl ReachArgs {
    pub(crate) fn reach(&self) -> Reach {
        if self.per_worktree { Reach::ThisWorktree } else { Reach::AllWorktrees }
    }
}

/// A resource as it was written on the command line. Which one is meant depends on the place: see
/// [`Context::resource`](crate::context::Context::resource).
#[derive(Clone, Debug)]
pub(crate) struct ResourceArg {
    pub(crate) text: String,
}

impl ResourceArg {
    /// Whether it is a name without a kind.
    pub(crate) fn is_plain(&self) -> bool {
        let word = self.text.split_once(':').map(|(word, _)| word);
        Kind::ALL.into_iter().all(|kind| word != Some(kind.word()))
    }
}

/// A resource on the command line.
pub(crate) fn resource(text: &str) -> Result<ResourceArg, ResourceError> {
    // Whether an absolute path is in the repository is seen later; the rest of it is checked now.
    let rest = text.strip_prefix("path:/").filter(|rest| !rest.starts_with('/'));
    match rest {
        Some(rest) if !rest.is_empty() => drop(Resource::new(Kind::Path, rest)?),
        _ => drop(text.parse::<Resource>()?),
    }
    Ok(ResourceArg { text: text.to_owned() })
}

/// A label on the command line. An empty one is refused here: it is a variable that was not set.
fn label(text: &str) -> Result<String, LabelError> {
    Holder::chosen(text).map(|holder| holder.label)
}

/// A lease's length on the command line.
pub(crate) fn lease(text: &str) -> Result<Duration, DurationError> {
    duration::parse_lease(text)
}

/// A span of time on the command line.
pub(crate) fn span(text: &str) -> Result<Duration, DurationError> {
    duration::parse_duration(text)
}

/// Seconds on the command line, as `flock -w` takes them.
pub(crate) fn seconds(text: &str) -> Result<Duration, DurationError> {
    duration::parse_seconds(text)
}
