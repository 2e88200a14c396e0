//! `tenure hook`: what it answers to recorded events of each host, real processes that edit through
//! their hooks beside each other, and faults that must not stop an agent.
//!
//! The samples below `samples/HOST` name their source. In them `$ROOT` is the repository, `$DENIAL`
//! and `$WARNING` are what the agent is told about `src/main.rs`, `$PRIME` is the text of `tenure
//! prime`.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![allow(clippy::print_stdout, reason = "what other tests share tells seeds")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use all of it")]
mod support;

mod faults;
mod hosts;
#[path = "../mcp/agent.rs"]
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod mcp_agent;
mod paths;
mod prime;
mod samples;
mod scene;
mod turns;
mod two_agents;
