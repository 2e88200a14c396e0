//! Which commits are refused, and which are not.

use crate::repository::{Repository, is_let_through, is_refused};
use crate::support::{Running, TENURE};

#[test]
fn a_commit_of_a_held_file_is_refused_until_it_is_released() {
    let repository = Repository::with_files(&["src/a.rs", "b"]);
    repository.hold(&["path:src/a.rs", "--operation", "rewriting the parser"]);
    repository.write("src/a.rs", "second\n");
    repository.write("b", "second\n");
    let before = repository.head();
    let ended = repository.commit_all();
    is_refused(&ended, &["src/a.rs"]);
    assert!(ended.stderr.contains("\"rewriting the parser\""), "{ended:?}");
    assert!(ended.stderr.contains("lease ends in"), "{ended:?}");
    assert!(ended.stderr.contains("`tenure wait path:src/a.rs`"), "{ended:?}");
    assert_eq!(repository.head(), before);
    // The other file can be committed.
    is_let_through(&repository.try_git(&["commit", "-q", "-m", "b", "b"]));
    is_refused(&repository.commit_all(), &["src/a.rs"]);
    repository.release();
    is_let_through(&repository.commit_all());
}

#[test]
fn git_itself_can_skip_its_hooks() {
    let repository = Repository::with_files(&["a"]);
    repository.hold(&["path:a"]);
    repository.write("a", "second\n");
    repository.git(&["commit", "-q", "-a", "--no-verify", "-m", "change"]);
}

#[test]
fn what_the_committer_holds_is_not_in_the_way() {
    let repository = Repository::with_files(&["a"]);
    repository.write("a", "second\n");
    repository.hold(&["path:a"]);
    // By the label.
    let mut command = repository.command(&repository.root, "git");
    command.args(["commit", "-q", "-a", "-m", "change"]).env("TENURE_AGENT", "other");
    is_refused(&Running::start(command).end(), &["a"]);
    let mut command = repository.command(&repository.root, "git");
    command.args(["commit", "-q", "-a", "-m", "change"]).env("TENURE_AGENT", "holder");
    is_let_through(&Running::start(command).end());
    // By the grant of the commands around it.
    repository.release();
    repository.write("a", "third\n");
    let commit = ["git", "commit", "-q", "-a", "-m", "change"];
    let nested = [&[TENURE, "run", "path:*", "--", TENURE, "run", "x", "--"], &commit[..]].concat();
    is_let_through(&repository.run_in(&repository.root, &nested));
}

#[test]
fn a_process_that_holds_is_in_the_way_until_it_dies() {
    let repository = Repository::with_files(&["a"]);
    let mut command = repository.command(&repository.root, TENURE);
    command.args(["run", "--as", "holder", "path:a", "--"]);
    command.args(["sh", "-c", "touch \"$D/held\"; exec sleep 600"]);
    let holder = Running::start(command);
    repository.place.wait_for("held");
    repository.write("a", "second\n");
    is_refused(&repository.commit_all(), &["a"]);
    holder.kill();
    repository.place.is_deserted();
    is_let_through(&repository.commit_all());
}

#[test]
fn a_lapsed_lease_is_not_in_the_way() {
    let repository = Repository::with_files(&["a"]);
    repository.tenure(&["acquire", "-q", "--as", "holder", "--ttl", "100ms", "path:a"]);
    repository.tenure(&["wait", "path:a"]);
    repository.write("a", "second\n");
    is_let_through(&repository.commit_all());
}

#[test]
fn readers_are_in_the_way_of_a_change() {
    let repository = Repository::with_files(&["a"]);
    repository.hold(&["--shared", "path:a"]);
    repository.write("a", "second\n");
    is_refused(&repository.commit_all(), &["a"]);
}

#[test]
fn globs_cover_changed_added_and_deleted_files_and_both_names_of_a_renamed_one() {
    let repository = Repository::with_files(&["src/a", "src/gone", "src/old", "docs/moved"]);
    repository.hold(&["path:src/**"]);
    repository.write("src/a", "second\n");
    repository.write("src/new", "new\n");
    repository.git(&["rm", "-q", "src/gone"]);
    repository.git(&["mv", "src/old", "docs/from-src"]);
    repository.git(&["mv", "docs/moved", "src/from-docs"]);
    repository.git(&["add", "-A"]);
    let ended = repository.try_git(&["commit", "-q", "-m", "change"]);
    is_refused(&ended, &["src/a", "src/from-docs", "src/gone", "src/new", "src/old"]);
    assert!(ended.stderr.contains("src/a: held by holder as path:src/**"), "{ended:?}");
}

