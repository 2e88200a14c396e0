//! The parts that all front ends of tenure share: the command line, the HTTP API and the MCP
//! server.
//!
//! - [`view`]: holds, waiters, tasks, sections and events as JSON.
//! - [`refusal`]: why a request was refused, in one sentence, with an error code and a hint.
//! - [`naming`]: names that were taken before they were refused for looking like a path.
//! - [`git`]: the `git` program, for rescued work and for worktrees of workers.
//! - [`hint`]: the next step after an error of the library, in the words of the command line.
//! - [`rescue`]: hands the unfinished work of a worker that is gone over to the next one.
//! - [`exit`]: the exit codes.
//! - [`config`], [`duration`], [`exchange`], [`time`]: settings, durations, task files and times as
//!   text, from `tenure-text`.

pub mod exit;
pub mod git;
pub mod hint;
pub mod naming;
pub mod refusal;
pub mod rescue;
pub mod view;

pub use tenure_text::{config, duration, exchange, time};
