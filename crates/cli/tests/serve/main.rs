//! Real servers, asked by those who may, those who may not, and those who mean harm.
//!
//! Each file is a topic. Nothing here depends on how long something takes, except that what must
//! happen happens before [`support::PATIENCE`] ends.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![allow(clippy::print_stdout, reason = "what was measured or skipped is told")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests")]
mod support;

mod agents;
mod clients;
mod crowd;
mod fuzz;
mod gone_store;
mod http;
mod logging;
mod metrics;
mod oversize;
mod own_token;
mod rebinding;
mod roles;
mod routes;
mod server;
mod starting;
mod stopping;
mod systemd;
mod tls;
mod token_command;
mod traversal;
mod unix_socket;
mod webhooks;
