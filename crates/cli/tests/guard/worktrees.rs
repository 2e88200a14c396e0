//! Linked worktrees, repositories without a main worktree, submodules, hooks that lie elsewhere.

use crate::repository::{Repository, is_let_through, is_refused, write};
use crate::support::TENURE;
use std::fs;

#[test]
fn a_path_is_held_in_all_worktrees_or_in_one() {
    let repository = Repository::with_files(&["a"]);
    repository.git(&["worktree", "add", "-q", "../linked"]);
    let linked = repository.place.path("linked");
    let commit = |folder| repository.try_git_in(folder, &["commit", "-q", "-a", "-m", "change"]);
    for folder in [&repository.root, &linked] {
        write(folder, "a", "second\n");
    }
    repository.hold(&["path:a"]);
    is_refused(&commit(&linked), &["a"]);
    is_refused(&commit(&repository.root), &["a"]);
    repository.release();
    // In the linked one alone, and taken there.
    let arguments = ["acquire", "-q", "--as", "holder", "--per-worktree", "path:a"];
    assert_eq!(repository.run_in(&linked, &[&[TENURE], &arguments[..]].concat()).code, 0);
    is_let_through(&commit(&repository.root));
    is_refused(&commit(&linked), &["a"]);
}

#[test]
fn a_bare_repository_with_worktrees_is_guarded() {
    let repository = Repository::with_files(&["a"]);
    let bare = repository.place.path("project.git");
    repository.git(&["clone", "-q", "--bare", ".", "../project.git"]);
    repository.git_in(&bare, &["worktree", "add", "-q", "../one"]);
    let one = repository.place.path("one");
    for hook in ["pre-commit", "pre-push"] {
        fs::create_dir_all(bare.join("hooks")).expect("a folder");
        fs::copy(repository.root.join(".git/hooks").join(hook), bare.join("hooks").join(hook))
            .expect("a hook");
    }
    let acquire = [TENURE, "acquire", "-q", "--as", "holder", "path:a"];
    assert_eq!(repository.run_in(&one, &acquire).code, 0);
    write(&one, "a", "second\n");
    is_refused(&repository.try_git_in(&one, &["commit", "-q", "-a", "-m", "change"]), &["a"]);
    // The store of the other repository has nothing of it.
    repository.write("a", "second\n");
    is_let_through(&repository.commit_all());
}

#[test]
fn hooks_may_lie_elsewhere() {
    let repository = Repository::with_files(&["a", "deep/b"]);
    fs::rename(repository.root.join(".git/hooks"), repository.root.join("hooks")).expect("moved");
    repository.git(&["config", "core.hooksPath", "hooks"]);
    repository.hold(&["path:deep/b"]);
    repository.write("deep/b", "second\n");
    let deep = repository.root.join("deep");
    let ended = repository.try_git_in(&deep, &["commit", "-q", "-a", "-m", "change"]);
    is_refused(&ended, &["deep/b"]);
    // As it can be typed there.
    assert!(ended.stderr.contains("`tenure wait path:b`"), "{ended:?}");
}

#[test]
fn the_commit_of_a_submodule_is_not_a_file() {
    let repository = Repository::with_files(&["a"]);
    let inner = repository.place.path("inner");
    repository.git(&["clone", "-q", ".", "../inner"]);
    repository.git(&["submodule", "--quiet", "add", "../inner", "inner"]);
    assert_eq!(repository.commit_all().code, 0);
    repository.hold(&["path:inner", "path:inner/**"]);
    let checked_out = repository.root.join("inner");
    write(&checked_out, "a", "second\n");
    // In the submodule nothing is held: it is a repository with a store of its own.
    repository.git_in(&checked_out, &["commit", "-q", "-a", "-m", "inside"]);
    repository.git(&["add", "inner"]);
    is_let_through(&repository.try_git(&["commit", "-q", "-m", "newer inner"]));
    assert!(inner.exists());
}
