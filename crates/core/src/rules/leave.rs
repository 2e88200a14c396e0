//! Giving up a place in the queue, and calling off a request altogether.

use crate::decision::Decision;
use crate::event::{EventKind, WhyLeft};
use crate::rules::draft::Draft;
use crate::{GrantId, HoldSnapshot, Snapshot, Want, Witness};

/// Gives up the place of this request; those behind it may go on. Says whether there was one;
/// the look must show its ticket.
pub fn leave(seen: &Snapshot, grant: GrantId, witness: &dyn Witness) -> (Decision, bool) {
    let Some(place) = seen.waiters.iter().find(|seen| seen.waiter.grant == grant) else {
        return (Decision::Nothing, false);
    };
    let mut draft = Draft::new(seen, witness).looking_at(&place.waiter.wants);
    draft.drop_wait(&place.waiter, WhyLeft::GaveUp);
    (draft.decide(None), true)
}

/// Gives up the place of this request and, where its grant was made for it, what it holds. Says
/// whether there was anything; the look must show all of each queue.
pub fn call_off(
    seen: &Snapshot,
    grant: GrantId,
    is_new: bool,
    witness: &dyn Witness,
) -> (Decision, bool) {
    let place = seen.waiters.iter().find(|seen| seen.waiter.grant == grant);
    let holds: Vec<&HoldSnapshot> = seen.holds_of(grant).filter(|_| is_new).collect();
    let held = holds.iter().map(|seen| &seen.hold.want);
    let waited = place.iter().flat_map(|seen| &seen.waiter.wants);
    let wants: Vec<Want> = held.chain(waited).cloned().collect();
    let mut draft = Draft::new(seen, witness).looking_at(&wants);
    for hold in holds {
        draft.drop_hold(hold, EventKind::Released);
    }
    if let Some(place) = place {
        draft.drop_wait(&place.waiter, WhyLeft::GaveUp);
    }
    (draft.decide(None), !wants.is_empty())
}
