//! Whether a host will run a project's hooks: some ask their user first, and keep the answer in files of
//! their own. Says nothing where there is no such file: then the host was never used here.

use super::project::Project;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Why Codex will not run this project's hooks.
pub(super) fn codex(project: &Project) -> Option<String> {
    let hooks_file = project.root.join(".codex/hooks.json");
    let folder = variable("CODEX_HOME").or_else(|| Some(home()?.join(".codex")))?;
    let text = std::fs::read_to_string(folder.join("config.toml")).ok()?;
    let config = text.parse::<toml_edit::Document<String>>().ok()?;
    let table = |name: &str| config.get(name).and_then(|item| item.as_table_like());
    let entry = table("projects").and_then(|projects| projects.get(project.root.to_str()?));
    let level = entry.and_then(|entry| entry.get("trust_level")).and_then(|level| level.as_str());
    if level != Some("trusted") {
        return Some(
            "Codex will not run its hooks: it does not trust this project; start codex \
                     here and trust it"
                .to_owned(),
        );
    }
    let before_tools = format!("{}:pre_tool_use:", hooks_file.display());
    let state = table("hooks").and_then(|hooks| hooks.get("state")?.as_table_like());
    let is_accepted = state.is_some_and(|state| {
        let mut entries = state.iter();
        entries.any(|(key, entry)| {
            key.starts_with(&before_tools) && entry.get("trusted_hash").is_some()
        })
    });
    (!is_accepted).then(|| {
        "Codex will not run its hooks: you have not accepted them; start codex here and accept them \
         in /hooks"
            .to_owned()
    })
}

/// Why Gemini CLI will not run this project's hooks.
pub(super) fn gemini(project: &Project) -> Option<String> {
    let text = std::fs::read_to_string(home()?.join(".gemini/trustedFolders.json")).ok()?;
    let folders: Value = serde_json::from_str(&text).ok()?;
    let is_trusted = folders.as_object()?.iter().any(|(folder, level)| {
        let folder = Path::new(folder);
        match level.as_str() {
            Some("TRUST_FOLDER") => project.root.starts_with(folder),
            Some("TRUST_PARENT") => folder.parent().is_some_and(|it| project.root.starts_with(it)),
            _ => false,
        }
    });
    (!is_trusted).then(|| {
        "Gemini CLI will not run its hooks: it does not trust this folder; start gemini here and \
         trust it"
            .to_owned()
    })
}

fn home() -> Option<PathBuf> {
    variable("HOME")
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
