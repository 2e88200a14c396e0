//! `tenure doctor` on what setup wrote: it tries the hooks, and says nothing of hosts that are not
//! used.

use crate::project::{HOSTS, read, repository, tree, write};
use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

/// The lines about agents; the others are shown elsewhere.
fn doctor(sandbox: &Sandbox, prefix: &str) -> String {
    let about = HOSTS.join("|");
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let seen = sandbox.see(&format!(
        "{prefix} tenure doctor > ../seen; echo $?; grep -E '{about}|command|identity' ../seen || true"
    ));
    seen.replace(&programs.display().to_string(), "[PROGRAMS]")
}

#[test]
fn hooks_that_refuse() {
    let sandbox = repository();
    sandbox.quietly(&format!("tenure setup {}", HOSTS.join(" ")));
    let before = tree(&sandbox);
    let seen = doctor(&sandbox, "");
    assert_eq!(seen.matches("refused the edit of a file").count(), HOSTS.len(), "{seen}");
    assert_snapshot!(seen);
    // The trial happened elsewhere: nothing is held in the project's own store.
    let after = tree(&sandbox);
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
    assert_eq!(sandbox.data("tenure locks --json")["counts"]["held"], 0);
}

#[test]
fn hooks_that_are_missing_outdated_or_not_found() {
    let sandbox = repository();
    let none = doctor(&sandbox, "");
    write(&sandbox, "GEMINI.md", "# Rules\n");
    let used = doctor(&sandbox, "");
    sandbox.quietly("tenure setup claude-code cursor");
    let settings = read(&sandbox, ".claude/settings.json");
    write(&sandbox, ".claude/settings.json", settings.replace("|MultiEdit", ""));
    let outdated = doctor(&sandbox, "");
    // The command of a stranger's file is not run, although it is recognised as a hook of tenure.
    let hooks = read(&sandbox, ".cursor/hooks.json");
    write(
        &sandbox,
        ".cursor/hooks.json",
        hooks.replace("exec tenure", "touch ../run; exec tenure"),
    );
    let foreign = doctor(&sandbox, "");
    assert!(!sandbox.path("../run").exists());
    assert_snapshot!(format!("{none}\n{used}\n{outdated}\n{foreign}"));
}

#[test]
fn a_hook_whose_program_is_gone_or_does_not_refuse() {
    let sandbox = repository();
    sandbox.quietly("tenure setup codex");
    let own = "T=$(command -v tenure); PATH=/usr/bin:/bin; tenure() { \"$T\" \"$@\"; };";
    let gone = doctor(&sandbox, own);
    write(&sandbox, "../bin/tenure", "#!/bin/sh\ncat >/dev/null; echo '{}'\n");
    sandbox.quietly("chmod +x ../bin/tenure");
    let allowing = doctor(&sandbox, &own.replace("PATH=", "PATH=$PWD/../bin:"));
    assert_snapshot!(format!("{gone}\n{allowing}"));
}
