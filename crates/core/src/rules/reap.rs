//! Removing holds and places that no longer count.

use crate::decision::Decision;
use crate::event::EventKind;
use crate::rules::acquire::Takeover;
use crate::rules::draft::Draft;
use crate::{
    HoldSnapshot, Holder, Kind, Liveness, Snapshot, WaiterSnapshot, Witness, format_duration,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
            TakeoverReason::Died => EventKind::DIED,
        }
    }
}

impl Takeover {
    /// Why the hold ended, as text; of another program's lock that grew too old, in that program's words.
    pub fn words(&self) -> String {
        let Takeover { from, reason } = self;
        match reason {
            TakeoverReason::Died => death_words(&from.hold.holder),
            TakeoverReason::Lapsed => from.stale.clone().unwrap_or_else(|| lapse_words(ago(from))),
        }
    }
}

/// How long ago the lease of this hold ended.
fn ago(seen: &HoldSnapshot) -> Duration {
    let lasted = seen.expires_at.0.saturating_sub(seen.acquired_at.0);
    let lasted = Duration::from_millis(u64::try_from(lasted).unwrap_or(0));
    seen.held_for.saturating_sub(lasted)
}

/// What is said of a lease that ended so long ago.
pub(crate) fn lapse_words(ago: Duration) -> String {
    format!("its lease ended {} ago", format_duration(ago))
}

/// What is said of a holder that is proved dead. A holder without a process dies with its machine.
pub(crate) fn death_words(holder: &Holder) -> String {
    let evidence = holder.evidence.as_ref();
    match evidence.and_then(|evidence| Some((evidence.process?, &evidence.host))) {
        Some((process, host)) => format!("process {} on {host} is dead", process.pid),
        None => "the machine was rebooted".to_owned(),
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
