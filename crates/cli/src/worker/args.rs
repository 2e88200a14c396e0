//! Which tasks to take, and how to do them.

use crate::args;
use crate::commands::task_files;
use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use tenure::{ClaimRequest, Client, Swarm};
use tenure_frontend::config::Key;

/// How long a task is put off whose command says "not now".
const SNOOZE: &str = "5m";

/// What killing what does not obey may take, after the grace.
const KILLING: Duration = Duration::from_secs(10);

/// Options of `work` and `swarm`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Only tasks of this section
    #[arg(long, value_name = "SECTION")]
    pub(crate) section: Option<String>,
    /// Only tasks with this label; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// Add the tasks of this file first; those that are there already stay as they are
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    tasks: Option<PathBuf>,
    /// Length of a claim's lease, renewed from a third of it [default: locking.runTimeout, 30s]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
    /// Time that a command is given to end [default: locking.grace, 5s]
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    grace: Option<Duration>,
    /// How long to put off a task whose command exits with 75
    #[arg(long, value_name = "DURATION", default_value = SNOOZE, value_parser = args::span)]
    pub(crate) snooze: Duration,
    /// How often to look for work at least, when there is none
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = args::span)]
    poll: Duration,
    /// Write what the commands print to files in this folder, one for each attempt
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) logs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) command: args::CommandArgs,
}

/// A pause of nothing would be a busy loop.
const POLL_MIN: Duration = Duration::from_millis(10);

impl WorkerArgs {
    /// Time between SIGTERM and SIGKILL.
    pub(crate) fn grace(&self, context: &Context) -> Duration {
        self.grace.unwrap_or_else(|| context.settings.duration(Key::Grace))
    }

    /// Workers that take what is asked for.
    pub(crate) fn swarm(&self, context: &Context, client: &Client) -> Swarm {
        let ttl = self.ttl.unwrap_or_else(|| context.settings.duration(Key::RunTimeout));
        let grace = self.grace(context);
        let request = ClaimRequest {
            section: self.section.clone(),
            labels: self.labels.clone(),
            ttl,
            section_ttl: ttl,
            ..ClaimRequest::default()
        };
        Swarm::new(client, request)
            // Trust ends early enough that a command can be stopped before another may begin.
            .margin(grace.min(ttl / 3))
            .clean_up(grace + KILLING)
            .look_every(self.poll.max(POLL_MIN))
    }

    /// Adds the tasks of the file, if one was given.
    pub(crate) async fn import(&self, context: &Context, client: &Client) -> Result<(), Failure> {
        let Some(path) = &self.tasks else { return Ok(()) };
        let file = task_files::read(path, None)?;
        file.notes.iter().for_each(|note| context.output.note(note));
        let added = client.tasks().import(file.tasks, file.sections).await?.added.len();
        let tasks = if added == 1 { "task" } else { "tasks" };
        context.output.note(&format!("Added {added} {tasks} from {}", path.display()));
        Ok(())
    }
}
