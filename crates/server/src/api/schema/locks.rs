//! Answers about holds and waiters.

use super::{Counts, Hold, Lock, Waiter};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything that is held.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Locks {
    /// The holds; those that no longer count are among them.
    pub locks: Vec<Lock>,
    /// How many there are in all, whatever was asked for.
    pub counts: Counts,
    /// The newest change that this shows.
    pub revision: u64,
}

/// Who holds and who waits for a resource, and for what overlaps it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Shown {
    /// What was looked at.
    pub resource: String,
    /// Whether it is free.
    pub free: bool,
    /// Who holds.
    pub holds: Vec<Hold>,
    /// Who waits, in order.
    pub waiters: Vec<Waiter>,
}

/// What was obtained.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Acquired {
    /// Proves ownership: keep it to yourself.
    #[schema(format = "uuid")]
    pub grant: String,
    /// The fencing token, to be checked by the system that holds the real data.
    pub token: u64,
    /// Under which label.
    pub holder: String,
    /// What is held.
    pub resources: Vec<String>,
    /// `exclusive`, `shared` or `slot:N`.
    pub mode: String,
    /// With `slot:N`: which slot of each resource, from 0. No other holder has the same.
    pub slots: Vec<u32>,
    /// Since when.
    pub acquired_at: String,
    /// When it lapses unless renewed.
    pub expires_at: String,
    /// How long it lasts from each renewal.
    pub ttl_ms: u64,
    /// `acquired_new`, `already_owned`, `claimed_expired` or `claimed_dead`.
    pub reason: String,
    /// How long it was waited for.
    pub waited_ms: u64,
    /// Whose holds ended for it.
    pub took_over: Vec<TookOver>,
}

/// A hold that no longer counted and ended.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TookOver {
    /// What was held.
    pub resource: String,
    /// The label of its holder.
    pub holder: String,
    /// Under which token.
    pub token: u64,
    /// Why it no longer counted, for people.
    pub reason: String,
}

/// Leases that started anew.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Renewed {
    /// Each of them.
    pub renewed: Vec<RenewedLease>,
}

/// A lease that started anew.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RenewedLease {
    /// What is held.
    pub resource: String,
    /// Under which token.
    pub token: u64,
    /// How long from now.
    pub ttl_ms: u64,
}

/// What was given back.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Released {
    /// The resources.
    pub released: Vec<String>,
}

/// A hold that was ended by an operator.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Broken {
    /// The hold as it was.
    pub broken: Hold,
    /// Why.
    pub reason: String,
    /// Who did it, as the audit log says.
    pub by: String,
}

/// The token holds the resource.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Verified {
    /// Which resource.
    pub resource: String,
    /// Which token.
    pub token: u64,
    /// Always true: otherwise the answer is a problem.
    pub valid: bool,
}

/// The resource is free.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Free {
    /// Which resource.
    pub resource: String,
    /// Always true: otherwise the answer is a problem.
    pub free: bool,
}

/// What was removed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Cleaned {
    /// Holds that had lapsed or whose holder was dead.
    pub removed: Vec<Hold>,
    /// How many things that crashed processes had left beside the records.
    pub leftovers: u64,
}
