//! Commands over a server: they do what they do over a store of their own, while servers are killed
//! and restarted, connections are cut and answers are lost.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![expect(clippy::print_stdout, reason = "what was measured is for people")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
mod support;

mod cut;
mod foreign;
mod holding;
mod killed;
mod late;
mod power;
mod same;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod server;
mod waiting;
