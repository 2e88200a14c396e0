//! A worker is killed in the middle of editing. The next one has its diff.

use crate::repository::Repository;
use crate::server::Server;
use crate::support::{Engine, StoreLocation};
use serde_json::Value;

/// Edits, says so, and goes on for ever. `exec`, so that no process survives the kill.
const EDIT: &str = "echo half >>src/a.rs; rm src/b.rs; echo new >src/new.rs; echo no >other.txt; \
    touch \"$D/edited\"; exec sleep 60";

/// Says what it was given.
const LOOK: &str = "cat >\"$D/task.json\"; echo \"$TENURE_RESCUE_REF\" >\"$D/ref\"; \
    git diff --name-status HEAD \"$TENURE_RESCUE_REF\" >\"$D/diff\"";

fn hand_over(repository: &Repository<'_>) {
    let place = repository.place;
    repository.add("t", &["--file", "src/**"]);
    let worker = repository.start(&["--as", "first", "work", "--once", "-c", EDIT]);
    place.wait_for("edited");
    let before = repository.state();
    assert_eq!(worker.kill().code, 137);

    let ended =
        repository.run(&["--as", "second", "work", "--once", "--idle-exit", "30s", "-c", LOOK]);

    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(place.read("ref").trim_end(), "refs/tenure/rescue/t/1");
    assert_eq!(place.read("diff"), "M\tsrc/a.rs\nD\tsrc/b.rs\nA\tsrc/new.rs\n");
    let given: Value = serde_json::from_str(&place.read("task.json")).expect("the task");
    assert_eq!(given["rescue_ref"], "refs/tenure/rescue/t/1");
    // The dead worker's tree is as it left it.
    assert_eq!(repository.state(), before);
    assert_eq!(place.read("repo/src/a.rs"), "a\nhalf\n");
    assert!(place.path("repo/src/new.rs").exists() && !place.path("repo/src/b.rs").exists());
    let (tries, notes) = (&repository.task("t")["tries"], &repository.task("t")["notes"]);
    assert_eq!(tries[0]["outcome"], "died", "{tries}");
    assert_eq!(tries[0]["rescue"], "refs/tenure/rescue/t/1", "{tries}");
    let note = notes[0]["text"].as_str().unwrap_or_default();
    assert!(note.contains("3 files") && note.contains("first"), "{notes}");
}

#[test]
fn the_next_worker_has_the_diff_of_a_killed_one() {
    let place = StoreLocation::new();
    hand_over(&Repository::new(&place, place.url()));
}

#[test]
fn the_next_worker_has_it_from_a_store_of_files() {
    let place = StoreLocation::with(Engine::Files);
    hand_over(&Repository::new(&place, place.url()));
}

#[test]
fn the_next_worker_has_it_over_a_server() {
    let place = StoreLocation::new();
    let server = Server::start(&place);
    hand_over(&Repository::new(&place, server.url()));
}

#[test]
fn what_is_rescued_can_be_turned_off() {
    let place = StoreLocation::new();
    let repository = Repository::new(&place, place.url());
    repository.add("t", &["--file", "src/**"]);
    let worker = repository.start(&["--as", "first", "work", "--once", "-c", EDIT]);
    place.wait_for("edited");
    worker.kill();
    let arguments = ["work", "--once", "--idle-exit", "30s", "-c", "echo \"[$TENURE_RESCUE_REF]\""];
    let mut command = repository.command(&repository.root, &arguments);
    command.env("TENURE_RESCUE_ENABLED", "false");
    let ended = crate::support::Running::start(command).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "[]\n"), "{ended:?}");
    assert_eq!(repository.git(&["for-each-ref", "refs/tenure"]), "");
}

/// A claim goes on whatever is wrong with the repository, and the task says where the work lies.
#[test]
fn a_rescue_that_fails_stops_no_claim() {
    let place = StoreLocation::new();
    let repository = Repository::new(&place, place.url());
    repository.add("t", &["--file", "src/**"]);
    let worker = repository.start(&["--as", "first", "work", "--once", "-c", EDIT]);
    place.wait_for("edited");
    worker.kill();
    std::fs::write(repository.root.join(".git/index"), "not an index").expect("a file");
    let arguments = ["work", "--once", "--idle-exit", "30s", "-c", "echo \"[$TENURE_RESCUE_REF]\""];
    let ended = repository.run(&arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "[]\n"), "{ended:?}");
    let notes = &repository.task("t")["notes"];
    let note = notes[0]["text"].as_str().unwrap_or_default();
    let root = std::fs::canonicalize(&repository.root).expect("a folder");
    assert!(note.contains(&root.display().to_string()), "{notes}");
}
