//! Setting up hosts of agents, and git, for tenure.
//!
//! In reading order: a [`Target`] is something to set up, [`TARGETS`] is all of them. Targets
//! change files through a [`Plan`], which is written at the end. `host.rs` is the target for hosts
//! of agents, `hosts.rs` says where each keeps its files. A file has up to three parts of tenure:
//! `hook_entries.rs`, `mcp_entry.rs` and `instructions.rs`; the texts are edited by `json.rs` and
//! `section.rs`. `user_hooks.rs` is the target for hooks in the user's own settings, `git_hooks` is the target for the hooks of git. For `tenure doctor`, `examine.rs` says
//! what is set up, `trial.rs` tries whether hooks refuse, and `host_trust.rs` whether the host will run
//! them.

mod examine;
mod git_hooks;
mod hook_entries;
mod host;
mod host_trust;
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
mod user_hooks;

pub(crate) use examine::examine;
pub(crate) use plan::{Fate, Plan, PlannedFile};
pub(crate) use project::Project;
pub(crate) use target::{Removal, Target};
pub(crate) use user_hooks::UserHooks;

/// Everything that can be set up, in the order in which it is listed.
pub(crate) static TARGETS: [&dyn Target; 6] = [
    &hosts::CLAUDE_CODE,
    &hosts::CODEX,
    &hosts::CURSOR,
    &hosts::GEMINI,
    &hosts::OPENCODE,
    &git_hooks::GitHooks,
];

/// What can be set up in the user's own settings: the hosts that do not find a project's from within.
pub(crate) static USER_TARGETS: [&dyn Target; 2] = [&CLAUDE_CODE_USER, &GEMINI_USER];

/// The hooks of Claude Code in its user's settings.
pub(crate) static CLAUDE_CODE_USER: UserHooks = UserHooks(&hosts::CLAUDE_CODE);

/// The hooks of Gemini CLI in its user's settings.
pub(crate) static GEMINI_USER: UserHooks = UserHooks(&hosts::GEMINI);

/// The target of this name.
pub(crate) fn target(word: &str) -> Option<&'static dyn Target> {
    TARGETS.into_iter().find(|target| target.word() == word)
}
