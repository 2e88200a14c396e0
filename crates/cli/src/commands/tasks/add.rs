//! `tenure tasks add`: adds a task.

use super::values::{self, TimeArg};
use super::{find, show};
use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::rules::tasks::{AddError, Added, NewTask};
use tenure::core::task::{MAX_ATTEMPTS_DEFAULT, PRIORITY_DEFAULT};
use tenure::core::{GrantId, TaskId};
use tenure::{Client, Error};
use tenure_frontend::view;

/// How often a new id is drawn if a task already has it. With a million tasks one draw in four
/// thousand collides, so this many in a row never do.
const DRAWS: usize = 16;

/// Add a task
///
/// Prints its id. With the --key of an existing task nothing is added, and that task's id is
/// printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks add 'Fix bug' --section Backend --priority 10 --file 'src/**'
  tenure tasks add Deploy --after 'Fix bug' --not-before +10m
  ID=$(tenure tasks add Nightly --key nightly-$(date +%F) --print-id)")]
pub(super) struct AddArgs {
    /// The title, in one line
    #[arg(value_name = "TITLE")]
    title: String,
    /// The id [default: eight random hexadecimal digits]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The full description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The section
    #[arg(long, value_name = "SECTION")]
    section: Option<String>,
    /// Priority from 0 (first) to 100 (last)
    #[arg(long, value_name = "N", default_value_t = PRIORITY_DEFAULT, value_parser = values::priority)]
    priority: u8,
    /// Order among tasks of equal priority: lower goes first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = args::numbers::position)]
    position: i64,
    /// Start only when this task is completed; can be repeated
    #[arg(long, value_name = "TASK")]
    after: Vec<String>,
    /// A label for selecting tasks; can be repeated
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Files that the task changes, relative to the current folder; held while it is worked on; can
    /// be repeated
    #[arg(long = "file", value_name = "GLOB")]
    files: Vec<String>,
    /// JSON for the worker
    #[arg(long, value_name = "JSON", value_parser = values::json)]
    payload: Option<String>,
    /// The largest number of attempts
    #[arg(long, value_name = "N", default_value_t = MAX_ATTEMPTS_DEFAULT, value_parser = args::numbers::attempts)]
    max_attempts: u32,
    /// The time limit for a worker
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    timeout: Option<Duration>,
    /// Start only after this time: 2026-01-29T20:30:00Z, or +10m from now
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    not_before: Option<TimeArg>,
    /// Idempotency key: add no second task with this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Print only the id
    #[arg(long)]
    print_id: bool,
}

pub(super) async fn run(context: &Context, args: AddArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let mut depends_on = Vec::new();
    for task in &args.after {
        depends_on.push(find(&client, task).await?.id);
    }
    let files = args.files.iter().map(|glob| context.task_glob(glob));
    let files: Vec<String> = files.collect::<Result<_, _>>()?;
    let (brief, chosen_id) = (args.print_id || context.output.quiet, args.id.clone());
    let added = add(&client, chosen_id, |id| new_task(&args, id, &depends_on, &files)).await?;
    let (id, created) = match added {
        Added::New(id) => (id, true),
        Added::Existing(id) => (id, false),
    };
    let task = client.tasks().get(&id).await?.ok_or_else(|| {
        Failure::new(
            Exit::NotFound,
            "TASK_NOT_FOUND",
            format!("task {id} was deleted in the meantime"),
        )
    })?;
    let data = json!({ "task": view::Task::new(&task, None), "created": created });
    context.output.done(data, || match (brief, created) {
        (true, _) => id.to_string(),
        (false, true) => format!("Added {}", show::name(&task)),
        (false, false) => format!("Already exists: {}", show::name(&task)),
    });
    Ok(0)
}

/// Adds the task under the chosen id, or under a new unused one.
async fn add(
    client: &Client,
    chosen: Option<String>,
    task: impl Fn(TaskId) -> NewTask,
) -> Result<Added, Failure> {
    let draws = if chosen.is_some() { 1 } else { DRAWS };
    let mut last = None;
    for _ in 0..draws {
        let text = chosen.clone().unwrap_or_else(new_id);
        let id: TaskId = text.parse().map_err(Error::Resource)?;
        match client.tasks().add(vec![task(id)]).await {
            Ok(mut added) => return Ok(added.remove(0)),
            Err(error @ Error::Add(AddError::Exists { .. })) => last = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(last.map_or_else(|| Failure::usage("no id was given"), Failure::from))
}

fn new_id() -> String {
    format!("{:08x}", GrantId::random().to_bits() >> 96)
}

fn new_task(args: &AddArgs, id: TaskId, depends_on: &[TaskId], files: &[String]) -> NewTask {
    NewTask {
        description: args.description.clone(),
        section: args.section.clone(),
        priority: args.priority,
        position: args.position,
        depends_on: depends_on.to_vec(),
        labels: args.labels.clone(),
        files: files.to_vec(),
        payload: args.payload.clone(),
        max_attempts: args.max_attempts,
        timeout: args.timeout,
        not_before: args.not_before.map(TimeArg::wall),
        key: args.key.clone(),
        ..NewTask::new(id, args.title.clone())
    }
}
