//! What is in a rescue, and when there is none.

use crate::support::{Repo, git, globs_of, kept, request, write};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tenure_frontend::git::{NoWorktree, Rescue, RescueRequest};

#[test]
fn changed_new_and_deleted_files_that_match_are_rescued() {
    let repo = Repo::new();
    repo.write("src/a.rs", "changed\n");
    repo.write("src/deep/new.rs", "new\n");
    fs::remove_file(repo.path("src/b.rs")).expect("removed");
    repo.write("notes.txt", "not the task's\n");
    repo.write("other/new.txt", "not the task's\n");

    let rescued = repo.rescued(&["src/**"]);

    assert_eq!(rescued.reference, "refs/tenure/rescue/t1/1");
    assert_eq!((rescued.files, rescued.left_out), (3, 0));
    assert_eq!(repo.changed(&rescued), ["M src/a.rs", "D src/b.rs", "A src/deep/new.rs"]);
    assert_eq!(repo.git(&["show", &format!("{}:src/a.rs", rescued.reference)]), "changed");
    assert_eq!(
        repo.git(&["rev-parse", &format!("{}^", rescued.reference)]),
        repo.git(&["rev-parse", "HEAD"])
    );
}

#[test]
fn nothing_changed_nothing_rescued() {
    let repo = Repo::new();
    repo.write("notes.txt", "not the task's\n");
    assert_eq!(repo.rescue(&["src/**"]), Rescue::Nothing);
    // A file that was touched but has the same content is no change.
    repo.write("src/a.rs", "a\n");
    assert_eq!(repo.rescue(&["src/**"]), Rescue::Nothing);
    assert_eq!(repo.git(&["for-each-ref", "refs/tenure"]), "");
}

/// git trusts a file's size and time unless the file is as new as the index.
#[test]
fn an_edit_of_the_same_size_in_the_same_tick_of_the_clock_is_rescued() {
    let repo = Repo::new();
    // The time of the file's entry in its folder cannot be set.
    repo.git(&["config", "core.trustctime", "false"]);
    let (file, index) = (repo.root.join("src/a.rs"), repo.root.join(".git/index"));
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let set = |path: &std::path::Path| {
        let file = std::fs::File::options().write(true).open(path).expect("a file");
        file.set_modified(then).expect("a time");
    };
    set(&file);
    repo.git(&["add", "-A"]);
    set(&index);
    repo.write("src/a.rs", "b\n");
    set(&file);
    assert_eq!(repo.git(&["status", "--porcelain"]), " M src/a.rs", "git sees it");
    let rescued = repo.rescued(&["src/**"]);
    assert_eq!(repo.changed(&rescued), ["M src/a.rs"]);
}

#[test]
fn a_task_without_files_rescues_nothing_from_a_shared_worktree() {
    let repo = Repo::new();
    repo.write("src/a.rs", "changed\n");
    assert_eq!(repo.rescue(&[]), Rescue::Nothing);
}

#[test]
fn what_was_staged_counts_as_it_lies_in_the_worktree() {
    let repo = Repo::new();
    repo.write("src/a.rs", "staged\n");
    repo.write("src/staged.rs", "staged\n");
    repo.write("notes.txt", "staged, not the task's\n");
    repo.git(&["add", "-A"]);
    repo.write("src/a.rs", "changed again\n");
    repo.git(&["rm", "-q", "--cached", "src/b.rs"]);
    let rescued = repo.rescued(&["src/**"]);
    assert_eq!(repo.changed(&rescued), ["M src/a.rs", "A src/staged.rs"]);
    assert_eq!(repo.git(&["show", &format!("{}:src/a.rs", rescued.commit)]), "changed again");
}

