//! `tenure swarm`: runs many workers in one process.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{GOOD, NAME, WARN, styled};
use crate::swarm::{TaskTotals, View};
use crate::worker::stop_signals::{self, StopPolicy};
use crate::worker::{OutputTarget, Preparation, TaskCommand, WorkerArgs, event_lines};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::{HoldSnapshot, Kind, Proof, Resource, SectionSnapshot, Task};
use tenure::store::TaskFilter;
use tenure::{Client, SwarmReport};
use tenure_frontend::view::spelling;

/// Run a command for all tasks, several at a time
///
/// Like N times `tenure work --until-empty` in one process, over one connection to the store. It
/// ends when no task is left, and exits 0 only if all tasks are then completed. The output of the
/// commands goes to files, one for each attempt, in .tenure/logs or --logs. The first Ctrl-C stops
/// claiming and lets running commands finish; the second stops them and returns their tasks.
#[derive(Debug, Args)]
#[command(
    override_usage = "tenure swarm [OPTIONS] -- <COMMAND>...\n       tenure swarm [OPTIONS] -c <LINE>"
)]
#[command(after_help = "\
Examples:
  tenure swarm -n 8 -- ./agent.sh
  tenure swarm --tasks plan.json --section Backend -- ./agent.sh
  tenure swarm -n 2 --forever -- ./agent.sh       keep waiting for new tasks
  tenure swarm --worktrees ../trees -- ./agent.sh a worktree and a branch for each task")]
pub(crate) struct SwarmArgs {
    /// Number of workers
    #[arg(short = 'n', long = "workers", value_name = "N", default_value_t = 4, value_parser = args::numbers::workers)]
    workers: u16,
    /// Keep waiting for new tasks when none is left
    #[arg(long)]
    forever: bool,
    /// Accepted for compatibility with `tenure work`; no effect, because a swarm ends when no task is left
    #[arg(long = "until-empty", hide = true, conflicts_with = "forever")]
    _until_empty: bool,
    #[command(flatten)]
    worker: WorkerArgs,
}

impl SwarmArgs {
    /// The number of workers.
    pub(crate) fn workers(&self) -> u16 {
        self.workers
    }
}

/// How often the totals are read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: &Context, args: SwarmArgs) -> Result<i32, Failure> {
    let client = context.worker_client().await?;
    args.worker.import(context, &client).await?;
    if !args.forever {
        args.worker.refuse_unknown_section(&client).await?;
    }
    let workers = usize::from(args.workers);
    // What a command around it holds would let several workers into one section side by side.
    let around = if workers == 1 { context.enclosing_grants() } else { vec![] };
    if workers > 1 {
        refuse_own_holds(context, &client, &args).await?;
    }
    let swarm = args.worker.swarm(context, &client, around).workers(workers);
    let swarm = if args.forever { swarm.forever() } else { swarm };
    let logs = logs(context, &args.worker)?;
    let target = OutputTarget::Files(logs.clone());
    let preparation = Preparation::new(context, &client, &args.worker)?;
    let command = TaskCommand::new(context, &args.worker, &swarm, target, preparation)?;
    let command = Arc::new(command);

    let begun = Instant::now();
    let mut signals = stop_signals::listen()?;
    let view = Arc::new(View::new(&context.output, workers));
    let (stop, policy) =
        (swarm.stopper(), StopPolicy::UntilSecondCtrlC(args.worker.grace(context)));
    let (runs, shown) = (command.clone(), view.clone());
    let work = swarm
        .run(move |work| TaskCommand::run(runs.clone(), work), move |event| shown.tell(&event));
    let report = tokio::select! {
        report = work => report,
        () = stop_signals::obey(&mut signals, &stop, policy, |text| view.note(text)) => {
            unreachable!("obeying signals has no end")
        }
        () = watch(&client, &args.worker, &view) => unreachable!("watching has no end"),
    };
    view.end();
    let report = report?;
    command.tidy().await;
    if let Some(failure) = command.broken() {
        return Err(failure);
    }
    let totals = totals(&client, &args.worker).await?;
    let took = begun.elapsed();
    let failure = (!totals.all_done()).then(|| {
        let message = format!("Not all tasks are done: {}", totals.open_text());
        Failure::new(Exit::Error, "NOT_ALL_DONE", message)
            .hint(format!("See the logs in {}.", logs.display()))
    });
    let data = report_json(&report, &totals, took, &logs);
    context.output.done_unless(failure.as_ref(), data, || summary(&report, &totals, took, &logs));
    Ok(failure.map_or(Exit::Ok.code(), |failure| failure.exit))
}

