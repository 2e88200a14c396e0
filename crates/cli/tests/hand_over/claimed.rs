//! Work that lies in one worktree is shown in another, and taken over there.

use crate::repository::Repository;
use crate::support::StoreLocation;
use std::path::PathBuf;

/// Two worktrees, and work in the first whose claim has lapsed.
fn interrupted<'a>(place: &'a StoreLocation) -> (Repository<'a>, PathBuf) {
    let repository = Repository::new(place, place.url());
    let other = place.path("other");
    repository.git(&["worktree", "add", "-q", "../other"]);
    repository.add("t", &["--file", "src/**"]);
    repository.json(&["--as", "first", "tasks", "claim", "t", "--ttl", "300ms"]);
    repository.write("src/a.rs", "changed\n");
    repository.write("src/new.rs", "new\n");
    (repository, other)
}

#[test]
fn a_claim_says_what_was_rescued_and_it_is_applied_elsewhere() {
    let place = StoreLocation::new();
    let (repository, other) = interrupted(&place);

    let claim = ["--as", "second", "tasks", "claim", "t", "-w", "60"];
    let claimed = repository.json_in(&other, &claim)["tasks"][0].clone();

    assert_eq!(claimed["rescue_ref"], "refs/tenure/rescue/t/1", "{claimed}");
    let shown = repository.run_in(&other, &["tasks", "rescue", "t"]);
    assert!(shown.stdout.contains("-a\n+changed\n"), "{shown:?}");
    let listed = repository.json_in(&other, &["tasks", "rescue", "t", "--list"]);
    assert_eq!(listed["rescues"][0]["by"], "first", "{listed}");
    assert_eq!(listed["rescues"][0]["files"], serde_json::json!(["src/a.rs", "src/new.rs"]));
    let applied = repository.run_in(&other, &["tasks", "rescue", "t", "--apply"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(place.read("other/src/a.rs"), "changed\n");
    assert_eq!(place.read("other/src/new.rs"), "new\n");
    let again = repository.run_in(&other, &["tasks", "rescue", "t", "--apply"]);
    assert!(again.code == 0 && again.stdout.contains("already"), "{again:?}");
    // The worktree of the first has it still.
    assert_eq!(place.read("repo/src/a.rs"), "changed\n");
}

#[test]
fn what_contradicts_the_worktree_is_refused_whole() {
    let place = StoreLocation::new();
    let (repository, other) = interrupted(&place);
    repository.json_in(&other, &["--as", "second", "tasks", "claim", "t", "-w", "60"]);
    std::fs::write(other.join("src/a.rs"), "another change\n").expect("a file");
    let refused = repository.run_in(&other, &["--json", "tasks", "rescue", "t", "--apply"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "CONFLICT", "{refused:?}");
    assert_eq!(place.read("other/src/a.rs"), "another change\n");
    assert!(!other.join("src/new.rs").exists());
}

#[test]
fn recovering_rescues_too() {
    let place = StoreLocation::new();
    let (repository, _) = interrupted(&place);
    let recovered = crate::support::until("a lapse", || {
        let tasks = repository.json(&["tasks", "recover"])["tasks"].clone();
        tasks.get(0).cloned()
    });
    assert_eq!(recovered["tries"][0]["rescue"], "refs/tenure/rescue/t/1", "{recovered}");
    assert_eq!(recovered["tries"][0]["outcome"], "lapsed", "{recovered}");
}

#[test]
fn without_files_nothing_is_taken_from_a_shared_worktree() {
    let place = StoreLocation::new();
    let repository = Repository::new(&place, place.url());
    repository.add("t", &[]);
    repository.json(&["--as", "first", "tasks", "claim", "t", "--ttl", "300ms"]);
    repository.write("src/a.rs", "changed\n");
    let claimed = repository.json(&["--as", "second", "tasks", "claim", "t", "-w", "60"]);
    assert_eq!(claimed["tasks"][0]["rescue_ref"], serde_json::Value::Null);
    let none = repository.run(&["tasks", "rescue", "t"]);
    assert_eq!(none.code, 4, "{none:?}");
}
