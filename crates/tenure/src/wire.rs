//! What clients and servers of tenure say to each other, under `/v1/store`.
//!
//! Each request is a POST of JSON. An act goes to [`ACT`] and its verb, with [`REQUEST`] naming it,
//! so that it can be sent again when no answer came; all other requests change nothing that a
//! repetition would change again. A refusal is a problem whose `details` may have the store's error
//! under [`STORE_ERROR`].

use crate::client::RequestId;
use crate::store::{Renewal, Renewed};
use serde::{Deserialize, Serialize};
use tenure_core::{GrantId, HoldSnapshot, Proof, Resource, Revision, Scope};

/// Where acts are sent; the verb follows.
pub const ACT: &str = "/v1/store/act/";
/// Where [`Renew`] is sent.
pub const RENEW: &str = "/v1/store/renew";
/// Where [`RenewCovered`] is sent.
pub const RENEW_COVERED: &str = "/v1/store/renew-covered";
/// Where [`Read`] is sent.
pub const READ: &str = "/v1/store/read";
/// Where [`Changed`] is sent.
pub const CHANGED: &str = "/v1/store/changed";
/// Where [`Turn`] is sent.
pub const TURN: &str = "/v1/store/turn";
/// Where [`Events`] is sent.
pub const EVENTS: &str = "/v1/store/events";
/// Where a [`TaskFilter`](crate::store::TaskFilter) is sent.
pub const TASKS: &str = "/v1/store/tasks";
/// Where it is asked how many tasks there are.
pub const TALLIES: &str = "/v1/store/tallies";
/// Where it is asked to remove what crashed processes left.
pub const TIDY: &str = "/v1/store/tidy";
/// Where it is asked to check the store.
pub const CHECK: &str = "/v1/store/check";

/// The header that names a request that may be sent again: a slot, a stroke and a number.
pub const REQUEST: &str = "tenure-request";

/// The header with the label that the caller chose: it is shown its own grants.
pub const LABEL: &str = "tenure-label";

/// The field of a problem's details that has the store's error.
pub const STORE_ERROR: &str = "store_error";

/// How long a server lets a caller wait in one request.
pub const PATIENCE_MAX_MS: u64 = 60_000;

/// How many tasks or events a server lists in one answer; whoever wants more asks again.
pub const PAGE: u32 = 1000;

/// Leases to start anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Renew {
    /// Each of them.
    pub renewals: Vec<Renewal>,
}

/// Leases to start anew that a proof covers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RenewCovered {
    /// Shows whose they are.
    pub proof: Proof,
    /// On which resources; everywhere, if none is named.
    #[serde(default)]
    pub resources: Option<Vec<Resource>>,
    /// How long; as before, if it is not said.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
}

/// What came of it, for each.
pub type RenewedCovered = Vec<(HoldSnapshot, Renewed)>;

/// What to look at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Read {
    /// Which part.
    pub scope: Scope,
}

/// A wait for a change.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// The newest change that the caller knows.
    pub since: Revision,
    /// How long to wait.
    pub patience_ms: u64,
}

/// A wait for a turn.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// Whose.
    pub grant: GrantId,
    /// How long to wait.
    pub patience_ms: u64,
}

/// Events that are wanted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Events {
    /// Only after this one.
    pub after: Revision,
    /// At most so many.
    pub limit: u32,
}

/// A request's name as it stands in the header.
pub fn request_id_to_text(once: &RequestId) -> String {
    format!("{}/{}", once.slot, once.number)
}

/// A request's name from the header; none if it is not one.
pub fn request_id_from_text(text: &str) -> Option<RequestId> {
    let (slot, number) = text.rsplit_once('/')?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    let fine = (8..=128).contains(&slot.len()) && slot.chars().all(|c| c.is_ascii_graphic());
    fine.then(|| RequestId { slot: slot.to_owned(), number })
}
