//! What cannot be moved is refused: in one sentence, with a hint, before anything is changed.

use crate::support::{Ended, StoreLocation};
use crate::{data, migrated, sqlite, start, with};
use tenure_testkit::postgres::shared_url;

fn refused(ended: &Ended, exit: i32, code: &str, words: &str) {
    assert_eq!(ended.code, exit, "{ended:?}");
    let error = &ended.json()["error"];
    assert_eq!(error["code"], code, "{ended:?}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(words), "{message:?} does not say {words:?}");
    assert!(!message.contains('\n'), "{message:?} is more than a sentence");
    assert!(!error["hint"].as_str().unwrap_or_default().is_empty(), "no hint: {ended:?}");
}

#[test]
fn wrong_input() {
    let place = StoreLocation::new();
    let (first, other) = (sqlite(&place, "first.db"), sqlite(&place, "other.db"));
    assert_eq!(with(&place, &first, &["init"]).code, 0);
    std::os::unix::fs::symlink(place.path("first.db"), place.path("link.db")).unwrap();
    let try_it = |from: &str, to: &str| start(&place, from, to, &[]).end();
    refused(&try_it(&first, &first), 2, "USAGE", "the same store");
    refused(&try_it(&first, "sqlite:./first.db"), 2, "USAGE", "the same store");
    refused(&try_it(&first, "sqlite:link.db"), 2, "USAGE", "the same store");
    refused(&try_it("memory:", &first), 3, "STORE_URL", "memory");
    refused(&try_it(&first, "memory:"), 3, "STORE_URL", "memory");
    refused(&try_it(&first, "http://127.0.0.1:1"), 3, "STORE_URL", "server");
    refused(&try_it("file:x?dialect=worker", &first), 3, "STORE_URL", "another program's");
    refused(&try_it("nonsense", &first), 3, "STORE_URL", "nonsense");
    refused(&try_it("sqlite:missing.db", &other), 3, "NO_STORE", "missing.db");
    std::fs::create_dir(place.path("folder")).unwrap();
    refused(&try_it("file:folder", &other), 3, "NO_STORE", "folder");
    assert_eq!(std::fs::read_dir(place.path("folder")).unwrap().count(), 0);
    assert!(!place.path("missing.db").exists() && !place.path("other.db").exists());
    let nobody = "postgres://postgres@127.0.0.1:1/postgres";
    refused(&try_it(&first, nobody), 3, "STORE_UNAVAILABLE", "not available");
    refused(&try_it(nobody, &other), 3, "STORE_UNAVAILABLE", "not available");
    let server = shared_url();
    let no_database = format!("{}/no_such_database", server.rsplit_once('/').unwrap().0);
    let ended = try_it(&first, &no_database);
    assert!(ended.code != 0 && ended.text().contains("does not exist"), "{ended:?}");
}

#[test]
fn a_target_in_use() {
    let place = StoreLocation::new();
    let first = sqlite(&place, "first.db");
    assert_eq!(with(&place, &first, &["tasks", "add", "One"]).code, 0);
    let uses: [(&str, &[&str], &str); 3] = [
        ("tasks.db", &["tasks", "add", "Two"], "1 tasks"),
        ("holds.db", &["acquire", "a", "--as", "x"], "1 holds"),
        ("sections.db", &["sections", "add", "s", "--max-runners", "2"], "1 sections"),
    ];
    for (name, words, has) in uses {
        let target = sqlite(&place, name);
        assert_eq!(with(&place, &target, &["init"]).code, 0);
        assert_eq!(with(&place, &target, words).code, 0);
        refused(&start(&place, &first, &target, &[]).end(), 5, "TARGET_NOT_EMPTY", has);
    }
}

#[test]
fn a_source_in_use() {
    let place = StoreLocation::new();
    let first = sqlite(&place, "first.db");
    let to = |name: &str| sqlite(&place, name);
    assert_eq!(with(&place, &first, &["init"]).code, 0);
    assert_eq!(with(&place, &first, &["acquire", "deploy", "--as", "alice"]).code, 0);
    refused(&start(&place, &first, &to("a.db"), &[]).end(), 6, "HELD", "deploy is held by alice");
    let waited = start(&place, &first, &to("a.db"), &["--held", "wait", "-w", "0.3"]).end();
    refused(&waited, 6, "HELD", "deploy is held by alice");
    let plan = ["migrate", "--from", &first, "--to", &to("a.db"), "--dry-run"];
    assert_eq!(data(&place, "memory:", &plan)["held"][0], "deploy is held by alice");
    // It goes on as soon as that ends.
    let waiting = start(&place, &first, &to("b.db"), &["--held", "wait", "-w", "60"]);
    assert_eq!(with(&place, &first, &["release", "deploy", "--as", "alice"]).code, 0);
    let ended = waiting.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(with(&place, &first, &["tasks", "add", "--id", "one", "One"]).code, 0);
    assert_eq!(with(&place, &first, &["tasks", "claim", "--as", "w1", "-n"]).code, 0);
    let busy = start(&place, &first, &to("c.db"), &[]).end();
    refused(&busy, 6, "HELD", "in use by 2");
    assert!(busy.text().contains("task:one is in progress by w1"), "{busy:?}");
}

#[test]
fn what_is_held_can_be_left_behind() {
    let place = StoreLocation::new();
    let (first, last) = (sqlite(&place, "first.db"), sqlite(&place, "last.db"));
    for id in ["one", "two"] {
        let words = ["tasks", "add", "--id", id, id, "--section", "s", "--file", "src/**"];
        assert_eq!(with(&place, &first, &words).code, 0);
    }
    assert_eq!(with(&place, &first, &["acquire", "deploy", "--as", "alice"]).code, 0);
    let claimed = data(&place, &first, &["tasks", "claim", "one", "--as", "w1", "-n"]);
    let grant = claimed["tasks"][0]["grant"].as_str().unwrap();
    migrated(&place, &first, &last, &["--held", "drop", "--leave-paused"]);
    let shown = &data(&place, &last, &["tasks", "show", "one"])["task"];
    assert_eq!((&shown["status"], &shown["recoveries"]), (&"pending".into(), &1.into()));
    assert_eq!(shown["tries"][0]["outcome"], "lapsed", "{shown}");
    assert_eq!(data(&place, &last, &["locks"])["counts"]["held"], 0);
    // Its old worker is not known there, and a new one gets it.
    let late = with(&place, &last, &["tasks", "complete", "one", "--grant", grant]);
    assert_ne!(late.code, 0, "{late:?}");
    assert_eq!(with(&place, &last, &["tasks", "claim", "one", "--as", "w2", "-n"]).code, 0);
    // The source has what it had, and hands nothing out.
    assert_eq!(data(&place, &first, &["tasks", "show", "one"])["task"]["status"], "in_progress");
    assert_ne!(with(&place, &first, &["tasks", "claim", "--as", "w3", "-n"]).code, 0);
    assert_eq!(with(&place, &first, &["sections", "resume"]).code, 0);
    assert_eq!(with(&place, &first, &["tasks", "complete", "one", "--grant", grant]).code, 0);
}

#[test]
fn an_unfinished_target_is_no_source_and_no_target_of_another() {
    let place = StoreLocation::new();
    let (first, other) = (sqlite(&place, "first.db"), sqlite(&place, "other.db"));
    let last = sqlite(&place, "last.db");
    crate::source::fill_with_many(&place, &first, 3_000);
    assert_eq!(with(&place, &other, &["init"]).code, 0);
    let running = start(&place, &first, &last, &[]);
    crate::support::until("a marker", || {
        (with(&place, &last, &["tasks", "show", "tenure-migration"]).code == 0).then_some(())
    });
    assert_eq!(running.kill().code, 137);
    refused(&start(&place, &last, &other, &[]).end(), 5, "SOURCE_UNFINISHED", "unfinished");
    refused(&start(&place, &other, &last, &[]).end(), 5, "TARGET_UNFINISHED", "first.db");
    migrated(&place, &first, &last, &[]);
}
