//! Holds and those who wait for them.

use serde::Deserialize;
use utoipa::ToSchema;

/// One resource held by somebody. Sections and tasks have `section_id` or `task_id` too.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Hold {
    /// What is held.
    pub resource: String,
    /// `lock`, `section`, `task` or `path`.
    pub kind: String,
    /// Its name without the kind.
    pub name: String,
    /// Who holds it.
    pub holder: String,
    /// The same.
    pub runner_id: String,
    /// Where the holder runs, where that is known.
    #[schema(required)]
    pub hostname: Option<String>,
    /// The holder's process, where that is known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// `exclusive`, `shared` or `slot of N`.
    pub mode: String,
    /// Which of the slots, from 0; none where it is not held by slots.
    #[schema(required)]
    pub slot: Option<u32>,
    /// The fencing token.
    pub token: u64,
    /// What for.
    #[schema(required)]
    pub operation: Option<String>,
    /// Since when.
    pub acquired_at: String,
    /// When it was last renewed.
    pub heartbeat_at: String,
    /// When it lapses unless renewed.
    pub expires_at: String,
    /// The same, from now.
    pub seconds_left: f64,
    /// `held`, `lapsed` or `dead`: only what is held excludes others.
    pub state: String,
    /// Whether it does not count any more.
    pub is_stale: bool,
    /// Why.
    #[schema(required)]
    pub stale_reason: Option<String>,
    /// How many wait for it.
    pub waiting: u64,
}

/// Somebody who waits.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Waiter {
    /// Its place in the queue, from 1.
    pub place: u64,
    /// Who waits.
    pub holder: String,
    /// The waiter's process, where that is known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// What for.
    #[schema(required)]
    pub operation: Option<String>,
    /// All that it waits for.
    pub resources: Vec<String>,
    /// Since when.
    pub waiting_since: String,
    /// The same, until now.
    pub waited_seconds: f64,
}

/// A hold with those who wait for it.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Lock {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// Who waits, in order.
    pub waiters: Vec<Waiter>,
}

/// How many there are; the same numbers wherever they are shown.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Counts {
    /// Holds that count.
    pub held: u64,
    /// Holds whose time ran out.
    pub lapsed: u64,
    /// Holds whose holder was proved dead.
    pub dead: u64,
    /// Requests that wait, without those whose waiter died or fell silent.
    pub waiting: u64,
    /// Workers that hold something.
    pub workers: u64,
}

/// Everything that is held.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Locks {
    /// The holds; those that no longer count are among them.
    pub locks: Vec<Lock>,
    /// How many there are in all, whatever was asked for.
    pub counts: Counts,
    /// The newest change that this shows.
    pub revision: u64,
}

/// Who holds and who waits for a resource, and for what overlaps it.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Shown {
    /// What was looked at.
    pub resource: String,
    /// Whether nobody holds it.
    pub free: bool,
    /// Who holds.
    pub holds: Vec<Hold>,
    /// Who waits, in order.
    pub waiters: Vec<Waiter>,
}

/// What was obtained.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Acquired {
    /// Proves ownership: keep it to yourself.
    #[schema(format = "uuid")]
    pub grant: String,
    /// The fencing token: for whoever guards the real data.
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
#[derive(Debug, Deserialize, ToSchema)]
pub struct TookOver {
    /// What was held.
    pub resource: String,
    /// By whom.
    pub holder: String,
    /// Under which token.
    pub token: u64,
}

/// Leases that started anew.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Renewed {
    /// Each of them.
    pub renewed: Vec<RenewedLease>,
}

/// A lease that started anew.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RenewedLease {
    /// What is held.
    pub resource: String,
    /// Under which token.
    pub token: u64,
    /// How long from now.
    pub ttl_ms: u64,
}

/// What was given back.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Released {
    /// The resources.
    pub released: Vec<String>,
}

/// A hold that was ended by an operator.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Broken {
    /// The hold as it was.
    pub broken: Hold,
    /// Why.
    pub reason: String,
    /// Who did it, as the audit log says.
    pub by: String,
}

/// The token holds the resource.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Verified {
    /// Which resource.
    pub resource: String,
    /// Which token.
    pub token: u64,
    /// Always true: otherwise the answer is a problem.
    pub valid: bool,
}

/// Nobody holds the resource.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Free {
    /// Which resource.
    pub resource: String,
    /// Always true: otherwise the answer is a problem.
    pub free: bool,
}

/// What was removed.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Cleaned {
    /// Holds that had lapsed or whose holder was dead.
    pub removed: Vec<Hold>,
    /// How many things that crashed processes had left beside the records.
    pub leftovers: u64,
}
