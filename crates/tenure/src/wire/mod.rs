//! What clients and servers of tenure say to each other, under `/v1/store`.
//!
//! Each request is a POST of JSON. An act goes to [`ACT`] and its verb, with [`REQUEST`] naming it,
//! so that it can be sent again when no answer came; all other requests change nothing that a
//! repetition would change again. Acts and renewals have a [`DEADLINE`], so that none is
//! carried out after its sender gave it up. A refusal is a problem whose `details` may have the store's error
//! under [`STORE_ERROR`].

#[cfg(test)]
mod tests;

use crate::deadline::ServerTime;
use crate::store::{Renewal, Renewed, RequestId, Signal};
use serde::{Deserialize, Serialize};
use tenure_core::{HoldSnapshot, Proof, RecordKind, Resource};

/// Where acts are sent; the verb follows.
pub const ACT: &str = "/v1/store/act/";
/// Where [`Renew`] is sent.
pub const RENEW: &str = "/v1/store/renew";
/// Where [`RenewCovered`] is sent.
pub const RENEW_COVERED: &str = "/v1/store/renew-covered";
/// Where a [`Query`](crate::store::Query) is sent.
pub const QUERY: &str = "/v1/store/query";
/// Where a [`Wait`] is sent.
pub const WAIT: &str = "/v1/store/wait";
/// Where a [`Maintenance`](crate::store::Maintenance) is sent.
pub const MAINTAIN: &str = "/v1/store/maintain";

/// Where a client asks what the server's clock shows: the answer is in its header [`CLOCK`].
pub const TIME: &str = "/v1/store/time";

/// Where [`Collect`] is sent.
pub const COLLECT: &str = "/v1/store/collect";

/// The header with the version of this protocol that the client speaks.
pub const PROTOCOL: &str = "tenure-protocol";

/// The version of this protocol. Clients and servers of different versions refuse each other.
pub const PROTOCOL_VERSION: &str = "1";

/// The header that names a request that may be sent again: a slot, a stroke and a number.
pub const REQUEST: &str = "tenure-request";

/// The header of a request that was sent before, with the same name, and got no answer.
pub const AGAIN: &str = "tenure-again";

/// The header of each answer with the server's clock and what it shows: see
/// [`server_support::deadline`](crate::server_support::deadline).
pub const CLOCK: &str = "tenure-clock";

/// The header with the deadline of a request, by each clock that the client knows.
pub const DEADLINE: &str = "tenure-deadline";

/// The code of a refusal because a request has no deadline by the server's clock. Nothing was done; the
/// answer has the clock.
pub const CLOCK_UNKNOWN: &str = "CLOCK_UNKNOWN";

/// The header with the label that the caller chose: it is shown its own grants.
pub const LABEL: &str = "tenure-label";

/// The field of a problem's details that has the store's error.
pub const STORE_ERROR: &str = "store_error";

/// How long a server lets a caller wait in one request.
pub const PATIENCE_MAX_MS: u64 = 60_000;

/// How many tasks or events a server lists in one answer; further queries get the rest.
pub const PAGE: u32 = 1000;

/// How many small records a server lists in one answer: outputs are long.
pub fn records_at_once(kind: RecordKind) -> u32 {
    match kind {
        RecordKind::Output => 32,
        RecordKind::Worker => PAGE,
    }
}

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

/// A wait for a signal.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Wait {
    /// What for.
    pub signal: Signal,
    /// How long.
    pub patience_ms: u64,
}

/// Asks the server to remove history beyond what it keeps, or to count that.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Collect {
    /// Whether it is only counted.
    pub dry_run: bool,
}

/// Deadlines as they stand in the header [`DEADLINE`].
pub fn deadlines_to_text(deadlines: &[ServerTime]) -> String {
    deadlines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Deadlines from the header; what is none is left out.
pub fn deadlines_from_text(text: &str) -> Vec<ServerTime> {
    text.split(',').filter_map(|text| text.parse().ok()).collect()
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
