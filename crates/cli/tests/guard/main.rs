//! The commit guard with real repositories: what it refuses, what it lets through, and how it is
//! installed beside the hooks that are there.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![allow(clippy::print_stdout, reason = "what other tests share tells seeds")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
mod support;

mod commits;
mod identity;
mod install;
mod managers;
mod names;
mod pushes;
mod replays;
mod repository;
#[path = "../remote/server.rs"]
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod server;
mod stores;
mod worktrees;
