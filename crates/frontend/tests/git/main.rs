//! Rescued work and worktrees of workers, with real repositories.

mod hand_over;
mod rescue;
mod support;
mod untouched;
mod worktrees;
