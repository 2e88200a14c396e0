//! Runs the command of a worker for a task.

use super::command_output::CommandOutput;
use super::output_target::OutputTarget;
use super::preparation::{Preparation, Prepared};
use super::{task_env, task_result};
use crate::child::{self, ChildSpec, SpawnError, Stdin, Stdout};
use crate::context::Context;
use crate::failure::Failure;
use crate::telemetry;
use parking_lot::{Mutex, MutexGuard};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::GrantId;
use tenure::core::rules::tasks::Finish;
use tenure::{Stop, Stopper, Swarm, Work};
use tenure_server::log::TRACE;
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// A command that runs for each task, one after another or several at once.
pub(crate) struct TaskCommand {
    command: Vec<OsString>,
    store_url: String,
    keeps: Vec<GrantId>,
    grace: Duration,
    snooze: Duration,
    target: OutputTarget,
    preparation: Preparation,
    stop: Stopper,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Why the command cannot be run at all.
    broken: Option<Failure>,
    last_code: Option<i32>,
}

impl TaskCommand {
    pub(crate) fn new(
        context: &Context,
        args: &super::WorkerArgs,
        swarm: &Swarm,
        target: OutputTarget,
        preparation: Preparation,
    ) -> Result<TaskCommand, Failure> {
        Ok(TaskCommand {
            command: args.command.words(),
            store_url: context.store_url()?.to_string(),
            keeps: context.kept_grants(),
            grace: args.grace(context),
            snooze: args.snooze,
            target,
            preparation,
            stop: swarm.stopper(),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The exit code of the command that ended last.
    pub(crate) fn last_code(&self) -> Option<i32> {
        self.state().last_code
    }

    /// Why the command cannot be run for any task; then the swarm was stopped.
    pub(crate) fn broken(&self) -> Option<Failure> {
        self.state().broken.take()
    }

    /// Removes worktrees that are not needed any more.
    pub(crate) async fn tidy(&self) {
        self.preparation.tidy().await;
    }

    /// Runs the command for a task. If the work is called off, the command and all its processes
    /// are stopped.
    pub(crate) async fn run(self: Arc<TaskCommand>, work: Arc<Work>) -> Finish {
        let task = work.task();
        let span = tracing::info_span!(
            target: TRACE,
            "task",
            "otel.name" = "tenure work",
            "tenure.task" = %task.id,
            "tenure.section" = task.section.as_deref(),
            "tenure.attempt" = task.attempts,
            "tenure.outcome" = Empty,
        );
        telemetry::adopt_from_environment(&span);
        let finish = self.run_traced(work).instrument(span.clone()).await;
        span.record("tenure.outcome", word(&finish));
        finish
    }

    async fn run_traced(self: Arc<TaskCommand>, work: Arc<Work>) -> Finish {
        let sink = match self.target.open(work.task()) {
            Ok(sink) => sink,
            Err(error) => {
                let reason = format!("cannot write the log: {error}");
                return Finish::Fail { reason, retry: true };
            }
        };
        let prepared = tokio::select! {
            prepared = self.preparation.prepare(&work) => prepared,
            () = work.called_off() => return Finish::Release,
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => return self.give_up(failure),
        };
        let spec = self.spec(&work, prepared);
        let mut child = match child::spawn(spec, work.trust(), self.grace) {
            Ok(child) => child,
            Err(error) => return self.not_started(error),
        };
        let mut printed = CommandOutput::of(&mut child, sink, &work);
        // If the store fails, the keeper retries until the lease ends. A lost claim calls the work
        // off.
        let _ = work.bind_group(child.pid()).await;
        let ended = tokio::select! {
            ended = printed.follow(&mut child) => Some(ended),
            () = work.called_off() => None,
        };
        let Some(ended) = ended else {
            let ended = printed.stop(&mut child, self.grace).await;
            self.state().last_code = ended.map(|ended| ended.exit_code());
            return Finish::Release;
        };
        self.state().last_code = Some(ended.exit_code());
        task_result::of(ended, &printed, self.snooze)
    }

    fn spec(&self, work: &Work, prepared: Prepared) -> ChildSpec {
        let Prepared { task, tree } = prepared;
        let tree = tree.as_ref();
        // What the worker holds covers what the command asks for, the section too.
        let keeps: Vec<GrantId> = self.keeps.iter().copied().chain(work.section_grant()).collect();
        let mut environment = task_env::environment(work, &task, tree, &keeps, &self.store_url);
        environment.extend(telemetry::trace_variable(&Span::current()));
        ChildSpec {
            environment,
            stdin: Stdin::Bytes(task_env::standard_input(work, &task, tree)),
            directory: tree.map(|tree| tree.path.clone()),
            stdout: Stdout::Piped,
            stderr: Stdout::Piped,
            ..ChildSpec::new(self.command.clone())
        }
    }

    /// A command that cannot be run at all must not use up the attempts of every task.
    fn not_started(&self, error: SpawnError) -> Finish {
        match error {
            SpawnError::Other { .. } => Finish::Fail { reason: error.to_string(), retry: true },
            SpawnError::TooLate { .. } => Finish::Release,
            _ => self.give_up(error.into()),
        }
    }

    /// Ends the worker for a reason that would stop it at every task.
    fn give_up(&self, failure: Failure) -> Finish {
        self.state().broken = Some(failure);
        self.stop.stop(Stop::HandBack);
        Finish::Release
    }
}

/// How a task ended, for a trace.
fn word(finish: &Finish) -> &'static str {
    match finish {
        Finish::Complete { .. } => "complete",
        Finish::Fail { .. } => "fail",
        Finish::Review { .. } => "review",
        Finish::Snooze { .. } => "snooze",
        Finish::Release => "release",
    }
}
