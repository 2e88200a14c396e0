//! Removing holds and places that no longer count.

use crate::decision::Decision;
use crate::event::EventKind;
use crate::rules::draft::Draft;
use crate::{HoldSnapshot, Kind, Liveness, Snapshot, WaiterSnapshot, Witness};
use serde::{Deserialize, Serialize};

/// Why a hold may be ended without its holder's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverReason {
    /// The lease's time ran out.
    Lapsed,
    /// The holder's process was proved dead.
    Died,
}

impl TakeoverReason {
    pub(super) fn event(self) -> EventKind {
        match self {
            TakeoverReason::Lapsed => EventKind::LAPSED,
            TakeoverReason::Died => EventKind::Died,
        }
    }
}

/// Why this hold no longer counts; nothing if it does. Proof of death comes first: it says more.
pub fn gone_reason(seen: &HoldSnapshot, witness: &dyn Witness) -> Option<TakeoverReason> {
    match seen.hold.holder.liveness(witness) {
        Liveness::Dead => Some(TakeoverReason::Died),
        _ if seen.lapsed() => Some(TakeoverReason::Lapsed),
        _ => None,
    }
}

/// The holds that [`reap`] would remove, with the reason of each.
pub fn gone_holds<'a>(
    seen: &'a Snapshot,
    kind: Option<Kind>,
    witness: &dyn Witness,
) -> Vec<(&'a HoldSnapshot, TakeoverReason)> {
    seen.holds
        .iter()
        .filter(|seen| kind.is_none_or(|kind| seen.hold.want.resource.kind() == kind))
        .filter_map(|seen| Some((seen, gone_reason(seen, witness)?)))
        .collect()
}

/// The places that [`reap`] would remove.
pub fn gone_waiters<'a>(seen: &'a Snapshot, witness: &dyn Witness) -> Vec<&'a WaiterSnapshot> {
    seen.waiters.iter().filter(|seen| seen.gone(witness)).collect()
}

/// Removes all holds, of one kind or of any, and all places that no longer count.
pub fn reap(
    seen: &Snapshot,
    kind: Option<Kind>,
    witness: &dyn Witness,
) -> (Decision, Vec<HoldSnapshot>) {
    let mut draft = Draft::new(seen, witness);
    let gone = gone_holds(seen, kind, witness);
    for (hold, reason) in &gone {
        draft.drop_hold(hold, reason.event());
    }
    for waiter in gone_waiters(seen, witness) {
        draft.drop_wait_if_gone(waiter);
    }
    let removed = gone.into_iter().map(|(hold, _)| hold.redacted()).collect();
    (draft.decide(None), removed)
}
