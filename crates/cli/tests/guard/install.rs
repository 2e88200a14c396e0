//! `tenure setup git`: hooks that are there stay and still run, and everything can be undone.

use crate::repository::{Repository, is_let_through, is_refused};
use crate::support::{Ended, TENURE};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A file as it is: its kind, its mode and its bytes, or where a link leads.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    name: PathBuf,
    mode: u32,
    bytes: Vec<u8>,
}

/// The files of a folder, without those that are never run.
fn files(folder: &Path) -> Vec<Seen> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<Seen> = paths
        .filter(|path| path.extension().is_none_or(|extension| extension != "sample"))
        .map(|name| {
            let metadata = fs::symlink_metadata(&name).expect("a file");
            let bytes = match metadata.is_symlink() {
                true => fs::read_link(&name).expect("a link").into_os_string().into_encoded_bytes(),
                false => fs::read(&name).expect("a file"),
            };
            Seen { name, mode: metadata.permissions().mode(), bytes }
        })
        .collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

fn setup(repository: &Repository, arguments: &[&str]) -> Ended {
    repository.run_in(&repository.root, &[&[TENURE, "setup", "git"], arguments].concat())
}

#[track_caller]
fn is_set_up(repository: &Repository) {
    let ended = setup(repository, &[]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let ended = setup(repository, &["--check"]);
    assert_eq!(ended.code, 0, "{ended:?}");
}

/// Sets up and removes with this hook in place. In between the guard refuses, and lets the hook run
/// otherwise: `commit` says what a commit then comes to.
#[track_caller]
fn is_chained(repository: &Repository, commit: impl Fn(&Ended)) {
    repository.write("a", "first\n");
    repository.git(&["add", "a"]);
    repository.git(&["commit", "-q", "--no-verify", "-m", "first"]);
    let folder = repository.root.join(".git/hooks");
    let before = files(&folder);
    let missing = setup(repository, &["--check"]);
    assert_eq!(missing.code, 7, "{missing:?}");
    let printed = setup(repository, &["--print"]);
    assert!(printed.code == 0 && printed.stdout.contains("guard pre-commit"), "{printed:?}");
    assert_eq!(files(&folder), before, "--check and --print write nothing");

    is_set_up(repository);
    let installed = files(&folder);
    is_set_up(repository);
    assert_eq!(files(&folder), installed, "a second time changes nothing");

    repository.hold(&["path:a"]);
    repository.write("a", "second\n");
    is_refused(&repository.commit_all(), &["a"]);
    repository.release();
    commit(&repository.commit_all());

    let removed = setup(repository, &["--remove"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert_eq!(files(&folder), before, "removing restores");
}

#[test]
fn where_there_is_no_hook_one_is_created_and_deleted() {
    let repository = Repository::without_hooks();
    is_chained(&repository, is_let_through);
}

#[test]
fn a_folder_for_hooks_is_created() {
    let repository = Repository::without_hooks();
    fs::remove_dir_all(repository.root.join(".git/hooks")).expect("a folder");
    is_set_up(&repository);
    repository.write("a", "first\n");
    repository.git(&["add", "a"]);
    repository.hold(&["path:a"]);
    is_refused(&repository.try_git(&["commit", "-q", "-m", "first"]), &["a"]);
}

/// The old hook ran.
#[track_caller]
fn ran(ended: &Ended) {
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.text().contains("the old hook ran"), "{ended:?}");
}

#[test]
fn a_shell_script_is_extended() {
    for script in [
        "#!/bin/sh\necho the old hook ran\n",
        "#!/usr/bin/env bash\n# without a line break at its end\necho the old hook ran\nexit 0",
        "#!/bin/sh -eu\nset -o nounset\necho the old hook ran\nexec true\n",
    ] {
        let repository = Repository::without_hooks();
        repository.write_hook("pre-commit", script);
        is_chained(&repository, ran);
    }
}

#[test]
fn a_hook_in_another_language_is_kept_and_run() {
    let repository = Repository::without_hooks();
    let script = "#!/usr/bin/env python3\nprint('the old hook ran')\n";
    repository.write_hook("pre-commit", script);
    is_chained(&repository, ran);
}

#[test]
fn a_hook_that_is_not_text_or_a_link_is_kept_and_run() {
    let repository = Repository::without_hooks();
    repository.write_hook("pre-commit", b"#!/bin/sh\n: \xff\xfe\necho the old hook ran\n");
    is_chained(&repository, ran);
    let repository = Repository::without_hooks();
    repository.write("tools/check", "#!/bin/sh\necho the old hook ran\n");
    let tool = repository.root.join("tools/check");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("a mode");
    symlink("../../tools/check", repository.root.join(".git/hooks/pre-commit")).expect("a link");
    is_chained(&repository, ran);
    assert_eq!(fs::read(&tool).expect("a tool"), b"#!/bin/sh\necho the old hook ran\n");
}

#[test]
fn a_hook_that_refuses_still_refuses() {
    for script in ["#!/bin/sh\necho no >&2\nexit 3\n", "#!/usr/bin/env python3\nexit(3)\n"] {
        let repository = Repository::without_hooks();
        repository.write_hook("pre-commit", script);
        is_chained(&repository, |ended| assert_eq!(ended.code, 1, "{ended:?}"));
    }
}

#[test]
fn a_hook_that_is_not_executable_stays_off() {
    let repository = Repository::without_hooks();
    let file = repository.write_hook("pre-commit", "#!/bin/sh\necho the old hook ran\nexit 1\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    is_chained(&repository, is_let_through);
}

#[test]
fn the_hook_before_a_push_reads_what_is_pushed() {
    let repository = Repository::without_hooks();
    repository.write_hook("pre-push", "#!/bin/sh\necho \"to $1\"; cat\n");
    repository.write("a", "first\n");
    repository.git(&["add", "a"]);
    repository.git(&["commit", "-q", "-m", "first"]);
    repository.git(&["init", "-q", "--bare", "../remote.git"]);
    repository.git(&["remote", "add", "origin", "../remote.git"]);
    is_set_up(&repository);
    repository.hold(&["path:a"]);
    let head = repository.head();
    let ended = repository.try_git(&["push", "origin", "main"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.text().contains("a: held by holder"), "{ended:?}");
    assert!(ended.text().contains("to origin"), "{ended:?}");
    let line = format!("refs/heads/main {} refs/heads/main {}", head.trim(), "0".repeat(40));
    assert!(ended.text().contains(&line), "{ended:?}");
    // Nothing is pushed: the hook reads nothing.
    let ended = repository.try_git(&["push", "origin", "main"]);
    assert!(ended.code == 0 && ended.text().contains("to origin"), "{ended:?}");
    assert!(!ended.text().contains("refs/heads/main "), "{ended:?}");
}

#[test]
fn what_was_added_to_hooks_since_stays() {
    let repository = Repository::without_hooks();
    is_set_up(&repository);
    let hooks = repository.root.join(".git/hooks");
    let (file, created) =
        (hooks.join("pre-commit"), "#!/bin/sh\n# Created by `tenure setup git`.\n");
    let text = fs::read_to_string(&file).expect("a hook");
    fs::write(&file, format!("{text}echo added\n")).expect("a hook");
    assert_eq!(setup(&repository, &["--remove"]).code, 0);
    assert_eq!(fs::read_to_string(&file).expect("a hook"), format!("{created}echo added\n"));
    assert!(!hooks.join("pre-push").exists());
    // A wrapper that was changed goes on running the hook before it.
    let script = "#!/usr/bin/env python3\nprint('the old hook ran')\n";
    repository.write_hook("pre-commit", script);
    is_set_up(&repository);
    let text = fs::read_to_string(&file).expect("a hook");
    fs::write(&file, text.replacen("#!/bin/sh\n", "#!/bin/sh\necho added\n", 1)).expect("a hook");
    let ended = setup(&repository, &["--remove"]);
    assert!(ended.code == 0 && ended.stderr.contains("was changed"), "{ended:?}");
    let text = fs::read_to_string(&file).expect("a hook");
    assert!(text.contains("echo added") && !text.contains("guard pre-commit"), "{text}");
    repository.write("a", "first\n");
    repository.git(&["add", "a"]);
    ran(&repository.try_git(&["commit", "-q", "-m", "first"]));
}

#[test]
fn a_program_that_is_gone_or_broken_stops_nothing() {
    let repository = Repository::without_hooks();
    let program = repository.place.path("bin/tenure");
    fs::create_dir(repository.place.path("bin")).expect("a folder");
    fs::copy(TENURE, &program).expect("a copy");
    let words = [program.to_str().expect("a path"), "setup", "git"];
    assert_eq!(repository.run_in(&repository.root, &words).code, 0);
    let hook = fs::read_to_string(repository.root.join(".git/hooks/pre-commit")).expect("a hook");
    assert!(hook.contains(words[0]), "{hook}");
    let mut step = 0;
    let mut commit = || {
        step += 1;
        repository.write("a", &format!("{step}\n"));
        repository.git(&["add", "a"]);
        repository.try_git(&["commit", "-q", "-m", "change"])
    };
    repository.hold(&["path:a"]);
    is_refused(&commit(), &["a"]);
    for code in [2, 3, 101] {
        fs::remove_file(&program).expect("a program");
        fs::write(&program, format!("#!/bin/sh\nexit {code}\n")).expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
        is_let_through(&commit());
    }
    fs::remove_file(&program).expect("a program");
    is_let_through(&commit());
}

#[test]
fn committed_hooks_name_the_program_and_are_silent_without_it() {
    let repository = Repository::without_hooks();
    repository.write("tools/hooks/pre-commit", "#!/bin/sh\necho the old hook ran\n");
    let file = repository.root.join("tools/hooks/pre-commit");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
    let before = files(&repository.root.join("tools/hooks"));
    repository.git(&["config", "core.hooksPath", "tools/hooks"]);
    is_set_up(&repository);
    let text = fs::read_to_string(&file).expect("a hook");
    assert!(text.contains("command -v tenure") && !text.contains(TENURE), "{text}");
    repository.write("a", "first\n");
    repository.git(&["add", "a"]);
    repository.hold(&["path:a"]);
    // The search path has no tenure; then it has.
    ran(&repository.try_git(&["commit", "-q", "-m", "first"]));
    repository.write("a", "second\n");
    let folder = Path::new(TENURE).parent().expect("a folder").to_str().expect("a path");
    let line = format!("PATH=\"{folder}:$PATH\"; git commit -q -a -m change");
    is_refused(&repository.run_in(&repository.root, &["sh", "-c", &line]), &["a"]);
    assert_eq!(setup(&repository, &["--remove"]).code, 0);
    assert_eq!(files(&repository.root.join("tools/hooks")), before);
}

#[test]
fn hooks_outside_the_project_are_left_to_their_user() {
    let repository = Repository::without_hooks();
    let outside = repository.place.path("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("pre-commit"), "#!/bin/sh\n").expect("a hook");
    let is_left = |repository: &Repository| {
        let before = files(&outside);
        let ended = setup(repository, &[]);
        assert_eq!(ended.code, 3, "{ended:?}");
        assert!(ended.stderr.contains("command -v tenure"), "{ended:?}");
        assert_eq!(setup(repository, &["--remove"]).code, 0);
        assert_eq!(files(&outside), before);
    };
    repository.git(&["config", "core.hooksPath", outside.to_str().expect("a path")]);
    is_left(&repository);
    repository.git(&["config", "--unset", "core.hooksPath"]);
    fs::remove_dir_all(repository.root.join(".git/hooks")).expect("a folder");
    symlink(&outside, repository.root.join(".git/hooks")).expect("a link");
    is_left(&repository);
}

#[test]
fn linked_worktrees_share_the_hooks() {
    let repository = Repository::without_hooks();
    repository.write("a", "first\n");
    repository.git(&["add", "a"]);
    repository.git(&["commit", "-q", "-m", "first"]);
    repository.git(&["worktree", "add", "-q", "../linked"]);
    let linked = repository.place.path("linked");
    assert_eq!(repository.run_in(&linked, &[TENURE, "setup", "git"]).code, 0);
    repository.hold(&["path:a"]);
    for folder in [&repository.root, &linked] {
        crate::repository::write(folder, "a", "second\n");
        is_refused(&repository.try_git_in(folder, &["commit", "-q", "-a", "-m", "x"]), &["a"]);
    }
    assert_eq!(repository.run_in(&linked, &[TENURE, "setup", "git", "--remove"]).code, 0);
    assert_eq!(files(&repository.root.join(".git/hooks")), []);
}

#[test]
fn a_hook_that_stands_in_the_way_is_named() {
    let repository = Repository::without_hooks();
    repository.write_hook("pre-commit", "#!/usr/bin/env python3\n");
    repository.write_hook("pre-commit.before-tenure", "kept\n");
    let before = files(&repository.root.join(".git/hooks"));
    let ended = setup(&repository, &[]);
    assert!(ended.code == 3 && ended.stderr.contains("pre-commit.before-tenure"), "{ended:?}");
    assert_eq!(files(&repository.root.join(".git/hooks")), before, "nothing was written");
    // Outside a repository.
    let ended = repository.run_in(&repository.place.path("home"), &[TENURE, "setup", "git"]);
    assert_eq!(ended.code, 3, "{ended:?}");
}
