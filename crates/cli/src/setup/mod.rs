//! Setting up hosts of agents, and git, for tenure.
//!
//! In reading order: a [`Target`] is something to set up, [`TARGETS`] is all of them. Targets
//! change files through a [`Plan`], which is written at the end. `host.rs` is the target for hosts
//! of agents, `hosts.rs` says where each keeps its files. A file has up to three parts of tenure:
//! `hook_entries.rs`, `mcp_entry.rs` and `instructions.rs`; the texts are edited by `json.rs` and
//! `section.rs`. `git_hooks` is the target for the hooks of git. For `tenure doctor`, `examine.rs` says
//! what is set up, and `trial.rs` tries whether hooks refuse.

mod examine;
mod git_hooks;
mod hook_entries;
mod host;
mod hosts;
mod instructions;
mod json;
mod mcp_entry;
mod plan;
mod project;
mod renames;
mod section;
mod target;
mod trial;

pub(crate) use examine::examine;
pub(crate) use plan::{Fate, Plan, PlannedFile};
pub(crate) use project::Project;
pub(crate) use target::{Removal, Target};

/// Everything that can be set up, in the order in which it is listed.
pub(crate) static TARGETS: [&dyn Target; 6] = [
    &hosts::CLAUDE_CODE,
    &hosts::CODEX,
    &hosts::CURSOR,
    &hosts::GEMINI,
    &hosts::OPENCODE,
    &git_hooks::GitHooks,
];

/// The target of this name.
pub(crate) fn target(word: &str) -> Option<&'static dyn Target> {
    TARGETS.into_iter().find(|target| target.word() == word)
}
