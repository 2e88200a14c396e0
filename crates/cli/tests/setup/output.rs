//! What is printed: text, JSON, a diff, and what is missing.

use crate::project::{fixtures, repository, tree, write};
use insta::assert_snapshot;

#[test]
fn as_text() {
    let sandbox = repository();
    for (name, text) in fixtures("claude-code") {
        write(&sandbox, name, text);
    }
    assert_snapshot!(sandbox.see_all(&[
        "tenure setup claude-code --check",
        "tenure setup claude-code",
        "tenure setup claude-code --check",
        "cat .claude/settings.json .mcp.json CLAUDE.md",
        "tenure -q setup claude-code codex",
        "tenure setup --remove",
        "tenure setup --remove",
    ]));
}

#[test]
fn as_json() {
    let sandbox = repository();
    assert_snapshot!(sandbox.see_all(&[
        "tenure setup codex --check --json",
        "tenure setup codex --json",
        "tenure setup codex --remove --json",
    ]));
}

/// Printing writes nothing, and shows the files of each host whole.
#[test]
fn as_a_diff() {
    let sandbox = repository();
    write(&sandbox, "AGENTS.md", "# Rules\n");
    let before = tree(&sandbox);
    let lines = ["codex", "cursor", "gemini", "opencode"]
        .map(|host| sandbox.see(&format!("tenure setup {host} --print")));
    assert!(tree(&sandbox) == before);
    sandbox.quietly("tenure setup cursor");
    let remove = sandbox.see("tenure setup --remove --print");
    assert!(sandbox.path(".cursor/hooks.json").exists());
    assert_snapshot!(format!("{}\n{remove}", lines.join("\n")));
}