/// Refuses to start where a command around the swarm holds what a task needs: its workers would wait for that
/// command, which waits for the swarm.
async fn refuse_own_holds(
    context: &Context,
    client: &Client,
    args: &SwarmArgs,
) -> Result<(), Failure> {
    let around = context.enclosing_grants();
    if around.is_empty() {
        return Ok(());
    }
    let is_around = |seen: &HoldSnapshot| {
        around.iter().any(|grant| Proof::Grant(*grant).recognises(seen)) && !seen.lapsed()
    };
    let seen = client.look_everywhere().await?;
    let held: Vec<&HoldSnapshot> = seen.holds.iter().filter(|seen| is_around(seen)).collect();
    if held.is_empty() {
        return Ok(());
    }
    let worker = &args.worker;
    let filter = TaskFilter {
        section: worker.section.clone(),
        without_history: true,
        ..TaskFilter::default()
    };
    let tasks = client.tasks().list(&filter).await?;
    let sections = client.tasks().sections().await?;
    let is_meant = |task: &&Task| {
        !task.status.is_final() && worker.labels.iter().all(|label| task.labels.contains(label))
    };
    for task in tasks.iter().filter(is_meant) {
        let files = task.files.iter().filter_map(|glob| Resource::new(Kind::Path, glob).ok());
        let section = task.section_resource().filter(|section| {
            let is_it = |seen: &&SectionSnapshot| seen.section.name == section.name();
            let described = sections.iter().find(is_it);
            described.is_none_or(|seen| seen.section.max_runners.is_some())
        });
        let needed: Vec<Resource> = files.chain(section).chain([task.id.resource()]).collect();
        let in_the_way = held
            .iter()
            .find(|seen| needed.iter().any(|one| one.overlaps(&seen.hold.want.resource)));
        if let Some(seen) = in_the_way {
            let name = spelling::name(&seen.hold.want.resource);
            let message = format!(
                "task {:?} needs {name}, which the command around this swarm holds: the swarm would \
                 wait for itself",
                task.title
            );
            let hint =
                "Run the swarm outside of that command, or with -n 1, which works under its hold.";
            return Err(Failure::new(Exit::Locked, "DEADLOCK", message).hint(hint));
        }
    }
    Ok(())
}

/// The folder for logs: by default beside the embedded store.
fn logs(context: &Context, args: &WorkerArgs) -> Result<PathBuf, Failure> {
    if let Some(folder) = &args.logs {
        return Ok(folder.clone());
    }
    let url = context.store_url()?;
    Ok(match url.own_folder() {
        Some(folder) => folder.join("logs"),
        None => context.place()?.folder.join("logs"),
    })
}

async fn totals(client: &Client, args: &WorkerArgs) -> Result<TaskTotals, tenure::Error> {
    TaskTotals::look(client, args.section.as_deref(), &args.labels).await
}

async fn watch(client: &Client, args: &WorkerArgs, view: &View) {
    loop {
        // The workers report errors of the store.
        if let Ok(totals) = totals(client, args).await {
            view.progress(&totals);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn summary(report: &SwarmReport, totals: &TaskTotals, took: Duration, logs: &Path) -> String {
    let mut text = format!(
        "{} in {}: {} completed, {} failed, {} retried, {} lost",
        styled(NAME, taken_words(report.taken())),
        event_lines::span(took),
        report.completed,
        report.failed,
        report.retried,
        report.lost
    );
    for (count, word) in [(report.review, "to review"), (report.returned, "snoozed or returned")] {
        if count > 0 {
            text += &format!(", {count} {word}");
        }
    }
    if let Some((title, took)) = &report.slowest {
        text += &format!("\nSlowest: {title:?} in {}", event_lines::span(*took));
    }
    text + &match totals.all_done() {
        true if totals.total() == 0 => "\nNo task matched".to_owned(),
        true => format!("\n{}", styled(GOOD, format!("All {} tasks are done", totals.total()))),
        false => format!(
            "\n{}: {}; see the logs in {}",
            styled(WARN, "Not all tasks are done"),
            totals.open_text(),
            logs.display()
        ),
    }
}

fn report_json(report: &SwarmReport, totals: &TaskTotals, took: Duration, logs: &Path) -> Value {
    let seconds = |time: Duration| time.as_millis() as f64 / 1000.0;
    let slowest = report.slowest.as_ref();
    json!({
        "taken": report.taken(),
        "completed": report.completed,
        "failed": report.failed,
        "retried": report.retried,
        "review": report.review,
        "returned": report.returned,
        "lost": report.lost,
        "slowest": slowest.map(|(title, took)| json!({ "title": title, "seconds": seconds(*took) })),
        "seconds": seconds(took),
        "all_done": totals.all_done(),
        "tasks": totals.json(),
        "logs": logs.display().to_string(),
    })
}

fn taken_words(taken: u64) -> String {
    match taken {
        1 => "1 task claimed".to_owned(),
        many => format!("{many} tasks claimed"),
    }
}
