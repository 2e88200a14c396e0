//! Tenure beside other programs on the same lock files: the dialects `worker`, `swarm`, `memory`.
//!
//! The other programs are those in `foreign/`, written for these tests from the formats alone:
//! `careful` as such a program should be, `hasty` with the races that theirs have. Each file here is
//! a topic, each test is named after what it shows. Nothing depends on how long something takes.

#![allow(clippy::print_stdout, reason = "what was counted is told")]
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use all of it")]
mod support;

mod commands;
mod contention;
mod folder;
mod hasty;
mod intervals;
mod memory;
mod memory_folder;
mod obstacles;
mod roles;
mod swarm;
mod takeover;
