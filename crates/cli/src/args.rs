//! The command line: global options, the list of commands, and options that several commands share.

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
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
A resource is NAME (a lock), section:NAME, task:ID or path:GLOB.

Examples:
  tenure run deploy -- ./deploy.sh   run a command under a lock; wait if held
  tenure work -- ./agent.sh          a worker: runs a command for each task
  tenure why deploy                  who holds it, who waits, what would free it

Exit codes: 0 done, 1 error, 2 usage, 3 configuration or store, 4 not found,
5 not yours, 6 locked or timed out, 7 a check failed, 8 lease lost or token
refused. `run` and `update` exit with the code of their command.

More: tenure COMMAND --help"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The store: sqlite:PATH, file:DIR, machine: (shared by all users), memory:, unix:SOCKET or
    /// http(s)://HOST:PORT; by default the nearest .tenure/ [env: TENURE_STORE]
    #[arg(long, global = true, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) store: Option<String>,
    /// The label you hold under; unique by default [env: TENURE_AGENT]
    #[arg(long = "as", global = true, value_name = "LABEL", value_parser = label)]
    pub(crate) label: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only the result
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more on stderr
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print no colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Read settings from this file only
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Run as if started in this folder
    #[arg(short = 'C', global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Never wait: exit 6 at once if it is held
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
    Break(commands::break_hold::BreakArgs),
    Verify(commands::verify::VerifyArgs),
    Wait(commands::wait::WaitArgs),
    Status(commands::status::StatusArgs),
    Locks(commands::locks::LocksArgs),
    Mine(commands::mine::MineArgs),
    Tasks(commands::tasks::TasksArgs),
    Sections(commands::sections::SectionsArgs),
    Top(commands::top::TopArgs),
    Why(commands::why::WhyArgs),
    Events(commands::events::EventsArgs),
    Serve(commands::serve::ServeArgs),
    Token(commands::token::TokenArgs),
    Mcp(commands::mcp::McpArgs),
    Guard(commands::guard::GuardArgs),
    Prime(commands::prime::PrimeArgs),
    Hook(commands::hook::HookArgs),
    Init(commands::init::InitArgs),
    Setup(commands::setup::SetupArgs),
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

/// How to hold: exclusive, shared, or one of N slots.
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

/// How long to wait.
#[derive(Debug, Args)]
pub(crate) struct PatienceArgs {
    /// Do not wait: exit 6 if it is held
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "limit")]
    pub(crate) nonblock: bool,
    /// Wait at most this long: seconds with fractions, or 5m; 0 means do not wait
    #[arg(short = 'w', long = "wait", visible_alias = "timeout", value_name = "SECS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) limit: Option<Duration>,
}

/// The command to run.
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

    /// The command as it was typed, for messages.
    pub(crate) fn shown(&self) -> String {
        let words = match &self.line {
            Some(line) => std::slice::from_ref(line),
            None => self.command.as_slice(),
        };
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

/// The option that gives a shell a command line to run.
const SHELL_OPTION: &str = "-c";

/// The user's shell, as flock(1) chooses it.
fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}

/// Whether a path means one git worktree or all of them.
#[derive(Debug, Args)]
pub(crate) struct ReachArgs {
    /// Take paths as those of this git worktree alone; by default a path means the same file in all
    /// worktrees
    #[arg(long)]
    pub(crate) per_worktree: bool,
}

impl ReachArgs {
    pub(crate) fn reach(&self) -> Reach {
        if self.per_worktree { Reach::ThisWorktree } else { Reach::AllWorktrees }
    }
}

/// A resource as it was typed on the command line. The folder and the store decide which resource
/// it names: see [`Context::resource`](crate::context::Context::resource).
#[derive(Clone, Debug)]
pub(crate) struct ResourceArg {
    pub(crate) text: String,
}

impl ResourceArg {
    /// Whether it is a name without a kind, such as `deploy`.
    pub(crate) fn is_plain(&self) -> bool {
        let word = self.text.split_once(':').map(|(word, _)| word);
        Kind::ALL.into_iter().all(|kind| word != Some(kind.word()))
    }
}

/// Parses a resource from the command line.
pub(crate) fn resource(text: &str) -> Result<ResourceArg, ResourceError> {
    // Whether an absolute path lies in the repository is checked later; the rest of it is checked
    // now.
    let rest = text.strip_prefix("path:/").filter(|rest| !rest.starts_with('/'));
    match rest {
        Some(rest) if !rest.is_empty() => drop(Resource::new(Kind::Path, rest)?),
        _ => drop(text.parse::<Resource>()?),
    }
    Ok(ResourceArg { text: text.to_owned() })
}

/// Parses a label from the command line. An empty label is refused: it comes from a variable that
/// was not set.
fn label(text: &str) -> Result<String, LabelError> {
    Holder::chosen(text).map(|holder| holder.label)
}

/// Parses the length of a lease.
pub(crate) fn lease(text: &str) -> Result<Duration, DurationError> {
    duration::parse_lease(text)
}

/// Parses a duration.
pub(crate) fn span(text: &str) -> Result<Duration, DurationError> {
    duration::parse_duration(text)
}

/// Parses seconds, as `flock -w` takes them.
pub(crate) fn seconds(text: &str) -> Result<Duration, DurationError> {
    duration::parse_seconds(text)
}
