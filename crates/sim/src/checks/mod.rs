//! Checks what the simulated programs observe against what they were promised.
//!
//! Nothing here asks the store or the rules: a checker is told what a program asked, what it was
//! answered and what it trusts, and has its own idea of what excludes what. Only the last check reads
//! the store, through a client: whether its tasks and events agree with what was observed.

mod events;
mod exclusion;
mod notes;
mod observer;
mod queue;
mod tasks;

pub use events::FinalState;
pub use exclusion::{HandHeld, Held, Registered, Trusted, Use};
pub use observer::Observer;
pub use queue::Waiter;

/// Names of the checkers, as reports show them.
pub mod names {
    /// Holders that trust their lease at the same time exclude each other.
    pub const EXCLUSION: &str = "exclusion";
    /// What is handed out as held can be trusted then, and nothing is started under a lease that is over.
    pub const LOOK: &str = "look";
    /// Tokens rise, and none is given twice.
    pub const TOKENS: &str = "tokens";
    /// The token of a holder that trusts its lease is accepted by what it guards.
    pub const FENCE: &str = "fence";
    /// A stale token is not called valid.
    pub const VERIFY: &str = "verify";
    /// The store does not call a hold alive that another one replaced.
    pub const CONFIRM: &str = "confirm";
    /// No simulated process and no store panics.
    pub const PANIC: &str = "panic";
    /// Requests that stay are served in the order in which they came.
    pub const ORDER: &str = "order";
    /// In calm times what is given back is handed on within a second.
    pub const HAND_OFF: &str = "hand-off";
    /// A task is claimed, finished and completed once.
    pub const FINISH: &str = "finish";
    /// A task is claimed after what it depends on.
    pub const DEPENDENCIES: &str = "dependencies";
    /// What was acknowledged is there, once.
    pub const ACKNOWLEDGED: &str = "acknowledged";
    /// Events tell what happened.
    pub const EVENTS: &str = "events";
    /// After the faults every request is served and every task ends.
    pub const LIVENESS: &str = "liveness";
}
