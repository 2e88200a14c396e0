//! Commands over etcd: they do what they do over SQLite, and servers that share a cluster are one service.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![allow(clippy::print_stdout, reason = "what other tests share prints times")]
#![allow(dead_code, unused_imports, reason = "other tests use the rest of the support")]

#[path = "../engine_support/mod.rs"]
mod engine_support;
#[path = "../support/mod.rs"]
mod support;

use engine_support::{Engine, same, two_servers};
use tenure_testkit::etcd::fresh_url;

const ETCD: Engine = Engine { name: "etcd", fresh_url };

#[test]
fn programs_get_the_same_answers() {
    same::commands(&ETCD, true);
}

#[test]
fn people_read_the_same() {
    same::commands(&ETCD, false);
}

#[test]
fn agents_get_the_same_answers() {
    same::tools(&ETCD);
}

#[test]
fn two_servers_on_one_cluster_are_one_service() {
    two_servers::are_one_service(&ETCD);
}
