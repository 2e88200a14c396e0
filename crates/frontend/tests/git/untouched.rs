//! A rescue changes nothing that the worker or its user sees, and runs none of their programs.

use crate::support::{Repo, tracing_program};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

type State = BTreeMap<String, (i64, i64, Vec<u8>)>;

/// What must not change: the time and content of each file, and of the git directory all but objects
/// and tenure's own references.
fn state(folder: &Path) -> State {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.display().to_string();
            let found = fs::symlink_metadata(&path).expect("a file");
            if name.ends_with(".git/objects") || name.ends_with(".git/refs/tenure") {
                continue;
            }
            if found.is_dir() {
                folders.push(path);
                continue;
            }
            let content = if found.is_file() { fs::read(&path).expect("a file") } else { vec![] };
            // Git itself notes there that the file was read.
            let is_shared = name.contains("/sharedindex.");
            let time = if is_shared { (0, 0) } else { (found.mtime(), found.mtime_nsec()) };
            all.insert(name, (time.0, time.1, content));
        }
    }
    all
}

/// Fails with the names of the files that changed.
fn assert_same(before: &State, after: &State) {
    let names = before.keys().chain(after.keys());
    let changed: Vec<_> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(changed.is_empty(), "changed: {changed:?}");
}

#[test]
fn worktree_index_branches_and_logs_stay_as_they_are() {
    let repo = Repo::new();
    repo.write("src/a.rs", "staged\n");
    repo.git(&["add", "-A"]);
    repo.write("src/a.rs", "changed\n");
    repo.write("src/new.rs", "new\n");
    fs::remove_file(repo.path("src/b.rs")).expect("removed");
    // Touched only: git would like to note in its index that nothing changed.
    repo.write("notes.txt", "notes\n");
    let (before, status) =
        (state(&repo.root), repo.git(&["--no-optional-locks", "status", "--porcelain=v2"]));

    repo.rescued(&["**"]);

    assert_same(&before, &state(&repo.root));
    assert_eq!(repo.git(&["--no-optional-locks", "status", "--porcelain=v2"]), status);
}

#[test]
fn a_split_index_stays_as_it_is() {
    let repo = Repo::new();
    repo.git(&["config", "core.splitIndex", "true"]);
    repo.git(&["update-index", "--split-index"]);
    repo.write("src/a.rs", "changed\n");
    let before = state(&repo.root);
    repo.rescued(&["src/**"]);
    assert_same(&before, &state(&repo.root));
}

#[test]
fn no_program_of_the_user_or_the_repository_runs() {
    let repo = Repo::new();
    let trace = repo.beside("trace");
    let program = |name: &str| {
        let path = repo.beside("programs").join(name);
        tracing_program(&path, &trace);
        path.display().to_string()
    };
    repo.write(".gitattributes", "*.secret filter=crypt diff=crypt\n*.rs diff=crypt\n");
    repo.write("src/key.secret", "old\n");
    repo.commit("attributes");
    let hooks = repo.path(".git/hooks");
    for hook in ["post-index-change", "reference-transaction", "post-commit", "pre-commit"] {
        tracing_program(&hooks.join(hook), &trace);
    }
    repo.git(&["config", "filter.crypt.clean", &program("clean")]);
    repo.git(&["config", "filter.crypt.required", "true"]);
    repo.git(&["config", "filter.long.process", &program("process")]);
    repo.git(&["config", "core.fsmonitor", &program("fsmonitor")]);
    repo.git(&["config", "diff.external", &program("external")]);
    repo.git(&["config", "diff.crypt.textconv", &program("textconv")]);
    repo.git(&["config", "gpg.program", &program("gpg")]);
    repo.git(&["config", "commit.gpgSign", "true"]);
    repo.git(&["config", "core.pager", &program("pager")]);
    let _ = fs::remove_file(&trace);
    repo.write("src/key.secret", "a secret\n");
    repo.write("src/a.rs", "changed\n");

    let rescued = repo.rescued(&["src/**"]);
    let repository = repo.repository();
    let listed = repository.rescued(None).expect("git runs");
    let diff = repository.rescued_diff(&listed[0], false).expect("git runs");

    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap_or_default());
    // As it lies there it would be in the repository in the clear.
    assert_eq!((rescued.files, rescued.left_out), (1, 1));
    let diff = String::from_utf8_lossy(&diff);
    assert!(diff.contains("+changed") && !diff.contains("secret"), "{diff}");
}
