//! `tenure status`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn free() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&["tenure status deploy", "tenure status deploy --json"]));
    assert_eq!(
        sandbox.data("tenure status deploy --json"),
        json!({ "locked": false, "free": true })
    );
}

#[test]
fn held_by_a_lease() {
    let sandbox = Sandbox::new();
    sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    assert_snapshot!(sandbox.see_all(&[
        "tenure status deploy",
        "tenure status deploy --json",
        "tenure status deploy --json --as alice | grep -o '\"we_hold_it\":[a-z]*'",
    ]));
}

#[test]
fn held_by_a_process() {
    let sandbox = Sandbox::new();
    let holder = sandbox.holder("deploy --as alice --operation build");
    assert_snapshot!(sandbox.see_all(&["tenure status deploy", "tenure status deploy --json"]));
    holder.end();
}

#[test]
fn the_fields_that_lock_tools_read() {
    let sandbox = Sandbox::new();
    sandbox.dead("memory", "--as main --operation write:tasks.json");
    let data = sandbox.data("tenure status memory --json");
    let pid = data["holder"]["pid"].as_u64().unwrap();
    assert_eq!(data["locked"], true);
    assert_eq!(data["is_stale"], true);
    assert_eq!(data["stale_reason"], format!("process {pid} is dead"));
    assert_eq!(data["we_hold_it"], false);
    assert_eq!(data["holder"]["session_id"], "main");
    assert_eq!(data["holder"]["operation"], "write:tasks.json");
    for field in ["acquired_at", "hostname"] {
        assert!(data["holder"][field].is_string(), "{field}: {data}");
    }
}

#[test]
fn stale_by_death() {
    let sandbox = Sandbox::new();
    sandbox.dead("deploy", "--as alice --operation build");
    assert_snapshot!(sandbox.see_all(&["tenure status deploy", "tenure status deploy --json"]));
}

#[test]
fn lapsed() {
    let sandbox = Sandbox::new();
    sandbox.lapsed("deploy", "--as alice");
    assert_snapshot!(sandbox.see_all(&["tenure status deploy", "tenure status deploy --json"]));
}

#[test]
fn of_everything() {
    let sandbox = Sandbox::new();
    let empty = sandbox.see("tenure status");
    sandbox.acquire("deploy --as alice --operation 'release 1.2'");
    sandbox.lapsed("task:7", "--as bob");
    let held = sandbox.see_all(&["tenure status", "tenure status --json"]);
    assert_snapshot!(format!("{empty}\n{held}"));
}

#[test]
fn where_there_is_no_store_nothing_is_held_and_none_is_made() {
    let sandbox = Sandbox::repository();
    assert_snapshot!(sandbox.see_all(&[
        "tenure status",
        "tenure -v status deploy",
        "tenure locks",
        "tenure why deploy",
        "tenure events",
        "tenure verify deploy --token 1",
        "tenure wait deploy",
        "tenure locks cleanup --dry-run",
    ]));
    assert!(!sandbox.path(".tenure").exists());
}
