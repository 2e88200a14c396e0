//! Work is handed over, not lost: real workers in real repositories, killed in the middle of it.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![expect(clippy::print_stdout, reason = "seeds are for people")]

#[path = "../remote/server.rs"]
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod server;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
mod support;

mod claimed;
mod killed;
mod repository;
mod worktrees;
