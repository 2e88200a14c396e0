//! Breaking a hold, by an operator's decision.

use crate::decision::Decision;
use crate::event::EventKind;
use crate::rules::draft::Draft;
use crate::{HoldSnapshot, Resource, Snapshot, Token, Witness};
use serde::{Deserialize, Serialize};

/// What an operator wants to end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BreakAsk {
    /// Which resource.
    pub resource: Resource,
    /// The exact hold that the operator saw. A successor has another token and is left alone.
    pub token: Token,
    /// Who decides.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// Ends the hold that was named, if it is still there. The change is made durable: an audit log
/// that forgets is none.
pub fn break_hold(
    seen: &Snapshot,
    ask: &BreakAsk,
    witness: &dyn Witness,
) -> (Decision, Option<HoldSnapshot>) {
    let target = seen
        .holds
        .iter()
        .find(|seen| seen.hold.want.resource == ask.resource && seen.hold.token == ask.token);
    let Some(target) = target else { return (Decision::Nothing, None) };
    let mut draft = Draft::new(seen, witness).looking_at(std::slice::from_ref(&target.hold.want));
    let kind = EventKind::Broken { by: ask.by.clone(), reason: ask.reason.clone() };
    draft.drop_hold(target, kind);
    draft.require_durable();
    (draft.decide(None), Some(target.redacted()))
}
