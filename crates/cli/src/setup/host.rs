//! A host of agents as a target of `tenure setup`: the files that it reads.

use super::hook_entries::{HookEntries, command};
use super::instructions;
use super::mcp_entry::McpFormat;
use super::plan::{Malformed, Plan};
use super::project::{Project, Signs};
use super::target::{Removal, Target};
use super::trial::Trial;
use crate::failure::Failure;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A program that runs agents.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its name on the command line.
    pub(crate) word: &'static str,
    pub(crate) signs: Signs,
    pub(crate) hooks: HookFile,
    /// The files in which MCP servers may be named: the first that exists is used, else the first.
    pub(crate) mcp_files: &'static [&'static str],
    pub(crate) mcp: McpFormat,
    /// The file of instructions that its agents read.
    pub(crate) instructions: fn(&Project) -> PathBuf,
    /// Folders that setup may create, innermost first.
    pub(crate) folders: &'static [&'static str],
    /// The event of an edit: the folder in which it happens, and the file.
    pub(crate) edit_event: fn(&Path, &Path) -> Value,
    /// Whether an answer refuses.
    pub(crate) is_refusal: fn(&Value) -> bool,
    /// Why it will not run a project's hooks, as its own files say.
    pub(crate) untrusted: fn(&Project) -> Option<String>,
    /// What its user must do once by hand.
    pub(crate) advice: Option<&'static str>,
}

/// How a host is told of hooks.
#[derive(Debug)]
pub(crate) enum HookFile {
    /// Entries of a JSON file.
    Entries { file: &'static str, entries: HookEntries },
    /// A program file that the host loads. Its first line says that it is tenure's.
    Plugin { file: &'static str, text: fn() -> String },
}

/// The names of parts, for users.
pub(super) const HOOKS: &str = "hooks";
const MCP: &str = "MCP server";
const INSTRUCTIONS: &str = "instructions";

impl Host {
    pub(crate) fn hook_file(&self, project: &Project) -> PathBuf {
        project.root.join(match self.hooks {
            HookFile::Entries { file, .. } | HookFile::Plugin { file, .. } => file,
        })
    }

    fn mcp_file(&self, project: &Project) -> PathBuf {
        let files = self.mcp_files.iter().map(|name| project.root.join(name));
        let existing = files.clone().find(|file| file.exists());
        existing.or_else(|| files.clone().next()).unwrap_or_default()
    }

    fn removed_hooks(&self, text: &str) -> Result<Option<String>, Malformed> {
        match &self.hooks {
            HookFile::Entries { entries, .. } => entries.without(text),
            HookFile::Plugin { .. } => Ok((!is_plugin(text)).then(|| text.to_owned())),
        }
    }

    /// Whether the user changed tenure's hooks since they were written.
    fn has_edited_hooks(&self, text: &str) -> bool {
        match &self.hooks {
            HookFile::Entries { entries, .. } => super::json::value(text)
                .is_ok_and(|value| entries.is_present(&value) && !entries.is_complete(&value)),
            HookFile::Plugin { text: plugin, .. } => is_plugin(text) && text != plugin(),
        }
    }
}

/// How a plugin file of tenure begins, of whatever version.
const PLUGIN_MARK: &str = "// Written by `tenure setup";

fn is_plugin(text: &str) -> bool {
    text.starts_with(PLUGIN_MARK)
}

impl Target for Host {
    fn word(&self) -> &'static str {
        self.word
    }

    fn found(&self, project: &Project) -> Option<String> {
        project.found(&self.signs)
    }

    fn add(&self, project: &Project, plan: &mut Plan) -> Result<(), Failure> {
        let word = self.word;
        plan.edit(word, HOOKS, &self.hook_file(project), |text| match &self.hooks {
            HookFile::Entries { entries, .. } => entries.with(text).map(Some),
            HookFile::Plugin { text: plugin, .. } => match text {
                Some(text) if !is_plugin(text) => {
                    Err(Malformed::at(text, 0, "this file was not written by tenure"))
                }
                _ => Ok(Some(plugin())),
            },
        })?;
        let mcp = self.mcp;
        plan.edit(word, MCP, &self.mcp_file(project), |text| mcp.with(text).map(Some))?;
        let file = (self.instructions)(project);
        plan.edit(word, INSTRUCTIONS, &file, |text| instructions::with(text).map(Some))
    }

    fn remove(&self, removal: &Removal<'_>, plan: &mut Plan) -> Result<(), Failure> {
        let (word, project) = (self.word, removal.project);
        let (hook_file, mcp_file) = (self.hook_file(project), self.mcp_file(project));
        let mut edited = Vec::new();
        // In the reverse order of adding: both may be in one file.
        let mcp = self.mcp;
        plan.edit(word, MCP, &mcp_file, |text| {
            let Some(text) = text else { return Ok(None) };
            if mcp.is_edited(text) {
                edited.push((MCP, &mcp_file));
            }
            mcp.without(text)
        })?;
        plan.edit(word, HOOKS, &hook_file, |text| {
            let Some(text) = text else { return Ok(None) };
            if self.has_edited_hooks(text) {
                edited.push((HOOKS, &hook_file));
            }
            self.removed_hooks(text)
        })?;
        let file = (self.instructions)(project);
        if !removal.is_needed(&file) {
            plan.edit(word, INSTRUCTIONS, &file, |text| {
                let Some(text) = text else { return Ok(None) };
                if instructions::is_edited(text) {
                    edited.push((INSTRUCTIONS, &file));
                }
                instructions::without(text)
            })?;
        }
        for (what, file) in edited {
            plan.notes.push(format!(
                "{}: tenure's part of it ({what}) was changed since it was written, or is of an \
                 older version; it is removed all the same",
                project.shown(file)
            ));
        }
        Ok(())
    }

    fn used(&self, project: &Project) -> Option<String> {
        project.used(&self.signs)
    }

    fn is_set_up(&self, project: &Project) -> bool {
        let Ok(text) = std::fs::read_to_string(self.hook_file(project)) else { return false };
        match &self.hooks {
            HookFile::Entries { entries, .. } => {
                super::json::value(&text).is_ok_and(|value| entries.is_present(&value))
            }
            HookFile::Plugin { .. } => is_plugin(&text),
        }
    }

    fn instructions(&self, project: &Project) -> Option<PathBuf> {
        Some((self.instructions)(project))
    }

    fn folders(&self) -> &'static [&'static str] {
        self.folders
    }

    fn trial(&self, project: &Project) -> Option<Trial> {
        let text = std::fs::read_to_string(self.hook_file(project)).ok()?;
        let command = match &self.hooks {
            HookFile::Entries { entries, .. } => {
                let value = super::json::value(&text).ok()?;
                entries.is_complete(&value).then(|| command(self.word))?
            }
            HookFile::Plugin { text: plugin, .. } => {
                (text == plugin()).then(|| command(self.word))?
            }
        };
        Some(Trial { command, edit_event: self.edit_event, is_refusal: self.is_refusal })
    }

    fn untrusted(&self, project: &Project) -> Option<String> {
        (self.untrusted)(project)
    }

    fn advice(&self) -> Option<&'static str> {
        self.advice
    }
}
