//! `tenure setup`: what it writes, that it loses nothing, and that removing it leaves every file as
//! it was. Each test runs the real binary in a project of its own.

#[path = "../snapshot_support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests")]
mod snapshot_support;

mod doctor;
mod found;
mod hosts;
mod obstacles;
mod output;
mod project;
mod round_trip;
mod user_edits;
