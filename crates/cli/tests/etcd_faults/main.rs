//! Commands over etcd under faults: servers that are killed, restarted, cut off or compacted while
//! processes work, clocks that are wrong, a network that is cut between a holder and the store.
//!
//! Each fault goes on for some seconds; `TENURE_FAULT_SECONDS` says how many. Times to recovery are
//! printed, not judged.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![expect(clippy::print_stdout, reason = "measured times are for people")]
#![expect(dead_code, unused_imports, reason = "other tests use the rest of the support")]

#[path = "../engine_support/mod.rs"]
mod engine_support;
#[path = "../support/mod.rs"]
mod support;

mod cut_off;
mod fenced_log;
mod load;
mod partition;
mod servers;

use engine_support::{Engine, clocks, each_once};
use tenure_testkit::etcd::fresh_url;

const ETCD: Engine = Engine { name: "etcd", fresh_url };

#[test]
fn eight_processes_do_each_task_once() {
    each_once::by_eight_processes(&ETCD, 800);
}

#[test]
fn clocks_that_are_an_hour_off_change_nothing() {
    clocks::an_hour_off(&ETCD);
}
