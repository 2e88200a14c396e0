//! The `git` program, for handing work over from one worker to the next.
//!
//! In reading order: `program.rs` runs git, [`Repository`] knows its worktrees, `changes.rs` finds what
//! differs in one, [`Repository::rescue`] keeps it as a commit, [`RescuedWork`] is such a commit later
//! on, and [`Worktrees`] makes and removes worktrees of workers.
//!
//! These functions wait for processes: call them where waiting is allowed.

mod changes;
mod program;
mod reference;
mod repository;
mod rescue;
mod rescued;
mod worktrees;

pub use program::GitError;
pub use repository::{NoWorktree, Repository};
pub use rescue::{Rescue, RescueRequest, Rescued};
pub use rescued::{Applied, RescuedWork};
pub use worktrees::{WorkerTree, Worktrees};
