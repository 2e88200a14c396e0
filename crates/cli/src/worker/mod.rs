//! The worker shared by `work` and `swarm`: runs a command for one task after another.
//!
//! In reading order: [`WorkerArgs`] are the options, [`Preparation`] takes over what an interrupted
//! worker left and makes a worktree, [`task_env`] is what the command is told about its task,
//! [`TaskCommand`] runs it, [`command_output`] follows its output, [`task_result`] turns its exit
//! code into the result of the task, [`stop_signals`] handles signals.

mod args;
mod command_output;
pub(crate) mod event_lines;
mod last_line;
mod output_target;
mod preparation;
pub(crate) mod stop_signals;
mod task_command;
mod task_env;
mod task_result;

pub(crate) use args::WorkerArgs;
pub(crate) use output_target::OutputTarget;
pub(crate) use preparation::Preparation;
pub(crate) use task_command::TaskCommand;
