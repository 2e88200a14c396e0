//! `tenure mcp`: serves MCP tools to one agent over standard input and output.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::aside;
use crate::setup::{self, Project};
use crate::worker::stop_signals;
use clap::Args;
use std::time::Duration;
use tenure::agent::Host;
use tenure_frontend::config::Key;
use tenure_frontend::naming::CallerFiles;
use tenure_server::mcp::{Options, StdioError, serve_stdio};

/// Serve one agent over the Model Context Protocol on stdin/stdout
///
/// An agent's program starts this once per session; any number of sessions share a store. It offers
/// tools to add, claim and finish tasks, to hold locks, and to see who holds what. Each call renews
/// everything that the session holds. When the session ends, its locks are released and its tasks
/// returned; when it is killed, others take over at once.
///
/// The session is the same holder as the shell commands and hooks of its agent: see `tenure whoami`. If
/// nothing says which agent it is, or with --as, the label is the name that the agent gives itself, else
/// --as, else the name of its program, with a suffix for the session: two sessions share nothing then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  claude mcp add tenure -- tenure mcp
  tenure --store sqlite:/srv/team/tenure.db mcp --as reviewer
  codex mcp add tenure -- tenure mcp --lock-ttl 30m")]
pub(crate) struct McpArgs {
    /// Length of a lock's lease, renewed by each call of the agent
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = args::lease)]
    lock_ttl: Duration,
    /// Length of a task's lease, renewed by each call [default: the setting locking.taskTimeout]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    task_ttl: Option<Duration>,
}

/// What an agent is told whose program should run hooks here, as long as none was heard of.
fn without_hooks(context: &Context) -> Option<String> {
    let host = Host::around_this_process()?;
    let project = Project::of(context).ok()?;
    setup::target(host.word())?.is_set_up(&project).then(|| {
        format!(
            "No hook of {host} has run in this session, so edits are neither taken for you nor \
             refused: acquire_lock path:FILE before you edit, and release it when it is committed. \
             Tell the user: start {host} in {}; `tenure doctor` says what else may be missing.",
            project.root.display()
        )
    })
}

pub(crate) async fn run(context: &Context, args: McpArgs) -> Result<i32, Failure> {
    let client = context.mcp_client().await?;
    let label = context.chosen_label().map(str::to_owned);
    // Whoever chose a label, or wants none, is not called by the session that a call names.
    let is_found = label.is_none() && context.settings.text(Key::Identity) != Some("off");
    let options = Options {
        sessions: context.known_sessions().filter(|_| is_found),
        without_hooks: without_hooks(context),
        label,
        lock_ttl: args.lock_ttl,
        task_ttl: args.task_ttl.unwrap_or_else(|| context.settings.duration(Key::TaskTimeout)),
        section_ttl: context.settings.duration(Key::SectionTimeout),
        place: context.place().ok().cloned(),
        files: CallerFiles::Here,
        rescuer: context.rescuer(),
        around: context.enclosing_grants(),
        ..Options::default()
    };
    let mut signals = stop_signals::listen()?;
    let stop = async {
        signals.next().await;
        aside::hurry();
    };
    serve_stdio(client, options, stop).await.map_err(|error| match error {
        StdioError::Store(error) => error.into(),
        StdioError::Protocol(_) => Failure::new(Exit::Error, "PROTOCOL", error.to_string())
            .hint("Agents start this command, not people; see `tenure mcp --help`."),
    })?;
    Ok(0)
}
