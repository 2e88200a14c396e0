//! The command line: global options, the list of commands, and options that several commands share.

pub(crate) mod numbers;

use crate::commands;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tenure::core::glob::Glob;
use tenure::core::resource::check_name;
use tenure::core::{EventKind, Holder, Kind, LabelError, Resource, ResourceError, WallTime};
use tenure::place::Reach;
use tenure::world::{Clock, SystemClock};
use tenure_frontend::duration::{self, DurationError};

/// Locks, leases and task claims for fleets of agents and workers.
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
A resource is NAME (a lock), section:NAME, task:ID or path:GLOB. A path is
relative to the current folder.

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
    /// The store: sqlite:PATH, file:DIR, machine: (shared by all users), postgres://HOST/DATABASE,
    /// etcd://HOST:PORT, unix:SOCKET, http(s)://HOST:PORT or memory:; by default the nearest .tenure/
    /// [env: TENURE_STORE]
    #[arg(long, global = true, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) store: Option<String>,
    /// Your label; by default your agent's, else unique [env: TENURE_AGENT]
    #[arg(long = "as", global = true, value_name = "LABEL", value_parser = label)]
    pub(crate) label: Vec<String>,
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
    Workers(commands::workers::WorkersArgs),
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
    Backup(commands::backup::BackupArgs),
    Restore(commands::restore::RestoreArgs),
    Migrate(commands::migrate::MigrateArgs),
    Setup(commands::setup::SetupArgs),
    Config(commands::config::ConfigArgs),
    Trust(commands::trust::TrustArgs),
    #[command(visible_alias = "where")]
    Whoami(commands::whoami::WhoamiArgs),
    Doctor(commands::doctor::DoctorArgs),
    Gc(commands::gc::GcArgs),
    Store(commands::store::StoreArgs),
    Selftest(commands::selftest::SelftestArgs),
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
    /// Wait at most this long: seconds with fractions, 5m or forever; 0 means do not wait
    ///
    /// Without it a command waits forever on a terminal, and elsewhere as long as the setting
    /// locking.waitTimeout says (30m).
    #[arg(short = 'w', long = "wait", visible_alias = "timeout", value_name = "SECS", allow_negative_numbers = true, value_parser = patience)]
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
        Kind::split(&self.text).is_none()
    }
}

/// Parses a resource from the command line.
pub(crate) fn resource(text: &str) -> Result<ResourceArg, ResourceError> {
    match Kind::split(text) {
        // Whether it lies in the repository is checked later, where the current folder is known; the
        // rest of it is checked now.
        Some((Kind::Path, glob)) if !glob.starts_with("//") => {
            check_name(Kind::Path, glob)?;
            let steps = |segment: &&str| !matches!(*segment, "." | "..");
            let rest: Vec<&str> = glob.split('/').filter(steps).collect();
            let rest = rest.join("/");
            let rest = rest.trim_start_matches('/');
            if !rest.is_empty() {
                Glob::parse(rest)?;
            }
        }
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

/// Parses a kind of events.
pub(crate) fn event_kind(text: &str) -> Result<String, String> {
    match EventKind::WORDS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("kinds of events are {}", EventKind::WORDS.join(", "))),
    }
}

/// Parses a time in the past: a duration before now, or a time.
pub(crate) fn past_time(text: &str) -> Result<WallTime, String> {
    if let Ok(before) = duration::parse_duration(text) {
        let now = SystemClock.wall();
        let before_ms = i64::try_from(before.as_millis()).unwrap_or(i64::MAX);
        return Ok(WallTime(now.0.saturating_sub(before_ms)));
    }
    tenure_frontend::time::parse_time(text).ok_or_else(|| {
        "use a duration before now, such as 1h30m, or a time, such as 2026-01-29T20:30:00Z"
            .to_owned()
    })
}

/// Parses seconds, as `flock -w` takes them.
pub(crate) fn seconds(text: &str) -> Result<Duration, DurationError> {
    duration::parse_seconds(text)
}

/// A wait without a limit.
pub(crate) const FOREVER: Duration = Duration::MAX;

/// As [`seconds`], or `forever`.
pub(crate) fn patience(text: &str) -> Result<Duration, DurationError> {
    if text.trim() == "forever" { Ok(FOREVER) } else { seconds(text) }
}
