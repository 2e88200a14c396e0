//! What people and scripts read: whole outputs of every command, with streams and exit status.
//!
//! Each test runs the real binary in a place of its own and compares a transcript with the one in
//! `snapshots/`. To accept changes: `INSTA_UPDATE=always cargo test -p tenure-cli --test cli`, then
//! read the difference.

#[path = "../snapshot_support/mod.rs"]
mod snapshot_support;

mod acquire;
mod bad_input;
mod bad_settings;
mod bad_stores;
mod breaking;
mod completions;
mod config;
mod doctor;
mod events;
mod few_files;
mod friendly;
mod gc;
mod help;
mod init;
mod locks;
mod pages;
mod paths;
mod release;
mod run;
mod scenarios;
mod status;
mod stores;
mod top;
mod trust;
mod update;
mod waiting;
mod whoami;
mod why;
