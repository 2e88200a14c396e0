//! A store with something of everything in it.

use crate::support::StoreLocation;
use crate::with;

/// Commands that leave tasks of all statuses behind, with notes, tries, feedback, files, keys and
/// dependencies, sections, and a history. Nothing is held at the end.
const SCRIPT: &[&[&str]] = &[
    &["sections", "add", "build", "--max-runners", "3", "--priority", "10"],
    &["sections", "add", "release", "--after", "build"],
    &["sections", "add", "empty", "--max-runners", "any"],
    &["sections", "pause", "release"],
    &[
        "tasks",
        "add",
        "--id",
        "done",
        "Ünïcode — “quoted”",
        "--section",
        "build",
        "--payload",
        r#"{"n": 1}"#,
    ],
    &["tasks", "add", "--id", "failed", "It fails", "--label", "x", "--label", "y"],
    &["tasks", "add", "--id", "reviewed", "For review", "--description", "two\nlines"],
    &["tasks", "add", "--id", "cancelled", "Not wanted"],
    &["tasks", "add", "--id", "skipped", "Passed over", "--priority", "90"],
    &["tasks", "add", "--id", "blocked", "Kills its workers", "--max-attempts", "1"],
    &["tasks", "add", "--id", "later", "Waits", "--after", "done", "--after", "failed"],
    &[
        "tasks",
        "add",
        "--id",
        "keyed",
        "Once",
        "--key",
        "k1",
        "--file",
        "src/**",
        "--timeout",
        "5m",
    ],
    &["tasks", "add", "--id", "snoozed", "Put off", "--section", "release"],
    &["tasks", "claim", "done", "--as", "w1", "-n"],
    &["tasks", "start", "done", "--as", "w1"],
    &["tasks", "note", "done", "half of it"],
    &["tasks", "release", "done", "--as", "w1"],
    &["tasks", "claim", "done", "--as", "w2", "-n"],
    &["tasks", "complete", "done", "--as", "w2", "--result", r#"{"ok": true}"#],
    &["tasks", "claim", "failed", "--as", "w1", "-n"],
    &["tasks", "fail", "failed", "--reason", "no luck", "--as", "w1", "--no-retry"],
    &["tasks", "claim", "reviewed", "--as", "w1", "-n"],
    &["tasks", "review", "reviewed", "--as", "w1"],
    &["tasks", "reject", "reviewed", "--feedback", "again, please"],
    &["tasks", "claim", "reviewed", "--as", "w1", "-n"],
    &["tasks", "review", "reviewed", "--as", "w1"],
    &["tasks", "cancel", "cancelled"],
    &["tasks", "skip", "skipped"],
    &["tasks", "claim", "blocked", "--as", "w1", "-n"],
    &["break", "task:blocked", "--force", "--reason", "stuck"],
    &["tasks", "recover"],
    &["tasks", "update", "snoozed", "--not-before", "+3h"],
    &["acquire", "deploy", "--as", "alice", "--operation", "a release"],
    &["release", "deploy", "--as", "alice"],
    &["run", "deploy", "--", "true"],
];

/// Fills a store.
pub fn fill(place: &StoreLocation, url: &str) {
    assert_eq!(with(place, url, &["init"]).code, 0);
    for words in SCRIPT {
        let ended = with(place, url, words);
        assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
    }
}

/// Adds so many tasks, a third of which are completed.
pub fn fill_with_many(place: &StoreLocation, url: &str, count: usize) {
    let one = |number: usize| {
        let status = if number.is_multiple_of(3) { "completed" } else { "pending" };
        serde_json::json!({
            "id": format!("t{number}"), "title": format!("Task {number}"), "status": status,
            "section": format!("s{}", number % 5), "payload": { "n": number },
        })
    };
    let tasks: Vec<_> = (0..count).map(one).collect();
    let file = place.path("tasks.json");
    std::fs::write(&file, serde_json::to_string(&tasks).unwrap()).unwrap();
    assert_eq!(with(place, url, &["init"]).code, 0);
    let ended = with(place, url, &["tasks", "import", file.to_str().unwrap()]);
    assert_eq!(ended.code, 0, "{ended:?}");
}
