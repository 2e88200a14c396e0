//! `tenure migrate`, with real stores: all of a store reaches the other, through kills, and nothing is
//! moved that is in use.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![allow(clippy::print_stdout, reason = "what other tests share prints seeds")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
mod support;

mod backup;
mod contents;
mod interrupted;
mod refused;
mod source;

use support::{Ended, Running, StoreLocation, TENURE};

/// Runs a command with this store.
pub fn with(place: &StoreLocation, url: &str, words: &[&str]) -> Ended {
    let mut command = place.command(TENURE);
    command.args(["--store", url]).args(words);
    Running::start(command).end()
}

/// The data of a command with this store, which must succeed.
pub fn data(place: &StoreLocation, url: &str, words: &[&str]) -> serde_json::Value {
    let ended = with(place, url, &[&["--json"], words].concat());
    assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
    ended.json()["data"].clone()
}

/// Starts a migration.
pub fn start(place: &StoreLocation, from: &str, to: &str, more: &[&str]) -> Running {
    let mut command = place.command(TENURE);
    command.args(["--json", "migrate", "--from", from, "--to", to]).args(more);
    Running::start(command)
}

/// A migration that must succeed; what it printed.
pub fn migrated(place: &StoreLocation, from: &str, to: &str, more: &[&str]) -> serde_json::Value {
    let ended = start(place, from, to, more).end();
    assert_eq!(ended.code, 0, "{from} to {to}: {ended:?}");
    ended.json()["data"].clone()
}

/// The URL of a SQLite store in this place.
pub fn sqlite(place: &StoreLocation, name: &str) -> String {
    format!("sqlite:{}", place.path(name).display())
}
