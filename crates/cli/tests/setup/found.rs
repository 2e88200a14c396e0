//! Without names, what is used here is set up.

use crate::project::{repository, tree, write};
use insta::assert_snapshot;

/// The search path has nothing but the binary under test: programs of this machine do not count.
const ALONE: &str = "env PATH=$(dirname $(command -v tenure))";

#[test]
fn by_files_of_the_project() {
    let sandbox = repository();
    write(&sandbox, "CLAUDE.md", "# Rules\n");
    write(&sandbox, ".cursor/rules/a.mdc", "a rule\n");
    write(&sandbox, "opencode.jsonc", "{}\n");
    assert_snapshot!(sandbox.see_all(&[
        &format!("{ALONE} tenure setup"),
        &format!("{ALONE} tenure setup"),
        &format!("{ALONE} tenure setup --check --json"),
    ]));
}

#[test]
fn by_the_host_that_runs_the_command() {
    let sandbox = repository();
    let seen = sandbox.see(&format!("GEMINI_CLI=1 {ALONE} tenure setup"));
    assert!(sandbox.path(".gemini/settings.json").exists(), "{seen}");
    assert_snapshot!(seen);
}

#[test]
fn by_installed_programs() {
    let sandbox = repository();
    write(&sandbox, "../bin/codex", "#!/bin/sh\n");
    sandbox.quietly("chmod +x ../bin/codex");
    let path = "env PATH=$PWD/../bin:$(dirname $(command -v tenure))";
    sandbox.quietly(&format!("{path} tenure setup"));
    assert!(sandbox.path(".codex/hooks.json").exists());
}

#[test]
fn nothing() {
    let sandbox = crate::snapshot_support::Sandbox::bare();
    let before = tree(&sandbox);
    assert_snapshot!(sandbox.see_all(&[
        &format!("{ALONE} tenure setup"),
        &format!("{ALONE} tenure setup --check"),
        &format!("{ALONE} tenure setup --remove"),
        "tenure setup emacs",
    ]));
    assert!(tree(&sandbox) == before);
}

/// In a linked worktree the files of that worktree are written; from a subfolder those of the root.
#[test]
fn in_a_subfolder_and_in_a_worktree() {
    let sandbox = repository();
    sandbox.quietly("mkdir -p src/deep && tenure -C src/deep setup claude-code");
    assert!(sandbox.path(".claude/settings.json").exists());
    let commit = "-c user.name=a -c user.email=a@b commit -q --allow-empty -m first";
    sandbox.quietly(&format!("git {commit} && git worktree add -q ../linked"));
    sandbox.quietly("cd ../linked && tenure setup codex");
    assert!(sandbox.path("../linked/.codex/hooks.json").exists());
    assert!(!sandbox.path(".codex").exists());
}
