//! Files that cannot be edited: one sentence, and nothing is written.

use crate::project::{read, repository, tree, write};
use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Runs a line that must fail, and shows that it changed nothing.
fn refused(sandbox: &Sandbox, line: &str) -> String {
    let before = tree(sandbox);
    let seen = sandbox.see(line);
    assert!(!seen.ends_with("exit: 0\n"), "{seen}");
    assert!(tree(sandbox) == before, "something was written: {seen}");
    seen
}

#[test]
fn malformed_files() {
    let cases = [
        (".claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n"),
        (".claude/settings.json", "{ \"hooks\": [] }"),
        (".claude/settings.json", "{ \"hooks\": { \"Stop\": {} } }"),
        (".claude/settings.json", ""),
        (".claude/settings.json", "[1, 2]\n"),
        (".mcp.json", "{ \"mcpServers\": { \"tenure\": { \"command\": \"another\" } } }"),
        ("CLAUDE.md", "# Mine\n\n<!-- tenure:begin -->\nno end\n"),
        (".codex/config.toml", "model = \"x\"\nbroken = = 1\n"),
        (".codex/config.toml", "mcp_servers = { a = { command = \"a\" } }\n"),
        ("AGENTS.md", "caf\u{e9}"),
    ];
    let mut seen = Vec::new();
    for (name, text) in cases {
        let sandbox = repository();
        match name {
            // Latin-1, as an old editor writes it.
            "AGENTS.md" => write(
                &sandbox,
                name,
                text.replace('\u{e9}', "")
                    .as_bytes()
                    .iter()
                    .copied()
                    .chain([0xe9, b'\n'])
                    .collect::<Vec<u8>>(),
            ),
            _ => write(&sandbox, name, text),
        }
        seen.push(refused(&sandbox, "tenure setup claude-code codex"));
    }
    assert_snapshot!(seen.join("\n"));
}

#[test]
fn links() {
    let sandbox = repository();
    write(&sandbox, "../outside.md", "# Not in the project\n");
    symlink("../outside.md", sandbox.path("CLAUDE.md")).unwrap();
    let out = refused(&sandbox, "tenure setup claude-code");
    assert_eq!(read(&sandbox, "../outside.md"), "# Not in the project\n");

    let sandbox = repository();
    write(&sandbox, "../elsewhere/settings.json", "{}");
    symlink("../elsewhere", sandbox.path(".claude")).unwrap();
    let folder = refused(&sandbox, "tenure setup claude-code");

    let sandbox = repository();
    symlink("nowhere.md", sandbox.path("CLAUDE.md")).unwrap();
    let nowhere = refused_with_link(&sandbox);
    assert_snapshot!(format!("{out}\n{folder}\n{nowhere}"));
}

/// As [`refused`], for a link that has no content to compare.
fn refused_with_link(sandbox: &Sandbox) -> String {
    let seen = sandbox.see("tenure setup claude-code");
    assert!(!sandbox.path(".claude").exists() && !sandbox.path("nowhere.md").exists(), "{seen}");
    seen
}

/// A link inside the project stays a link, and the file that it leads to has the section once.
#[test]
fn a_link_inside_the_project() {
    let sandbox = repository();
    write(&sandbox, "AGENTS.md", "# Rules\n");
    symlink("AGENTS.md", sandbox.path("CLAUDE.md")).unwrap();
    sandbox.quietly("tenure setup claude-code codex");
    assert!(sandbox.path("CLAUDE.md").is_symlink());
    assert_eq!(read(&sandbox, "AGENTS.md").matches("tenure:begin").count(), 1);
    sandbox.quietly("tenure setup claude-code --remove");
    assert_eq!(read(&sandbox, "AGENTS.md").matches("tenure:begin").count(), 1);
    sandbox.quietly("tenure setup --remove");
    assert_eq!(read(&sandbox, "AGENTS.md"), "# Rules\n");
    assert!(sandbox.path("CLAUDE.md").is_symlink());
}

/// A read-only file is an intention, even where root could write it. It is the last of the files.
#[test]
fn a_read_only_file_stops_all() {
    let sandbox = repository();
    write(&sandbox, "CLAUDE.md", "# Mine\n");
    let read_only = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(sandbox.path("CLAUDE.md"), read_only).unwrap();
    assert_snapshot!(refused(&sandbox, "tenure setup claude-code"));
    sandbox.quietly("tenure setup claude-code --print");
}

#[test]
fn something_else_than_a_file() {
    let sandbox = repository();
    sandbox.quietly("mkdir CLAUDE.md");
    let folder = refused(&sandbox, "tenure setup claude-code");
    let sandbox = repository();
    write(&sandbox, ".claude", "a file\n");
    let file = refused(&sandbox, "tenure setup claude-code");
    let sandbox = repository();
    write(&sandbox, ".opencode/plugins/tenure.js", "export const Mine = 1\n");
    let plugin = refused(&sandbox, "tenure setup opencode");
    assert_snapshot!(format!("{folder}\n{file}\n{plugin}"));
}

#[test]
fn permissions_stay() {
    let sandbox = repository();
    write(&sandbox, ".mcp.json", "{}\n");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(sandbox.path(".mcp.json"), private).unwrap();
    let mode = || std::fs::metadata(sandbox.path(".mcp.json")).unwrap().permissions().mode();
    sandbox.quietly("tenure setup claude-code");
    assert_eq!(mode() & 0o777, 0o600);
    sandbox.quietly("tenure setup claude-code --remove");
    assert_eq!(mode() & 0o777, 0o600);
}
