//! Merges, rebases, picks and reverts: their files come from commits that exist already.

use crate::repository::{Repository, is_let_through, is_refused};

/// A repository in which `side` and `main` changed the same file.
fn diverged() -> Repository {
    let repository = Repository::with_files(&["a", "b"]);
    repository.git(&["checkout", "-q", "-b", "side"]);
    repository.write("a", "of the side\n");
    assert_eq!(repository.commit_all().code, 0);
    repository.git(&["checkout", "-q", "main"]);
    repository.write("a", "of main\n");
    assert_eq!(repository.commit_all().code, 0);
    repository
}

/// After such a step stopped at a conflict in `a`, which is held: its end is let through, and the
/// next commit is judged again.
fn is_let_through_once(repository: &Repository, stopping: &[&str], ending: &[&str]) {
    repository.hold(&["path:a", "path:b"]);
    let stopped = repository.try_git(stopping);
    assert_ne!(stopped.code, 0, "{stopped:?}");
    repository.write("a", "of both\n");
    repository.git(&["add", "a"]);
    is_let_through(&repository.try_git(ending));
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    repository.write("b", "second\n");
    is_refused(&repository.commit_all(), &["b"]);
}

const COMMIT: [&str; 5] = ["-c", "core.editor=true", "commit", "-q", "--no-edit"];

#[test]
fn a_merge_is_let_through() {
    is_let_through_once(&diverged(), &["merge", "-q", "side"], &COMMIT);
}

#[test]
fn a_squashed_merge_is_let_through() {
    is_let_through_once(&diverged(), &["merge", "-q", "--squash", "side"], &COMMIT);
}

#[test]
fn a_rebase_is_let_through() {
    let repository = diverged();
    is_let_through_once(
        &repository,
        &["rebase", "-q", "side"],
        &["-c", "core.editor=true", "rebase", "--continue"],
    );
}

#[test]
fn a_commit_in_the_middle_of_a_rebase_is_let_through() {
    let repository = diverged();
    repository.hold(&["path:a"]);
    assert_ne!(repository.try_git(&["rebase", "-q", "side"]).code, 0);
    repository.write("a", "of both\n");
    repository.git(&["add", "a"]);
    is_let_through(&repository.try_git(&["commit", "-q", "-m", "by hand"]));
}

#[test]
fn a_pick_is_let_through() {
    is_let_through_once(&diverged(), &["cherry-pick", "side"], &COMMIT);
}

#[test]
fn a_revert_is_let_through() {
    let repository = diverged();
    repository.write("a", "of main, later\n");
    assert_eq!(repository.commit_all().code, 0);
    is_let_through_once(&repository, &["revert", "--no-edit", "HEAD~1"], &COMMIT);
}

#[test]
fn a_merge_in_one_worktree_excuses_no_other() {
    let repository = diverged();
    repository.git(&["worktree", "add", "-q", "-b", "third", "../third", "main"]);
    let third = repository.place.path("third");
    repository.hold(&["path:a"]);
    assert_ne!(repository.try_git(&["merge", "-q", "side"]).code, 0);
    crate::repository::write(&third, "a", "third\n");
    is_refused(&repository.try_git_in(&third, &["commit", "-q", "-a", "-m", "change"]), &["a"]);
}
