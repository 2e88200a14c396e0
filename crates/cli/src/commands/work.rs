//! `tenure work`: a worker that runs a command for one task after another.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::worker::stop_signals::{self, StopPolicy};
use crate::worker::{OutputTarget, Preparation, TaskCommand, WorkerArgs, event_lines};
use clap::Args;
use std::sync::Arc;
use std::time::Duration;
use tenure::{Client, Swarm, SwarmReport, WorkEvent};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a worker waits before it says so.
const MOMENT: Duration = Duration::from_secs(3);

/// Run a command for one task after another
///
/// Claims the next ready task with its section and its files, runs the command for it, and records
/// the result. The claim is renewed meanwhile. If it is lost, the command and all processes that it
/// started get SIGTERM, after --grace SIGKILL, and nothing is recorded, because another worker has
/// the task. A task that exceeds its time limit is stopped in the same way and fails. SIGTERM or
/// Ctrl-C stops claiming; the running command has --grace to end, then it is stopped and its task
/// returned.
///
/// The command gets the task as one JSON object on its standard input, and TENURE_TASK_ID, _TITLE,
/// _SECTION, _ATTEMPT, _PAYLOAD (unless it is long) and _FILES in its environment, in addition to
/// what `tenure run` sets. If an earlier worker of the task died or lost its claim, TENURE_RESCUE_REF
/// is the commit with what it left (see `tenure tasks rescue`). Its exit code decides: 0 completes the task, and the last line that it
/// printed is the result if it is JSON; 75 snoozes the task; 76 sends it to review; any other code
/// fails it, and it is retried after a pause, as often as the task allows.
///
/// With --worktrees the command runs in a new git worktree on a new branch, named by TENURE_WORKTREE
/// and TENURE_BRANCH and recorded with the task. It is removed once the task is done, its commits are
/// merged and no file differs from them.
#[derive(Debug, Args)]
#[command(
    override_usage = "tenure work [OPTIONS] -- <COMMAND>...\n       tenure work [OPTIONS] -c <LINE>"
)]
#[command(after_help = "\
Examples:
  tenure work -- ./agent.sh                       until stopped
  tenure work --until-empty --section Backend -- ./agent.sh
  tenure work --once -- sh -c 'jq -r .title'      one task; exits with its command's code")]
pub(crate) struct WorkArgs {
    /// Run one task and exit with its command's code; 4 if no task is ready, 8 if it was lost
    #[arg(long, conflicts_with_all = ["until_empty", "max"])]
    once: bool,
    /// Exit when no task is left to do, for other workers either
    #[arg(long)]
    until_empty: bool,
    /// Exit after N tasks
    #[arg(long, value_name = "N", value_parser = args::numbers::tasks)]
    max: Option<u64>,
    /// Exit after this long without a task
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    idle_exit: Option<Duration>,
    #[command(flatten)]
    worker: WorkerArgs,
}

pub(crate) async fn run(context: &Context, args: WorkArgs) -> Result<i32, Failure> {
    let client = context.worker_client().await?;
    args.worker.import(context, &client).await?;
    if args.until_empty {
        args.worker.refuse_unknown_section(&client).await?;
    }
    let swarm = swarm(context, &client, &args);
    let target = match &args.worker.logs {
        Some(folder) => OutputTarget::Files(folder.clone()),
        None => OutputTarget::PassOn(context.output.clone()),
    };
    let preparation = Preparation::new(context, &client, &args.worker)?;
    let command = TaskCommand::new(context, &args.worker, &swarm, target, preparation)?;
    let command = Arc::new(command);
    let mut signals = stop_signals::listen()?;
    let (stop, policy) = (swarm.stopper(), StopPolicy::Grace(args.worker.grace(context)));
    let (runs, output) = (command.clone(), context.output.clone());
    let (is_idle, idle) = watch::channel(false);
    let stopped = swarm.stopper();
    let work = swarm.run(
        move |work| TaskCommand::run(runs.clone(), work),
        move |event| {
            is_idle.send_replace(matches!(event, WorkEvent::Idle { .. }));
            if output.json {
                output.line(&event_lines::json(&event), String::new);
            } else if let Some(words) = event_lines::words(&event) {
                output.note(&words);
            }
        },
    );
    let report = tokio::select! {
        report = work => report?,
        () = stop_signals::obey(&mut signals, &stop, policy, |text| context.output.note(text)) => {
            unreachable!("obeying signals has no end")
        }
        () = tell_waits(idle, context) => unreachable!("telling waits has no end"),
    };
    command.tidy().await;
    if let Some(failure) = command.broken() {
        return Err(failure);
    }
    if args.until_empty && report.taken() == 0 && !stopped.is_stopped() {
        context.output.note(&args.worker.nothing_done());
    }
    if args.once { once(&report, command.last_code()) } else { Ok(0) }
}

/// Says once in each wait that the worker waits, unless that is a moment between two tasks. Never resolves.
async fn tell_waits(mut idle: watch::Receiver<bool>, context: &Context) {
    loop {
        // The sender lives as long as the worker; after it there is nothing to tell.
        if idle.wait_for(|idle| *idle).await.is_err() {
            return std::future::pending().await;
        }
        if timeout(MOMENT, idle.wait_for(|idle| !idle)).await.is_err() {
            context
                .output
                .note("Waiting for a task; `tenure why TASK` tells what a task waits for");
            let _ = idle.wait_for(|idle| !idle).await;
        }
    }
}

fn swarm(context: &Context, client: &Client, args: &WorkArgs) -> Swarm {
    let mut swarm = args.worker.swarm(context, client, context.enclosing_grants());
    let idle_exit = args.idle_exit.or(args.once.then_some(Duration::ZERO));
    if let Some(idle_exit) = idle_exit {
        swarm = swarm.idle_exit(idle_exit);
    }
    if let Some(limit) = args.max.or(args.once.then_some(1)) {
        swarm = swarm.limit(limit);
    }
    if args.until_empty { swarm } else { swarm.forever() }
}

fn once(report: &SwarmReport, code: Option<i32>) -> Result<i32, Failure> {
    match (report.taken(), report.lost) {
        (0, _) => Err(Failure::new(Exit::NotFound, "NOTHING_READY", "No task is ready")
            .hint("Wait for one with --idle-exit DURATION.")),
        (_, 0) => Ok(code.unwrap_or(Exit::Error.code())),
        _ => Err(crate::run_under_lock::lost("The claim was lost; the command was stopped")),
    }
}
