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
use support::{Running, StoreLocation};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::{etcdctl, fresh_url};

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

/// All figures come, none of them empty, and nothing is left behind.
#[test]
fn bench_measures_beside_bare_calls_and_removes_its_keys() {
    let cluster = Etcd::start(1);
    let url = cluster.url("");
    let place = StoreLocation::new();
    let words = ["--json", "bench", "--quick"];
    let ended = Running::start(engine_support::tenure(&place, url.trim_end_matches('/'), &words));
    let ended = ended.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let data = ended.json()["data"].clone();
    let figures = data["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 12, "{data}");
    for figure in figures {
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
    }
    for (figure, beside) in [(0, "lease grant, transaction, revoke"), (2, "etcdctl lock x true")] {
        assert!(figures[figure].to_string().contains(beside), "{}", figures[figure]);
    }
    let left = etcdctl(&cluster.endpoints()[0], &["get", "--prefix", "--keys-only", ""]).unwrap();
    assert_eq!(left.trim(), "", "keys are left");
    let named = engine_support::run(&place, &cluster.url("used"), &["bench", "--quick"]);
    assert_eq!(named.code, 2, "{named:?}");
}
