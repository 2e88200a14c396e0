//! Whether a host will run a project's hooks: some ask their user first, and keep the answer in files of
//! their own. Says nothing where the host has no folder in the user's home: then it was never used here.

use super::json;
use super::project::Project;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why Codex will not run this project's hooks.
pub(super) fn codex(project: &Project) -> Option<String> {
    let hooks_file = project.root.join(".codex/hooks.json");
    let folder = variable("CODEX_HOME").or_else(|| Some(home()?.join(".codex")))?;
    if !folder.is_dir() {
        return None;
    }
    // Without the file Codex trusts nothing yet. What else cannot be read says nothing.
    let text = match std::fs::read_to_string(folder.join("config.toml")) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.ok()?,
    };
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
    let folder = home()?.join(".gemini");
    if !folder.is_dir() || is_trust_disabled(&folder.join("settings.json")) {
        return None;
    }
    let folders = match std::fs::read_to_string(folder.join("trustedFolders.json")) {
        Err(error) if error.kind() == ErrorKind::NotFound => Map::new(),
        read => serde_json::from_str(&read.ok()?).ok()?,
    };
    (!is_trusted_among(&folders, &project.root)).then(|| {
        "Gemini CLI will not run its hooks: it does not trust this folder; start gemini here and \
         trust it"
            .to_owned()
    })
}

/// Whether the user's settings of Gemini CLI say that every folder is trusted. It asks unless they do.
fn is_trust_disabled(settings: &Path) -> bool {
    let text = std::fs::read_to_string(settings).unwrap_or_default();
    let settings = json::value(&text).unwrap_or_default();
    settings["security"]["folderTrust"]["enabled"] == false
}

/// Whether this folder is trusted by what the user said of it and of those around it: of several that
/// apply, Gemini CLI goes by the longest, so that a folder within a trusted one may be excluded.
fn is_trusted_among(folders: &Map<String, Value>, root: &Path) -> bool {
    let applies = |(folder, level): &(&String, &Value)| {
        let folder = Path::new(folder);
        let meant = match level.as_str() {
            Some("TRUST_PARENT") => folder.parent(),
            Some("TRUST_FOLDER" | "DO_NOT_TRUST") => Some(folder),
            _ => None,
        };
        let meant = meant.map(|meant| meant.canonicalize().unwrap_or_else(|_| meant.to_owned()));
        meant.is_some_and(|meant| root.starts_with(meant))
    };
    let nearest = folders.iter().filter(applies).max_by_key(|(folder, _)| folder.len());
    nearest.is_some_and(|(_, level)| level != "DO_NOT_TRUST")
}

fn home() -> Option<PathBuf> {
    variable("HOME")
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
