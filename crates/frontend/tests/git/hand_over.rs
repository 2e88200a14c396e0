//! Rescued work is found, shown, taken over, and removed when it is old.

use crate::support::{Repo, task, write};
use std::fs;
use std::time::Duration;
use tenure::core::WallTime;
use tenure_frontend::git::{Applied, RescuedWork};

fn text(repo: &Repo, name: &str) -> String {
    fs::read_to_string(repo.path(name)).unwrap_or_default()
}

/// A repository in whose worktree `linked` a worker left work, and that work.
fn with_rescued_work() -> (Repo, RescuedWork) {
    let repo = Repo::new();
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    write(&linked, "src/a.rs", "changed\n");
    write(&linked, "src/new.bin", [0, 1, 2, 255]);
    fs::remove_file(linked.join("src/b.rs")).expect("removed");
    repo.rescue_from(&linked, &["src/**"], "claim-1");
    let mut found = repo.repository().rescued(Some(&task())).expect("git runs");
    assert_eq!(found.len(), 1);
    (repo, found.remove(0))
}

#[test]
fn rescued_work_is_listed_and_shown() {
    let (repo, work) = with_rescued_work();
    assert_eq!((work.attempt, work.by.as_str(), work.task.as_str()), (1, "alice", "t1"));
    let repository = repo.repository();
    let diff = repository.rescued_diff(&work, false).expect("git runs");
    let diff = String::from_utf8_lossy(&diff);
    assert!(diff.contains("-a\n+changed\n") && diff.contains("deleted file"), "{diff}");
    let files = repository.rescued_files(&work).expect("git runs");
    assert_eq!(files, ["src/a.rs", "src/b.rs", "src/new.bin"]);
}

#[test]
fn it_is_applied_to_files_alone() {
    let (repo, work) = with_rescued_work();
    let index = fs::read(repo.path(".git/index")).expect("an index");
    let applied = repo.repository().apply_rescued(&repo.path("src"), &work).expect("git runs");
    assert!(matches!(applied, Applied::Changed(files) if files.len() == 3));
    assert_eq!(text(&repo, "src/a.rs"), "changed\n");
    assert_eq!(fs::read(repo.path("src/new.bin")).expect("a file"), [0, 1, 2, 255]);
    assert!(!repo.path("src/b.rs").exists());
    assert_eq!(fs::read(repo.path(".git/index")).expect("an index"), index);

    let again = repo.repository().apply_rescued(&repo.root, &work).expect("git runs");
    assert_eq!(again, Applied::AlreadyThere);
}

#[test]
fn what_was_committed_since_is_merged_with_it() {
    let repo = Repo::new();
    let lines: Vec<String> = (1..=20).map(|number| format!("line {number}\n")).collect();
    repo.write("src/a.rs", lines.concat());
    repo.commit("long");
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    let with = |number: usize, text: &str| {
        let mut lines = lines.clone();
        lines[number - 1] = text.to_owned();
        lines.concat()
    };
    write(&linked, "src/a.rs", with(10, "rescued\n"));
    repo.rescue_from(&linked, &["src/**"], "claim-1");
    let work = repo.repository().rescued(None).expect("git runs").remove(0);
    // Near enough that the patch alone does not fit.
    repo.write("src/a.rs", with(12, "committed since\n"));
    repo.commit("since");

    let applied = repo.repository().apply_rescued(&repo.root, &work).expect("git runs");

    assert_eq!(applied, Applied::Changed(vec!["src/a.rs".to_owned()]));
    let merged = text(&repo, "src/a.rs");
    assert!(merged.contains("rescued") && merged.contains("committed since"), "{merged}");
}

#[test]
fn a_conflict_changes_nothing() {
    let (repo, work) = with_rescued_work();
    repo.write("src/a.rs", "the next worker's\n");
    let applied = repo.repository().apply_rescued(&repo.root, &work).expect("git runs");
    assert!(matches!(applied, Applied::Conflict(_)), "{applied:?}");
    assert_eq!(text(&repo, "src/a.rs"), "the next worker's\n");
    assert!(repo.path("src/b.rs").exists() && !repo.path("src/new.bin").exists());

    repo.commit("the same, committed");
    let applied = repo.repository().apply_rescued(&repo.root, &work).expect("git runs");
    assert!(matches!(applied, Applied::Conflict(_)), "{applied:?}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn old_work_is_removed_and_young_work_stays() {
    let (repo, work) = with_rescued_work();
    let (repository, day) = (repo.repository(), Duration::from_secs(24 * 60 * 60));
    let later = |days: i64| WallTime(work.rescued_at.0 + days * 24 * 60 * 60 * 1000);
    assert_eq!(repository.expire_rescued(30 * day, later(29)).expect("git runs"), 0);
    assert_eq!(repository.rescued(None).expect("git runs").len(), 1);
    assert_eq!(repository.expire_rescued(30 * day, later(31)).expect("git runs"), 1);
    assert_eq!(repository.rescued(None).expect("git runs"), []);
}

#[test]
fn a_plain_push_does_not_take_it_along() {
    let (repo, _) = with_rescued_work();
    let remote = repo.beside("remote.git");
    repo.git(&["init", "-q", "--bare", &remote.display().to_string()]);
    repo.git(&["push", "-q", "--all", &remote.display().to_string()]);
    repo.git(&["push", "-q", "--tags", &remote.display().to_string()]);
    let there = crate::support::git(&remote, &["for-each-ref"]);
    assert!(there.contains("refs/heads/main") && !there.contains("tenure/rescue"), "{there}");
}
