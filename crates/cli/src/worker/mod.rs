//! What `work` and `swarm` share: a command that does one task after another.
//!
//! In reading order: [`WorkerArgs`] says what to take and what to run, [`brief`] what the command
//! is told of its task, [`TaskCommand`] runs it, [`printed`] follows what it prints, [`verdict`]
//! makes of its end what is said of the task, [`stopping`] obeys signals.

mod args;
pub(crate) mod event_lines;
mod last_line;
mod logs;
mod printed;
pub(crate) mod stopping;
mod task_command;
mod task_env;
mod verdict;

pub(crate) use args::WorkerArgs;
pub(crate) use logs::Outlet;
pub(crate) use task_command::TaskCommand;