#[test]
fn files_of_an_unfinished_merge_are_rescued_as_they_lie_there() {
    let repo = Repo::new();
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("src/a.rs", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("src/a.rs", "main\n");
    repo.commit("main");
    let merged = std::process::Command::new("git")
        .current_dir(&repo.root)
        .args(["merge", "-q", "side"])
        .output()
        .expect("git runs");
    assert!(!merged.status.success(), "no conflict");
    let rescued = repo.rescued(&["src/**"]);
    assert!(repo.git(&["show", &format!("{}:src/a.rs", rescued.commit)]).contains("<<<<<<<"));
}

#[test]
fn the_same_claim_is_rescued_once_and_another_with_the_same_number_beside_it() {
    let repo = Repo::new();
    repo.write("src/a.rs", "changed\n");
    let first = repo.rescued(&["src/**"]);
    repo.write("src/a.rs", "changed by the next worker\n");
    let again = repo.rescued(&["src/**"]);
    assert_eq!((&again.reference, &again.commit), (&first.reference, &first.commit));
    assert_eq!(again.files, 1);

    let other = kept(repo.rescue_from(&repo.root, &["src/**"], "claim-2"));
    assert_eq!(other.reference, "refs/tenure/rescue/t1/1-2");
    assert_ne!(other.commit, first.commit);
}

#[test]
fn many_at_once_make_one_rescue() {
    let repo = Repo::new();
    repo.write("src/a.rs", "changed\n");
    let commits: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..6).map(|_| scope.spawn(|| repo.rescued(&["src/**"]).commit)).collect();
        all.into_iter().map(|one| one.join().expect("rescued")).collect()
    });
    assert!(commits.iter().all(|commit| *commit == commits[0]), "{commits:?}");
    assert_eq!(repo.git(&["for-each-ref", "refs/tenure"]).lines().count(), 1);
}

#[test]
fn without_a_commit_the_rescue_is_a_first_one() {
    let repo = Repo::empty();
    repo.write("src/a.rs", "new\n");
    let rescued = repo.rescued(&["src/**"]);
    assert_eq!(repo.git(&["rev-list", "--count", &rescued.commit]), "1");
    assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", &rescued.commit]), "src/a.rs");
    assert_eq!(repo.rescue_from(&repo.root, &["none/**"], "claim-2"), Rescue::Nothing);
}

#[test]
fn ignored_files_stay_where_they_are() {
    let repo = Repo::new();
    repo.write("src/build.tmp", "ignored\n");
    assert_eq!(repo.rescue(&["src/**"]), Rescue::Nothing);
}

