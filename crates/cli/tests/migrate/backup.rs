//! `tenure backup` of a store in use, and `tenure restore`: all that was reported before the backup is
//! in it, old tokens are never accepted again, and nothing that is there is overwritten.

use crate::source::fill;
use crate::support::{Engine, Signal, StoreLocation, until};
use crate::{data, sqlite, with};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use tenure_testkit::{etcd, postgres};

const TASKS: usize = 400;

fn status_of_tasks(place: &StoreLocation, url: &str) -> BTreeMap<String, String> {
    let listed = data(place, url, &["tasks", "list", "--limit", "10000"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tasks = listed["tasks"].as_array().unwrap().iter();
    tasks.map(|task| (text(&task["id"]), text(&task["status"]))).collect()
}

/// What both stores have, by their checksums.
fn sums(contents: &Value) -> [&Value; 3] {
    ["tasks", "sections", "events"].map(|part| &contents[part])
}

fn add_tasks(place: &StoreLocation) {
    let lines: Vec<String> = (0..TASKS)
        .map(|n| format!(r#"{{"id":"t{n}","title":"Task {n}","section":"s{}"}}"#, n % 3))
        .collect();
    let file = place.path("tasks.json");
    std::fs::write(&file, format!(r#"{{"tasks":[{}]}}"#, lines.join(","))).unwrap();
    place.json(&["tasks", "import", file.to_str().unwrap()]);
}

/// A backup that is made while workers complete tasks has all that they had completed before, and is
/// restored to the same.
fn backup_under_load(engine: Engine) {
    let place = StoreLocation::with(engine);
    add_tasks(&place);
    let workers = place.start(&["swarm", "-n", "2", "--", "true"]);
    let before = until("some tasks that are completed", || {
        let tasks = status_of_tasks(&place, &place.url());
        let done = tasks.values().filter(|status| *status == "completed").count();
        (done >= 10).then_some(tasks)
    });
    let file = place.path("backup.db");
    let made = place.json(&["backup", file.to_str().unwrap()]);
    let after = status_of_tasks(&place, &place.url());
    workers.signal(Signal::TERM);
    workers.end();
    assert_eq!(made["tasks"]["count"], TASKS, "{made}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let to = sqlite(&place, "restored.db");
    let restored = data(&place, &to, &["restore", file.to_str().unwrap()]);
    assert_eq!(restored["equal"], true);
    assert_eq!(restored["tasks"]["count"], TASKS);
    let there = status_of_tasks(&place, &to);
    assert_eq!(there.len(), TASKS);
    for (id, status) in &there {
        // Completed before the backup began: in it. Not completed after it ended: not in it.
        if before[id] == "completed" {
            assert_eq!(status, "completed", "{id} was lost");
        }
        if status == "completed" {
            assert_eq!(after[id], "completed", "{id} was never done");
        }
        assert!(["completed", "pending"].contains(&status.as_str()), "{id} is {status}");
    }
    assert_eq!(data(&place, &to, &["locks"])["locks"].as_array().unwrap().len(), 0);
    // The rest is done there.
    assert_eq!(with(&place, &to, &["swarm", "-n", "2", "--", "true"]).code, 0);
    assert!(status_of_tasks(&place, &to).values().all(|status| status == "completed"));
    // The backup is as it was, and can be restored again.
    let again = sqlite(&place, "again.db");
    let again = data(&place, &again, &["restore", file.to_str().unwrap()]);
    assert_eq!(again["sections"], restored["sections"]);
    assert_eq!(again["events"], restored["events"]);
}

#[test]
fn a_backup_of_a_busy_sqlite_store_has_all_that_was_reported() {
    backup_under_load(Engine::Sqlite);
}

#[test]
fn a_backup_of_a_busy_file_store_has_all_that_was_reported() {
    backup_under_load(Engine::Files);
}

#[test]
fn checksums_of_store_backup_and_restored_store_agree_on_every_engine() {
    let place = StoreLocation::new();
    let files = format!("file:{}", place.path("files").display());
    let engines = [sqlite(&place, "first.db"), files, postgres::fresh_url(), etcd::fresh_url()];
    for (n, from) in engines.iter().enumerate() {
        fill(&place, from);
        let file = place.path(&format!("backup-{n}.db"));
        let made = data(&place, from, &["backup", file.to_str().unwrap()]);
        // A source that is left alone is the same before and after.
        let plan =
            data(&place, from, &["migrate", "--from", from, "--to", "sqlite:x.db", "--dry-run"]);
        assert_eq!(sums(&made), sums(&plan), "{from}");
        let to = match n {
            0 => postgres::fresh_url(),
            1 => etcd::fresh_url(),
            2 => format!("file:{}", place.path("other").display()),
            _ => sqlite(&place, "last.db"),
        };
        let restored = data(&place, &to, &["restore", file.to_str().unwrap()]);
        assert_eq!(sums(&restored), sums(&made), "{from} to {to}");
    }
}

#[test]
fn tokens_and_holds_of_the_old_store_are_worth_nothing_in_the_restored_one() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["deploy", "--ttl", "1h"]);
    place.json(&["tasks", "add", "one"]);
    let claimed = place.json(&["tasks", "claim", "--ttl", "1h"]);
    let file = place.path("backup.db");
    place.json(&["backup", file.to_str().unwrap()]);
    // The old store goes on and gives out higher tokens.
    let mut last = 0;
    for _ in 0..5 {
        let (token, grant) = place.acquire(&["db"]);
        last = token;
        place.json(&["release", "db", "--grant", &grant]);
    }
    let to = sqlite(&place, "restored.db");
    let restored = data(&place, &to, &["restore", file.to_str().unwrap()]);
    let floor = restored["numbers_above"].as_u64().unwrap();
    assert!(floor > last + 1_000_000, "{floor} after {last}");
    let released = with(&place, &to, &["release", "deploy", "--grant", &grant]);
    assert_ne!(released.code, 0, "a hold of the old store was resurrected: {released:?}");
    let id = claimed["tasks"][0]["id"].as_str().unwrap_or_else(|| panic!("{claimed}"));
    let grant = claimed["tasks"][0]["grant"].as_str().unwrap_or_else(|| panic!("{claimed}"));
    let finished = with(&place, &to, &["tasks", "complete", id, "--grant", grant]);
    assert_ne!(finished.code, 0, "a claim of the old store was resurrected: {finished:?}");
    assert_eq!(status_of_tasks(&place, &to)[id], "pending");
    for resource in ["deploy", "db", "new"] {
        let token = data(&place, &to, &["acquire", resource])["token"].as_u64().unwrap();
        assert!(token > floor, "{resource}: {token}");
    }
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let place = StoreLocation::new();
    place.json(&["tasks", "add", "one"]);
    let file = place.path("backup.db");
    let path = file.to_str().unwrap();
    place.json(&["backup", path]);
    let bytes = std::fs::read(&file).unwrap();
    let second = place.run(&["--json", "backup", path]);
    assert_eq!(second.json()["error"]["code"], "BACKUP_EXISTS", "{second:?}");
    // A store that is used, and the backup itself.
    let onto = place.run(&["--json", "restore", path]);
    assert_eq!(onto.json()["error"]["code"], "TARGET_NOT_EMPTY", "{onto:?}");
    let itself = with(&place, &sqlite(&place, "backup.db"), &["--json", "restore", path]);
    assert_ne!(itself.code, 0, "{itself:?}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    // What is no backup.
    let junk = place.path("junk");
    std::fs::write(
        &junk,
        "not a database, but long enough to have a header of one hundred bytes or so, to be read",
    )
    .unwrap();
    let to = sqlite(&place, "other.db");
    for (name, code) in [("junk", "BACKUP_COPY"), ("missing", "NO_BACKUP")] {
        let name = place.path(name);
        let ended = with(&place, &to, &["--json", "restore", name.to_str().unwrap()]);
        assert_eq!(ended.json()["error"]["code"], code, "{ended:?}");
    }
    // Nothing unfinished is left.
    let left = std::fs::read_dir(place.path(".")).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.starts_with(".tenure-backup")).collect();
    assert!(left.is_empty(), "{left:?}");
}
