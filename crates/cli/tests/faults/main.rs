//! Real processes under faults: killed at any moment, stopped past their lease, with a clock that
//! jumps, a disk that is full, a store that is none, children that will not go.
//!
//! Each file is a topic, each test is named after what it shows. Nothing here depends on how long
//! something takes, except that what must happen happens before [`support::PATIENCE`] ends.
//! Measured times are printed, not judged. What is left to chance tells its seed; `FAULTS_SEED`
//! repeats it.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![expect(clippy::print_stdout, reason = "seeds and measured times are for people")]

#[path = "../support/mod.rs"]
mod support;

mod appended_file;
mod crowds;
mod faulty_disk;
mod file_disk;
mod file_steps;
mod foreign_writer;
mod killed_run;
mod killed_workers;
mod many_waiters;
mod moved_store;
mod namespaces;
mod ownership;
mod random_kills;
mod roles;
mod several_resources;
mod shared_group;
mod stopped_holder;
mod stopped_writer;
mod task_disk;
mod unattended;
mod unruly_command;
mod unusable_store;
mod updated_file;
mod wall_clock;
mod worktrees;