#[test]
fn links_executable_files_and_odd_names_are_rescued_as_they_are() {
    let repo = Repo::new();
    symlink("/etc/passwd", repo.path("src/link")).expect("a link");
    repo.write("src/tool", "#!/bin/sh\n");
    fs::set_permissions(repo.path("src/tool"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let odd =
        ["src/ü ñ.rs", "src/with\nnewline", "src/-x", "src/\"quoted\\\"", "src/[a]*?{b}", "src/:x"];
    odd.iter().for_each(|name| repo.write(name, "odd\n"));
    let not_text = std::ffi::OsStr::from_bytes(b"src/\xff.bin");
    fs::write(repo.root.join(not_text), "bytes\n").expect("a file");

    let rescued = repo.rescued(&["src/**"]);

    assert_eq!(rescued.files, odd.len() + 3);
    let tree = |name: &str| repo.git(&["ls-tree", &rescued.commit, "--", name]);
    assert!(tree("src/link").starts_with("120000 blob"), "{}", tree("src/link"));
    assert_eq!(repo.git(&["show", &format!("{}:src/link", rescued.commit)]), "/etc/passwd");
    assert!(tree("src/tool").starts_with("100755 blob"), "{}", tree("src/tool"));
    for name in odd {
        assert_eq!(repo.git(&["show", &format!("{}:{name}", rescued.commit)]), "odd", "{name:?}");
    }
}

/// A glob names these characters themselves, and git must not read them as a pattern.
#[test]
fn a_file_with_wildcards_in_its_name_takes_no_other_along() {
    let repo = Repo::new();
    repo.write("src/*.rs", "odd\n");
    repo.write("src/a.rs", "changed\n");
    let rescued = repo.rescued(&["src/\\*.rs"]);
    assert_eq!(repo.changed(&rescued), ["A src/*.rs"]);
}

#[test]
fn a_file_that_became_a_folder_and_a_folder_that_became_a_link_are_rescued() {
    let repo = Repo::new();
    repo.write("src/sub/x.rs", "x\n");
    repo.commit("second");
    fs::remove_file(repo.path("src/a.rs")).expect("removed");
    repo.write("src/a.rs/inside.rs", "inside\n");
    fs::remove_dir_all(repo.path("src/sub")).expect("removed");
    repo.write("outside/x.rs", "not the task's\n");
    symlink("../outside", repo.path("src/sub")).expect("a link");

    let rescued = repo.rescued(&["src/**"]);

    let tree = repo.git(&["ls-tree", "-r", "--name-only", &rescued.commit, "src"]);
    let expected = ["src/a.rs/inside.rs", "src/b.rs", "src/sub"];
    assert_eq!(tree.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn repositories_inside_the_worktree_are_left_out() {
    let (repo, inner) = (Repo::new(), Repo::new());
    let url = inner.root.display().to_string();
    repo.git(&["submodule", "--quiet", "add", &url, "src/module"]);
    repo.commit("with a submodule");
    write(&repo.path("src/module"), "src/a.rs", "changed inside\n");
    let nested = repo.path("src/nested");
    fs::create_dir(&nested).expect("a folder");
    git(&nested, &["init", "-q"]);
    write(&nested, "x", "inside\n");
    repo.write("src/a.rs", "changed\n");

    let rescued = repo.rescued(&["src/**"]);

    assert_eq!(repo.changed(&rescued), ["M src/a.rs"]);
}

#[test]
fn too_much_is_not_rescued_and_nothing_is_written() {
    let repo = Repo::new();
    repo.write("src/a.rs", "changed\n");
    repo.write("src/huge.bin", vec![7; 2_000_000]);
    let objects = repo.git(&["count-objects"]);
    assert_eq!(repo.rescue(&["src/**"]), Rescue::TooLarge { files: 2, bytes: 2_000_008 });
    assert_eq!(repo.git(&["count-objects"]), objects);
    assert_eq!(repo.git(&["for-each-ref", "refs/tenure"]), "");
}

#[test]
fn a_record_cannot_make_a_stranger_of_a_worktree() {
    let (repo, other) = (Repo::new(), Repo::new());
    repo.write("src/a.rs", "changed\n");
    other.write("src/a.rs", "changed\n");
    let from = |path: &Path| repo.rescue_from(path, &["src/**"], "claim-1");

    assert_eq!(from(&other.root), Rescue::NoWorktree(NoWorktree::NotOurs));
    assert_eq!(from(&repo.path("src")), Rescue::NoWorktree(NoWorktree::NotOurs));
    assert_eq!(from(&repo.path("gone")), Rescue::NoWorktree(NoWorktree::Gone));
    // A folder that says itself that it is a worktree is none.
    let forged = repo.beside("forged");
    write(&forged, ".git", format!("gitdir: {}/.git\n", repo.root.display()));
    write(&forged, "src/a.rs", "forged\n");
    assert_eq!(from(&forged), Rescue::NoWorktree(NoWorktree::NotOurs));
    // Neither is a worktree that leads to another repository by now.
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    write(&linked, ".git", format!("gitdir: {}/.git\n", other.root.display()));
    assert_eq!(from(&linked), Rescue::NoWorktree(NoWorktree::NotOurs));
    assert_eq!(repo.git(&["for-each-ref", "refs/tenure"]), "");
    assert_eq!(other.git(&["for-each-ref", "refs/tenure"]), "");
}

#[test]
fn a_linked_worktree_is_rescued_into_the_same_repository() {
    let repo = Repo::new();
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    write(&linked, "src/a.rs", "changed there\n");
    let rescued = kept(repo.rescue_from(&linked, &["src/**"], "claim-1"));
    assert_eq!(repo.git(&["show", &format!("{}:src/a.rs", rescued.reference)]), "changed there");
    assert_eq!(fs::read_to_string(repo.path("src/a.rs")).expect("a file"), "a\n");
}

#[test]
fn an_id_that_no_reference_can_have_is_written_otherwise() {
    let repo = Repo::new();
    repo.write("src/a.rs", "changed\n");
    let (task, files) = ("../a b~1".parse().expect("an id"), globs_of(&["src/**"]));
    let request = RescueRequest { worktree: &repo.root, ..request(&task, &files) };
    let rescued = kept(repo.repository().rescue(&request).expect("git runs"));
    assert_eq!(rescued.reference, "refs/tenure/rescue/%2E%2E%2Fa%20b%7E1/1");
    let listed = repo.repository().rescued(Some(&task)).expect("git runs");
    assert_eq!(listed[0].task, "../a b~1");
    assert_eq!(repo.repository().rescued(Some(&crate::support::task())).expect("git runs"), []);
}
