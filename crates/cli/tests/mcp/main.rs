//! Agents: real clients of the Model Context Protocol against real servers.
//!
//! The official SDKs for Python and TypeScript drive `tenure mcp` over its standard streams, and
//! `/mcp` over HTTP. `scripts/test` installs them below `target/needs`; without them these tests
//! fail. The others speak the protocol by hand, to be many at once or to be killed.

#![allow(clippy::print_stdout, reason = "what other tests share tells seeds")]
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests stand outside the layers")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use all of it")]
mod support;

mod agent;
mod endings;
mod many;
mod restart;
mod sdk;
#[path = "../remote/server.rs"]
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod server;
