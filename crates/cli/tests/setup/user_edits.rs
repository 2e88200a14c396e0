//! What users change after setting up stays when it is removed.

use crate::project::{HOSTS, fixtures, read, repository, tree, write};
use crate::snapshot_support::Sandbox;

fn edit(sandbox: &Sandbox, name: &str, from: &str, to: &str) {
    let text = read(sandbox, name);
    assert!(text.contains(from), "{name} has no {from:?}: {text}");
    write(sandbox, name, text.replacen(from, to, 1));
}

/// The same edits before setting up and after it lead to the same files.
#[test]
fn edits_elsewhere_in_the_files_stay() {
    let edits = [
        (
            "claude-code",
            ".claude/settings.json",
            "\"includeCoAuthoredBy\": false",
            "\"model\": \"opus\"",
        ),
        ("claude-code", ".claude/settings.json", "notify-send", "say"),
        ("claude-code", ".mcp.json", "postgresql://localhost/app", "postgresql://db/app"),
        ("claude-code", "CLAUDE.md", "Two spaces", "Four spaces"),
        ("codex", ".codex/config.toml", "gpt-5-mini", "gpt-6"),
        ("codex", ".codex/hooks.json", "\"timeout\": 30", "\"timeout\": 31"),
        ("cursor", ".cursor/hooks.json", "./hooks/format.sh", "./hooks/other.sh"),
        ("gemini", ".gemini/settings.json", "// \"AfterTool\": [],", "\"AfterTool\": [],"),
        ("opencode", "opencode.jsonc", "// end of mcp", "// the end"),
    ];
    for (host, name, from, to) in edits {
        let sandbox = repository();
        for (name, text) in fixtures(host) {
            write(&sandbox, name, text);
        }
        let plain = tree(&sandbox);
        edit(&sandbox, name, from, to);
        let edited = tree(&sandbox);
        for (name, bytes) in &plain {
            if bytes != b"folder" {
                std::fs::write(sandbox.path(name.to_str().unwrap()), bytes).unwrap();
            }
        }
        sandbox.quietly(&format!("tenure setup {host}"));
        edit(&sandbox, name, from, to);
        sandbox.quietly(&format!("tenure setup {host} --check"));
        sandbox.quietly(&format!("tenure setup {host} --remove"));
        assert!(tree(&sandbox) == edited, "{host}: {name}: {}", read(&sandbox, name));
    }
}

/// A file that setup created stays if its user wrote something into it.
#[test]
fn what_was_added_to_created_files_stays() {
    let sandbox = repository();
    sandbox.quietly(&format!("tenure setup {}", HOSTS.join(" ")));
    edit(
        &sandbox,
        ".mcp.json",
        "\"tenure\": {",
        "\"mine\": { \"command\": \"m\" },\n    \"tenure\": {",
    );
    edit(
        &sandbox,
        ".claude/settings.json",
        "{\n  \"hooks\"",
        "{\n  \"model\": \"opus\",\n  \"hooks\"",
    );
    edit(&sandbox, ".cursor/hooks.json", "\"version\": 1", "\"version\": 1, \"mine\": true");
    write(&sandbox, "AGENTS.md", format!("# Mine\n\n{}", read(&sandbox, "AGENTS.md")));
    let toml = read(&sandbox, ".codex/config.toml");
    write(&sandbox, ".codex/config.toml", format!("{toml}\n[mcp_servers.mine]\ncommand = \"m\"\n"));
    write(&sandbox, ".opencode/plugins/mine.js", "export const Mine = async () => ({})\n");
    sandbox.quietly("tenure setup --remove");
    let files: Vec<String> = tree(&sandbox)
        .iter()
        .filter(|(_, bytes)| *bytes != b"folder")
        .map(|(name, bytes)| format!("--- {}\n{}", name.display(), String::from_utf8_lossy(bytes)))
        .collect();
    insta::assert_snapshot!(files.join("\n"));
}

/// An entry of tenure that its user changed is removed by its command, and that is said.
#[test]
fn changed_entries_of_tenure_are_removed_and_named() {
    let sandbox = repository();
    for (name, text) in fixtures("claude-code") {
        write(&sandbox, name, text);
    }
    let before = tree(&sandbox);
    sandbox.quietly("tenure setup claude-code");
    edit(&sandbox, ".claude/settings.json", "Edit|Write|MultiEdit", "Edit");
    edit(&sandbox, ".mcp.json", "[\"mcp\"]", "[\"mcp\", \"-v\"]");
    edit(&sandbox, "CLAUDE.md", "Never change the file in another way.", "Good.");
    let check = sandbox.see("tenure setup claude-code --check");
    let removed = sandbox.see("tenure setup claude-code --remove");
    assert!(tree(&sandbox) == before);
    insta::assert_snapshot!(format!("{check}\n{removed}"));
}
