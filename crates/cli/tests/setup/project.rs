//! A project in a sandbox, with files as real projects have them.

use crate::snapshot_support::Sandbox;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All hosts.
pub(crate) const HOSTS: [&str; 5] = ["claude-code", "codex", "cursor", "gemini", "opencode"];

/// The files of real projects that each host reads, and where they go.
pub(crate) fn fixtures(host: &str) -> Vec<(&'static str, &'static str)> {
    match host {
        "claude-code" => vec![
            (".claude/settings.json", include_str!("fixtures/claude_settings.json")),
            (".mcp.json", include_str!("fixtures/claude_mcp.json")),
            ("CLAUDE.md", include_str!("fixtures/CLAUDE.md")),
        ],
        "codex" => vec![
            (".codex/hooks.json", include_str!("fixtures/codex_hooks.json")),
            (".codex/config.toml", include_str!("fixtures/codex_config.toml")),
            ("AGENTS.md", include_str!("fixtures/AGENTS.md")),
        ],
        "cursor" => vec![
            (".cursor/hooks.json", include_str!("fixtures/cursor_hooks.json")),
            (".cursor/mcp.json", include_str!("fixtures/cursor_mcp.json")),
            ("AGENTS.md", include_str!("fixtures/AGENTS.md")),
        ],
        "gemini" => vec![
            (".gemini/settings.json", include_str!("fixtures/gemini_settings.json")),
            ("GEMINI.md", include_str!("fixtures/AGENTS.md")),
        ],
        "opencode" => vec![
            ("opencode.jsonc", include_str!("fixtures/opencode.jsonc")),
            ("AGENTS.md", include_str!("fixtures/AGENTS.md")),
        ],
        other => panic!("no files for {other}"),
    }
}

/// A git repository without a store.
pub(crate) fn repository() -> Sandbox {
    Sandbox::repository()
}

/// Writes a file, and the folders that it needs.
pub(crate) fn write(sandbox: &Sandbox, name: &str, content: impl AsRef<[u8]>) {
    let path = sandbox.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub(crate) fn read(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.path(name)).unwrap()
}

/// Every file and folder of the project, with the bytes of files. Git's own are left out.
pub(crate) fn tree(sandbox: &Sandbox) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut tree = BTreeMap::new();
    let root = sandbox.path("");
    gather(&root, &root, &mut tree);
    tree
}

fn gather(root: &Path, folder: &Path, tree: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_owned();
        if name == Path::new(".git") {
            continue;
        }
        if path.is_dir() {
            tree.insert(name, b"folder".to_vec());
            gather(root, &path, tree);
        } else {
            tree.insert(name, std::fs::read(&path).unwrap());
        }
    }
}
