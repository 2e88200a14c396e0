//! `tenure-bench` measures an etcd store and leaves nothing behind in it.

#![cfg(target_os = "linux")]

mod support;

use support::{bench, data, stand_in};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::etcdctl;

/// All figures come, none of them empty, and nothing is left behind.
#[test]
fn it_measures_beside_bare_calls_and_removes_its_keys() {
    let cluster = Etcd::start(1);
    let folder = tempfile::tempdir().unwrap();
    let (ground, program) = (folder.path().to_str().unwrap(), stand_in(folder.path()));
    let measure = |url: &str| {
        bench(&["--json", "--quick", "--dir", ground, "--program", &program, "--store", url])
    };
    let data = data(&measure(cluster.url("").trim_end_matches('/')));
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
    let named = measure(&cluster.url("used"));
    assert_eq!(named.status.code(), Some(2), "{named:?}");
}