#[test]
fn only_what_is_in_the_commit_counts() {
    let repository = Repository::with_files(&["held", "free"]);
    repository.hold(&["path:held"]);
    for name in ["held", "free"] {
        repository.write(name, "second\n");
    }
    // Changed but not staged; then staged but not part of a partial commit.
    repository.git(&["add", "free"]);
    is_let_through(&repository.try_git(&["commit", "-q", "-m", "free"]));
    repository.write("free", "third\n");
    repository.git(&["add", "-A"]);
    is_let_through(&repository.try_git(&["commit", "-q", "-m", "free", "free"]));
    repository.write("free", "fourth\n");
    is_refused(&repository.try_git(&["commit", "-q", "-m", "held", "held"]), &["held"]);
    is_refused(&repository.try_git(&["commit", "-q", "-m", "held"]), &["held"]);
}

#[test]
fn an_amended_commit_is_judged_by_what_is_added_to_it() {
    let repository = Repository::with_files(&["a", "b"]);
    repository.write("a", "second\n");
    assert_eq!(repository.commit_all().code, 0);
    repository.hold(&["path:a"]);
    is_let_through(&repository.try_git(&["commit", "-q", "--amend", "-m", "better words"]));
    repository.write("b", "second\n");
    is_let_through(&repository.try_git(&["commit", "-q", "--amend", "--no-edit", "b"]));
    repository.write("a", "third\n");
    is_refused(&repository.try_git(&["commit", "-q", "--amend", "--no-edit", "-a"]), &["a"]);
}

#[test]
fn the_first_commit_is_judged() {
    let repository = Repository::new();
    repository.write("a", "first\n");
    repository.hold(&["path:a"]);
    repository.git(&["add", "a"]);
    is_refused(&repository.try_git(&["commit", "-q", "-m", "first"]), &["a"]);
    repository.release();
    is_let_through(&repository.try_git(&["commit", "-q", "-m", "first"]));
}

#[test]
fn settings_of_git_do_not_hide_a_file() {
    let repository = Repository::with_files(&["deep/old"]);
    for setting in
        ["diff.renames=copies", "diff.relative=true", "color.ui=always", "diff.noprefix=true"]
    {
        let (key, value) = setting.split_once('=').expect("a key and a value");
        repository.git(&["config", key, value]);
    }
    repository.hold(&["path:deep/old"]);
    repository.git(&["mv", "deep/old", "deep/new"]);
    let deep = repository.root.join("deep");
    is_refused(&repository.try_git_in(&deep, &["commit", "-q", "-m", "moved"]), &["deep/old"]);
}

#[test]
fn thousands_of_files_are_judged_in_one_go_and_the_list_is_short() {
    let repository = Repository::new();
    for number in 0..5_000 {
        repository.write(format!("many/{}/{number}", number % 50), "x\n");
    }
    for number in 0..200 {
        repository.hold(&[&format!("path:many/7/other-{number}")]);
    }
    repository.git(&["add", "-A"]);
    repository.hold(&["path:many/3/*"]);
    let ended = repository.try_git(&["commit", "-q", "-m", "many"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("others hold 100 of the files"), "{ended:?}");
    assert!(ended.stderr.contains("… and 80 more"), "{ended:?}");
    assert!(ended.stderr.lines().count() < 30, "{ended:?}");
}

#[test]
fn scripts_get_all_of_it_as_json() {
    let repository = Repository::with_files(&["a", "b"]);
    repository.hold(&["path:a", "--operation", "why"]);
    repository.write("a", "second\n");
    repository.git(&["add", "a"]);
    let ended = repository.run_in(&repository.root, &[TENURE, "guard", "pre-commit", "--json"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let error = &ended.json()["error"];
    assert_eq!(error["code"], "FILES_HELD");
    let held = &error["details"]["held"][0];
    assert_eq!((&held["path"], &held["hold"]["holder"]), (&"a".into(), &"holder".into()));
    assert!(!ended.text().contains("grant"), "{ended:?}");
    repository.release();
    let ended = repository.run_in(&repository.root, &[TENURE, "guard", "pre-commit", "--json"]);
    assert_eq!((ended.code, &ended.json()["data"]["checked"]), (0, &true.into()), "{ended:?}");
}
