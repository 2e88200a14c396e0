//! Which of some paths are held by others. Nothing here reads or asks anything.

use crate::context::Context;
use std::path::PathBuf;
use tenure::core::{HoldSnapshot, Proof, Witness};
use tenure_frontend::view;

/// A changed file, and one hold of another owner that covers it.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    /// The file relative to the root. Bytes that are not text are replaced.
    pub(super) path: String,
    /// The hold as read.
    pub(super) seen: HoldSnapshot,
    /// The hold for JSON.
    pub(super) hold: view::Hold,
}

/// The owner that commits or pushes, and where.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// What shows that a hold is the caller's: the grants of the commands around it, its label, and
    /// the label of the agent that started it.
    pub(super) proofs: Vec<Proof>,
    /// The caller's label: its subagents commit through the same shell.
    pub(super) label: Option<String>,
    /// The name of the worktree that is committed from, in a git repository.
    pub(super) worktree: Option<String>,
}

impl Caller {
    pub(super) fn of(context: &Context, worktree: Option<String>) -> Caller {
        let grants = context.enclosing_grants().into_iter().map(Proof::Grant);
        let label = context.own_label().map(str::to_owned);
        // What an agent holds covers what its subagents do.
        let parent = context.agent().and_then(|agent| agent.parent.clone());
        let labels = label.iter().cloned().chain(parent).map(Proof::Label);
        Caller { proofs: grants.chain(labels).collect(), label, worktree }
    }

    /// Whether this hold of paths is another owner's and counts in this worktree.
    ///
    /// The mode does not matter: a commit changes its files, and readers asked that they stay.
    pub(super) fn is_hindered_by(&self, seen: &HoldSnapshot) -> bool {
        let is_own = self.proofs.iter().any(|proof| proof.recognises(seen))
            || self.label.as_deref().is_some_and(|label| is_subagents(seen, label));
        let worktree = seen.hold.want.resource.worktree();
        let is_elsewhere = worktree.is_some() && worktree != self.worktree.as_deref();
        !is_own && !is_elsewhere
    }
}

/// Whether this is a lease of a subagent of the agent with this label.
fn is_subagents(seen: &HoldSnapshot, label: &str) -> bool {
    let holder = &seen.hold.holder;
    let below = holder.label.strip_prefix(label).and_then(|rest| rest.strip_prefix('/'));
    holder.agent && below.is_some()
}

/// The paths that these holds cover, each with every hold that covers it.
pub(super) fn find(
    paths: &[PathBuf],
    others: &[&HoldSnapshot],
    witness: &dyn Witness,
) -> Vec<Conflict> {
    let globs: Vec<_> =
        others.iter().filter_map(|seen| Some((seen.hold.want.resource.glob()?, *seen))).collect();
    let mut conflicts = Vec::new();
    for path in paths {
        // No lock can name a file whose name is not text, but a glob may cover it.
        let path = path.to_string_lossy();
        for (glob, seen) in &globs {
            // Most paths differ in the first letters.
            if path.starts_with(glob.literal_prefix()) && glob.matches(&path) {
                conflicts.push(Conflict {
                    path: path.clone().into_owned(),
                    seen: (*seen).clone(),
                    hold: view::Hold::new(seen, witness, 0),
                });
            }
        }
    }
    conflicts
}
