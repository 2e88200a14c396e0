//! Worktrees of workers: made on claim, removed when nothing is lost by that.

use crate::support::{Repo, git, kept, task, write};
use std::fs;
use tenure_frontend::git::{WorkerTree, Worktrees};

fn made(repo: &Repo) -> (Worktrees, WorkerTree) {
    let trees = Worktrees::new(&repo.repository(), &repo.beside("trees"), "HEAD").expect("a base");
    let tree = trees.make(&task(), "Fix the log-in").expect("a worktree");
    (trees, tree)
}

fn commit_in(tree: &WorkerTree, name: &str) {
    write(&tree.path, name, "done\n");
    git(&tree.path, &["add", "-A"]);
    git(&tree.path, &["commit", "-q", "-m", name]);
}

#[test]
fn each_attempt_has_a_worktree_and_a_branch_of_its_own() {
    let repo = Repo::new();
    let (trees, tree) = made(&repo);
    assert_eq!(tree.branch, "tenure/t1-fix-the-log-in");
    assert_eq!(tree.path, repo.beside("trees").join("t1-fix-the-log-in"));
    assert_eq!(git(&tree.path, &["symbolic-ref", "--short", "HEAD"]), tree.branch);
    assert_eq!(fs::read_to_string(tree.path.join("src/a.rs")).expect("a file"), "a\n");
    let second = trees.make(&task(), "Fix the log-in").expect("a worktree");
    assert_eq!(second.branch, "tenure/t1-fix-the-log-in-2");
    assert_eq!(trees.made().expect("git runs"), [tree, second]);
}

#[test]
fn a_clean_one_without_commits_is_removed_with_its_branch() {
    let repo = Repo::new();
    let (trees, tree) = made(&repo);
    assert!(trees.remove_if_merged(&tree).expect("git runs"));
    assert!(!tree.path.exists());
    assert_eq!(repo.git(&["branch", "--list", "tenure/*"]), "");
    assert_eq!(trees.made().expect("git runs"), []);
}

#[test]
fn one_with_commits_is_removed_once_they_are_merged() {
    let repo = Repo::new();
    let (trees, tree) = made(&repo);
    commit_in(&tree, "src/done.rs");
    assert!(!trees.remove_if_merged(&tree).expect("git runs"));
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", &tree.branch]);
    assert!(trees.remove_if_merged(&tree).expect("git runs"));
    assert!(!tree.path.exists() && repo.path("src/done.rs").exists());
}

#[test]
fn one_with_changes_stays() {
    for change in ["src/a.rs", "src/new.rs"] {
        let repo = Repo::new();
        let (trees, tree) = made(&repo);
        write(&tree.path, change, "not committed\n");
        assert!(!trees.remove_if_merged(&tree).expect("git runs"), "{change}");
        assert!(tree.path.join(change).exists());
    }
}

#[test]
fn worktrees_of_others_are_not_touched() {
    let repo = Repo::new();
    let (trees, tree) = made(&repo);
    let own = repo.beside("trees").join("own");
    repo.git(&["worktree", "add", "-q", &own.display().to_string()]);
    assert_eq!(trees.made().expect("git runs"), std::slice::from_ref(&tree));
    // A user made it their own.
    git(&tree.path, &["checkout", "-q", "-b", "mine"]);
    assert_eq!(trees.made().expect("git runs"), []);
}

#[test]
fn a_folder_inside_the_main_worktree_ignores_itself() {
    let repo = Repo::new();
    let folder = repo.path("trees");
    let trees = Worktrees::new(&repo.repository(), &folder, "main").expect("a base");
    trees.make(&task(), "x").expect("a worktree");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_new_worktree_begins_where_the_branch_is_by_then() {
    let repo = Repo::new();
    let trees = Worktrees::new(&repo.repository(), &repo.beside("trees"), "HEAD").expect("a base");
    repo.write("src/later.rs", "later\n");
    repo.commit("later");
    let tree = trees.make(&task(), "x").expect("a worktree");
    assert!(tree.path.join("src/later.rs").exists());
    let detached = repo.git(&["rev-parse", "HEAD~1"]);
    let trees =
        Worktrees::new(&repo.repository(), &repo.beside("other"), &detached).expect("a base");
    assert!(!trees.make(&task(), "x").expect("a worktree").path.join("src/later.rs").exists());
    for base in ["nowhere", "--help", ""] {
        assert!(Worktrees::new(&repo.repository(), &repo.beside("trees"), base).is_err(), "{base}");
    }
}

/// What a killed worker committed and what it did not are its work alike.
#[test]
fn all_work_in_a_worktree_that_was_made_for_it_is_rescued() {
    let repo = Repo::new();
    let (_, tree) = made(&repo);
    commit_in(&tree, "src/done.rs");
    write(&tree.path, "anywhere.txt", "not committed\n");
    kept(repo.rescue_from(&tree.path, &[], "claim-1"));
    let repository = repo.repository();
    let work = repository.rescued(None).expect("git runs").remove(0);
    let files = repository.rescued_files(&work).expect("git runs");
    assert_eq!(files, ["anywhere.txt", "src/done.rs"]);
}
