//! Beside lefthook, husky and pre-commit, as their registries have them. `scripts/test` installs them
//! below `target/needs`; without them these tests fail.

use crate::repository::{Repository, is_refused};
use crate::support::{Ended, Running, TENURE};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project")
}

/// Something that `scripts/test` installs.
fn needs(what: &str) -> String {
    let path = root().join("target/needs").join(what);
    assert!(path.exists(), "{} is missing: scripts/test installs it", path.display());
    path.to_str().expect("a path").to_owned()
}

/// Runs a line of shell in the repository, with the binary under test on the search path.
fn shell(repository: &Repository, line: &str) -> Ended {
    let folder = Path::new(TENURE).parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("a search path");
    let mut command = repository.command(&repository.root, "sh");
    command.args(["-c", line]).env("PATH", format!("{folder}:{path}"));
    // They look for their own programs and caches there.
    command.env("XDG_CACHE_HOME", repository.place.path("home/cache"));
    Running::start(command).end()
}

#[track_caller]
fn succeeds(repository: &Repository, line: &str) -> Ended {
    let ended = shell(repository, line);
    assert_eq!(ended.code, 0, "{line}: {ended:?}");
    ended
}

/// A repository with a first commit.
fn repository() -> Repository {
    let repository = Repository::without_hooks();
    repository.write("a", "first\n");
    repository.git(&["add", "a"]);
    repository.git(&["commit", "-q", "-m", "first"]);
    repository
}

/// The guard refuses, and without a conflict the manager's own hook runs, which says `managed`.
#[track_caller]
fn both_run(repository: &Repository) {
    repository.hold(&["path:a"]);
    repository
        .write("a", &format!("{}x", fs::read_to_string(repository.root.join("a")).expect("a")));
    let refused = shell(repository, "git commit -a -m change");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.text().contains("a: held by holder"), "{refused:?}");
    repository.release();
    let ended = succeeds(repository, "git commit -a -m change");
    assert!(ended.text().contains("managed"), "{ended:?}");
}

#[test]
fn lefthook_and_the_guard_both_run() {
    let repository = repository();
    let lefthook = needs("node/node_modules/.bin/lefthook");
    let settings = "pre-commit:\n  commands:\n    own:\n      run: echo managed\n";
    repository.write("lefthook.yml", settings);
    succeeds(&repository, &format!("{lefthook} install"));
    let hook = repository.root.join(".git/hooks/pre-commit");
    let written = fs::read(&hook).expect("a hook of lefthook");
    let ended = succeeds(&repository, "tenure setup git");
    assert!(ended.stderr.contains("lefthook install"), "{ended:?}");
    both_run(&repository);
    succeeds(&repository, "tenure setup git --remove");
    assert_eq!(fs::read(&hook).expect("a hook of lefthook"), written);
    // What was in the way of neither: installed again, the hook of lefthook is extended again.
    succeeds(&repository, "tenure setup git");
    succeeds(&repository, &format!("{lefthook} install"));
    succeeds(&repository, "tenure setup git");
    both_run(&repository);
}

/// The block of a language in the documentation that has this text.
fn snippet(language: &str, text: &str) -> String {
    let document = fs::read_to_string(root().join("docs/agents.md")).expect("the documentation");
    let fence = format!("```{language}\n");
    let blocks = document.split(&fence).skip(1);
    let mut blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0.to_owned()));
    blocks.find(|block| block.contains(text)).unwrap_or_else(|| panic!("no block with {text}"))
}

#[test]
fn lefthook_runs_the_guard_by_its_own_settings() {
    let repository = repository();
    let lefthook = needs("node/node_modules/.bin/lefthook");
    let documented = snippet("yaml", "tenure guard pre-push");
    let own = "pre-commit:\n  commands:\n    own:\n      run: echo managed\n";
    let settings = documented.replacen("pre-commit:\n  commands:\n", own, 1);
    assert_ne!(settings, documented);
    repository.write("lefthook.yml", &settings);
    succeeds(&repository, &format!("{lefthook} install"));
    both_run(&repository);
    repository.git(&["init", "-q", "--bare", "../remote.git"]);
    repository.hold(&["path:a"]);
    let ended = succeeds(&repository, "git push ../remote.git main");
    assert!(ended.text().contains("a: held by holder"), "{ended:?}");
}

