//! `--worktrees`: each task has a worktree and a branch of its own.

use crate::repository::Repository;
use crate::support::StoreLocation;
use serde_json::Value;
use std::collections::HashSet;

/// Commits a file of the task's name, unless the task is to fail or to do nothing.
const WORK: &str = "test \"$PWD\" = \"$TENURE_WORKTREE\" || exit 9\n\
    test \"$(git symbolic-ref --short HEAD)\" = \"$TENURE_BRANCH\" || exit 9\n\
    case $TENURE_TASK_ID in\n\
    bad) echo half >half.txt; exit 1;;\n\
    idle) exit 0;;\n\
    esac\n\
    echo done >\"$TENURE_TASK_ID.txt\" && git add -A && git commit -q -m \"$TENURE_TASK_ID\"";

fn branch(task: &Value) -> String {
    task["tries"][0]["branch"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn three_workers_do_six_tasks_in_worktrees_of_their_own() {
    let place = StoreLocation::new();
    let repository = Repository::new(&place, place.url());
    let ids = ["one", "two", "three", "four", "bad", "idle"];
    for id in ids {
        repository.add(id, &["--max-attempts", "1"]);
    }
    let trees = place.path("trees");
    let trees = trees.to_str().expect("a path");
    let swarm = ["swarm", "-n", "3", "--worktrees", trees, "-c", WORK];

    let ended = repository.run(&swarm);

    // One failed.
    assert_eq!(ended.code, 1, "{ended:?}");
    let tasks: Vec<Value> = ids.iter().map(|id| repository.task(id)).collect();
    let statuses: Vec<&str> = tasks.iter().filter_map(|task| task["status"].as_str()).collect();
    assert_eq!(
        statuses,
        ["completed", "completed", "completed", "completed", "failed", "completed"]
    );
    let branches: HashSet<String> = tasks.iter().map(branch).collect();
    assert_eq!(branches.len(), 6, "{branches:?}");
    assert!(branches.contains("tenure/one-task-one"), "{branches:?}");
    let worktrees: HashSet<&Value> =
        tasks.iter().map(|task| &task["tries"][0]["worktree"]).collect();
    assert_eq!(worktrees.len(), 6, "{worktrees:?}");
    // Nothing is in the one that did nothing; commits and a failure are kept.
    let left = |id: &str| place.path(&format!("trees/{id}-task-{id}")).exists();
    assert!(!left("idle"));
    assert!(ids[..5].iter().all(|id| left(id)), "{:?}", repository.git(&["worktree", "list"]));
    assert_eq!(place.read("trees/bad-task-bad/half.txt"), "half\n");
    // The main worktree saw nothing of it.
    assert_eq!(repository.git(&["status", "--porcelain"]), "");

    repository.git(&["merge", "-q", "--no-edit", "tenure/one-task-one"]);
    repository.git(&["merge", "-q", "--no-edit", "tenure/two-task-two"]);
    repository.add("next", &["--max-attempts", "1"]);
    let ended = repository.run(&["work", "--once", "--worktrees", trees, "-c", WORK]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!left("one") && !left("two"), "merged ones are removed");
    assert!(left("three") && left("four") && left("bad"), "others are kept");
    let kept = repository.git(&["branch", "--list", "tenure/*", "--format=%(refname:short)"]);
    let expected = [
        "tenure/bad-task-bad",
        "tenure/four-task-four",
        "tenure/next-task-next",
        "tenure/three-task-three",
    ];
    assert_eq!(kept.lines().collect::<Vec<_>>(), expected);
}

/// Commits, goes on, and is killed.
const COMMIT_AND_EDIT: &str = "echo one >one.txt && git add -A && git commit -q -m one; \
    echo two >two.txt; touch \"$D/edited\"; exec sleep 60";

#[test]
fn the_next_attempt_has_a_new_worktree_and_the_work_of_the_killed_one() {
    let place = StoreLocation::new();
    let repository = Repository::new(&place, place.url());
    repository.add("t", &[]);
    let trees = place.path("trees");
    let trees = trees.to_str().expect("a path");
    let first = ["work", "--once", "--worktrees", trees, "-c", COMMIT_AND_EDIT];
    let worker = repository.start(&first);
    place.wait_for("edited");
    assert_eq!(worker.kill().code, 137);

    let script = "\"$T\" --store \"$TENURE_STORE\" tasks rescue t --apply && cat one.txt two.txt && \
        echo \"$TENURE_BRANCH\"";
    let second = ["work", "--once", "--idle-exit", "30s", "--worktrees", trees, "-c", script];
    let ended = repository.run(&second);

    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.ends_with("one\ntwo\ntenure/t-task-t-2\n"), "{ended:?}");
    assert_eq!(place.read("trees/t-task-t/two.txt"), "two\n");
}

#[test]
fn worktrees_need_a_repository_and_a_base() {
    let place = StoreLocation::new();
    let repository = Repository::new(&place, place.url());
    let outside =
        repository.run_in(&place.path("home"), &["work", "--worktrees", "x", "-c", "true"]);
    assert_eq!(outside.code, 3, "{outside:?}");
    let base = ["work", "--worktrees", "x", "--base", "nowhere", "-c", "true"];
    let ended = repository.run(&base);
    assert!(ended.code == 3 && ended.stderr.contains("nowhere"), "{ended:?}");
    let alone = repository.run(&["work", "--base", "main", "-c", "true"]);
    assert_eq!(alone.code, 2, "{alone:?}");
}
