//! What all front ends of tenure share: the command line, the HTTP API and the MCP server.
//!
//! - [`view`]: how holds, waiters, tasks, sections and events look as JSON.
//! - [`refusal`]: why something was not done, in one sentence, with a code for scripts and a hint.
//! - [`hint`]: what to do about an error of the library, in the words of the command line.
//! - [`exit`]: what each exit code means.
//! - [`config`], [`duration`], [`exchange`], [`time`]: settings, durations, task files and times as
//!   text, from `tenure-text`.

pub mod exit;
pub mod hint;
pub mod refusal;
pub mod view;

pub use tenure_text::{config, duration, exchange, time};
