//! Tests that hold for each store at servers: a test binary of an engine names it and calls them.

pub mod clocks;
pub mod each_once;
pub mod machines;
pub mod same;
pub mod two_servers;

use crate::support::{Ended, Running, StoreLocation, TENURE};
use std::process::Command;

/// An engine whose servers keep stores.
pub struct Engine {
    /// Its name for people, as `tenure status` shows it.
    pub name: &'static str,
    /// The URL of a new store.
    pub fresh_url: fn() -> String,
}

/// The binary under test, about to use this store.
pub fn tenure(place: &StoreLocation, url: &str, words: &[&str]) -> Command {
    let mut command = place.command(TENURE);
    command.args(["--store", url]).args(words);
    command
}

/// Runs a command over this store to its end.
pub fn run(place: &StoreLocation, url: &str, words: &[&str]) -> Ended {
    Running::start(tenure(place, url, words)).end()
}
