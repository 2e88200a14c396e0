//! Options of `work` and `swarm`: which tasks to claim, and how to run the command.

use crate::args;
use crate::commands::task_files;
use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use tenure::core::GrantId;
use tenure::{ClaimRequest, Client, Swarm};
use tenure_frontend::config::Key;
use tenure_frontend::refusal::Refusal;

/// The default snooze of a task whose command exits with 75.
const SNOOZE: &str = "5m";

/// How long killing a command may take after the grace period.
const KILLING: Duration = Duration::from_secs(10);

/// Options of `work` and `swarm`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Only tasks of this section
    #[arg(long, value_name = "SECTION")]
    pub(crate) section: Option<String>,
    /// Only tasks with this label; can be repeated
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// First add the tasks of this file; existing tasks stay as they are
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    tasks: Option<PathBuf>,
    /// Length of a claim's lease; it is renewed automatically [default: locking.runTimeout, 30s]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
    /// Time between SIGTERM and SIGKILL [default: locking.grace, 5s]
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    grace: Option<Duration>,
    /// How long to snooze a task whose command exits with 75
    #[arg(long, value_name = "DURATION", default_value = SNOOZE, value_parser = args::span)]
    pub(crate) snooze: Duration,
    /// How often to look for tasks when none is ready
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = args::span)]
    poll: Duration,
    /// Write the output of the commands to files in this folder, one for each attempt
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) logs: Option<PathBuf>,
    /// Run each command in a git worktree of its own in this folder, with a branch of its own
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) worktrees: Option<PathBuf>,
    /// Where the branches of --worktrees begin: a branch or a commit [default: HEAD]
    #[arg(long, value_name = "REF", requires = "worktrees")]
    pub(crate) base: Option<String>,
    #[command(flatten)]
    pub(crate) command: args::CommandArgs,
}

/// A pause of zero would be a busy loop.
const POLL_MIN: Duration = Duration::from_millis(10);

impl WorkerArgs {
    /// Time between SIGTERM and SIGKILL.
    pub(crate) fn grace(&self, context: &Context) -> Duration {
        self.grace.unwrap_or_else(|| context.settings.duration(Key::Grace))
    }

    /// The workers that these options describe. What these grants hold is not in their way.
    pub(crate) fn swarm(&self, context: &Context, client: &Client, under: Vec<GrantId>) -> Swarm {
        let ttl = self.ttl.unwrap_or_else(|| context.settings.duration(Key::RunTimeout));
        let grace = self.grace(context);
        let request = ClaimRequest {
            section: self.section.clone(),
            labels: self.labels.clone(),
            ttl,
            section_ttl: ttl,
            workspace: context.rescuer().workspace(),
            under,
            ..ClaimRequest::default()
        };
        Swarm::new(client, request)
            // The claim counts as lost early enough to stop the command before another worker may
            // begin.
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

    /// What a worker says that stops because nothing is left, and that did nothing.
    pub(crate) fn nothing_done(&self) -> String {
        let section = self.section.as_ref().map(|name| format!("in section {name:?}"));
        let labels = self.labels.iter().map(|label| format!("with label {label:?}"));
        let filters: Vec<String> = section.into_iter().chain(labels).collect();
        match filters.as_slice() {
            [] => "No task is left to do".to_owned(),
            filters => format!("No task {} is left to do", filters.join(" ")),
        }
    }

    /// Refuses a section that has neither tasks nor a record: all of nothing would count as done.
    pub(crate) async fn refuse_unknown_section(&self, client: &Client) -> Result<(), Failure> {
        let Some(name) = &self.section else { return Ok(()) };
        let sections = client.tasks().sections().await?;
        match sections.iter().any(|seen| seen.section.name == *name) {
            true => Ok(()),
            false => Err(Refusal::no_such_section(name).into()),
        }
    }
}