#[test]
fn husky_and_the_guard_both_run() {
    let repository = repository();
    let husky = needs("node/node_modules/.bin/husky");
    succeeds(&repository, &husky);
    repository.write(".husky/pre-commit", "echo managed\n");
    succeeds(&repository, "tenure setup git");
    let text = fs::read_to_string(repository.root.join(".husky/pre-commit")).expect("a hook");
    assert!(text.contains("command -v tenure") && !text.contains(TENURE), "{text}");
    both_run(&repository);
    // Husky writes its own files again when packages are installed.
    succeeds(&repository, &husky);
    both_run(&repository);
    succeeds(&repository, "tenure setup git --check");
    succeeds(&repository, "tenure setup git --remove");
    let text = fs::read_to_string(repository.root.join(".husky/pre-commit")).expect("a hook");
    assert_eq!(text, "echo managed\n");
    assert!(!repository.root.join(".husky/pre-push").exists());
}

const PRE_COMMIT_SETTINGS: &str = "\
repos:
- repo: local
  hooks:
  - id: own
    name: managed
    entry: 'true'
    language: system
    always_run: true
";

#[test]
fn pre_commit_and_the_guard_both_run() {
    let repository = repository();
    let pre_commit = needs("venv/bin/pre-commit");
    repository.write(".pre-commit-config.yaml", PRE_COMMIT_SETTINGS);
    repository.git(&["add", "-A"]);
    succeeds(&repository, &format!("{pre_commit} install"));
    let hooks = repository.root.join(".git/hooks");
    let written = fs::read(hooks.join("pre-commit")).expect("a hook of pre-commit");
    succeeds(&repository, "tenure setup git");
    assert_eq!(fs::read(hooks.join("pre-commit")).expect("a hook"), written);
    both_run(&repository);
    // Installed again, it still runs the hook that it found.
    succeeds(&repository, &format!("{pre_commit} install"));
    succeeds(&repository, "tenure setup git --check");
    both_run(&repository);
    succeeds(&repository, "tenure setup git --remove");
    assert!(!hooks.join("pre-commit.legacy").exists());
    assert_eq!(fs::read(hooks.join("pre-commit")).expect("a hook"), written);
}

#[test]
fn pre_commit_keeps_a_guard_that_it_finds() {
    let repository = repository();
    let pre_commit = needs("venv/bin/pre-commit");
    repository.write(".pre-commit-config.yaml", PRE_COMMIT_SETTINGS);
    repository.git(&["add", "-A"]);
    succeeds(&repository, "tenure setup git");
    succeeds(&repository, &format!("{pre_commit} install"));
    succeeds(&repository, "tenure setup git --check");
    both_run(&repository);
    succeeds(&repository, &format!("{pre_commit} uninstall"));
    repository.hold(&["path:a"]);
    repository.write("a", "last\n");
    is_refused(&shell(&repository, "git commit -q -a -m change"), &["a"]);
}

#[test]
fn pre_commit_takes_the_guard_from_this_repository() {
    let repository = repository();
    let pre_commit = needs("venv/bin/pre-commit");
    // A repository that offers what this one offers.
    let offered = repository.place.path("offered");
    fs::create_dir(&offered).expect("a folder");
    fs::copy(root().join(".pre-commit-hooks.yaml"), offered.join(".pre-commit-hooks.yaml"))
        .expect("what is offered");
    repository.git_in(&offered, &["init", "-q"]);
    repository.git_in(&offered, &["add", "-A"]);
    repository.git_in(&offered, &["commit", "-q", "-m", "offered"]);
    let revision = repository.git_in(&offered, &["rev-parse", "HEAD"]);
    let settings = format!(
        "{PRE_COMMIT_SETTINGS}- repo: {}\n  rev: {}\n  hooks:\n  - id: tenure-guard\n  - id: \
         tenure-guard-push\n",
        offered.display(),
        revision.trim(),
    );
    repository.write(".pre-commit-config.yaml", &settings);
    repository.git(&["add", "-A"]);
    succeeds(&repository, &format!("{pre_commit} install -t pre-commit -t pre-push"));
    both_run(&repository);
    repository.git(&["init", "-q", "--bare", "../remote.git"]);
    repository.git(&["push", "-q", "../remote.git", "HEAD~1:refs/heads/main"]);
    repository.git(&["remote", "add", "origin", "../remote.git"]);
    repository.git(&["fetch", "-q", "origin"]);
    repository.hold(&["path:a"]);
    let ended = succeeds(&repository, "git push origin main");
    assert!(ended.text().contains("a: held by holder"), "{ended:?}");
    // Where tenure is not installed, nothing is said.
    repository.write("a", "without\n");
    let ended = repository.try_git(&["commit", "-q", "-a", "-m", "change"]);
    assert!(ended.code == 0 && !ended.text().contains("tenure:"), "{ended:?}");
}
