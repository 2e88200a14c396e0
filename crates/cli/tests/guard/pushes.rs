//! A push is only warned of.

use crate::repository::Repository;
use crate::support::Ended;

/// A repository with a remote that has its first commit.
fn with_remote() -> Repository {
    let repository = Repository::with_files(&["a", "b"]);
    repository.git(&["init", "-q", "--bare", "../remote.git"]);
    repository.git(&["remote", "add", "origin", "../remote.git"]);
    repository.git(&["push", "-q", "origin", "main"]);
    repository
}

#[track_caller]
fn warns_of(ended: &Ended, names: &[&str]) {
    assert_eq!(ended.code, 0, "{ended:?}");
    for name in names {
        assert!(ended.stderr.contains(&format!("  {name}: held by holder")), "{name}: {ended:?}");
    }
    assert_eq!(ended.stderr.matches(": held by").count(), names.len(), "{ended:?}");
}

#[test]
fn files_in_a_push_that_others_hold_are_named() {
    let repository = with_remote();
    for name in ["a", "b"] {
        repository.write(name, "second\n");
        assert_eq!(repository.commit_all().code, 0);
    }
    repository.hold(&["path:a"]);
    warns_of(&repository.try_git(&["push", "-q", "origin", "main"]), &["a"]);
    assert_eq!(repository.git(&["rev-parse", "origin/main"]), repository.head());
    // It was pushed: nothing of it is in the next push.
    repository.write("b", "third\n");
    assert_eq!(repository.commit_all().code, 0);
    warns_of(&repository.try_git(&["push", "-q", "origin", "main"]), &[]);
}

#[test]
fn a_new_branch_is_compared_with_what_the_remote_has() {
    let repository = with_remote();
    repository.hold(&["path:a", "path:b"]);
    repository.git(&["checkout", "-q", "-b", "topic"]);
    repository.write("b", "second\n");
    repository.git(&["commit", "-q", "-a", "--no-verify", "-m", "change"]);
    warns_of(&repository.try_git(&["push", "-q", "origin", "topic", "main"]), &["b"]);
    warns_of(&repository.try_git(&["push", "-q", "origin", ":topic"]), &[]);
}

#[test]
fn a_remote_that_is_ahead_by_unknown_commits_is_no_trouble() {
    let repository = with_remote();
    repository.git(&["clone", "-q", "../remote.git", "../elsewhere"]);
    let elsewhere = repository.place.path("elsewhere");
    crate::repository::write(&elsewhere, "c", "new\n");
    repository.git_in(&elsewhere, &["add", "-A"]);
    repository.git_in(&elsewhere, &["commit", "-q", "-m", "unknown here"]);
    repository.git_in(&elsewhere, &["push", "-q", "origin", "main"]);
    repository.write("a", "second\n");
    assert_eq!(repository.commit_all().code, 0);
    repository.hold(&["path:a"]);
    let ended = repository.try_git(&["push", "-q", "--force", "origin", "main"]);
    warns_of(&ended, &["a"]);
}

#[test]
fn merges_are_passed_by() {
    let repository = with_remote();
    repository.git(&["checkout", "-q", "-b", "topic"]);
    repository.write("a", "second\n");
    assert_eq!(repository.commit_all().code, 0);
    repository.git(&["push", "-q", "origin", "topic"]);
    repository.git(&["checkout", "-q", "main"]);
    repository.write("b", "second\n");
    assert_eq!(repository.commit_all().code, 0);
    repository.git(&["merge", "-q", "-m", "merged", "topic"]);
    repository.hold(&["path:a"]);
    // The remote has the change of `a` already.
    warns_of(&repository.try_git(&["push", "-q", "origin", "main"]), &[]);
}
