//! The parts that all front ends of tenure share: the command line, the HTTP API and the MCP
//! server.
//!
//! - [`view`]: holds, waiters, tasks, sections and events as JSON.
//! - [`refusal`]: why a request was refused, in one sentence, with an error code and a hint.
//! - [`naming`]: names that were taken before they were refused for looking like a path.
//! - [`hint`]: the next step after an error of the library, in the words of the command line.
//! - [`exit`]: the exit codes.
//! - [`config`], [`duration`], [`exchange`], [`time`]: settings, durations, task files and times as
//!   text, from `tenure-text`.

pub mod exit;
pub mod hint;
pub mod naming;
pub mod refusal;
pub mod view;

pub use tenure_text::{config, duration, exchange, time};
